package pcap_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"jobwire/codec"
	"jobwire/codec/gearman"
	"jobwire/internal/peers"
	"jobwire/pcap"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

func write(t *testing.T, port int, events ...pcap.Event) []byte {
	t.Helper()
	var file bytes.Buffer
	w, err := pcap.NewWriter(&file, port)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		if err := w.Write(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// seg is a packet that was read back from a file.
type seg struct {
	at   time.Time
	ip   *layers.IPv4
	tcp  *layers.TCP
	data []byte
}

// flags returns the sender of the segment and its flags.
func (s *seg) flags(serverPort int) string {
	who := "C "
	if int(s.tcp.SrcPort) == serverPort {
		who = "S "
	}
	var set []string
	for _, f := range []struct {
		on   bool
		name string
	}{{s.tcp.SYN, "SYN"}, {s.tcp.FIN, "FIN"}, {s.tcp.RST, "RST"}, {s.tcp.PSH, "PSH"}, {s.tcp.ACK, "ACK"}} {
		if f.on {
			set = append(set, f.name)
		}
	}
	if len(s.data) > 0 {
		set = append(set, fmt.Sprint(len(s.data)))
	}
	return who + strings.Join(set, " ")
}

func read(t *testing.T, file []byte) []seg {
	t.Helper()
	r, err := pcapgo.NewNgReader(bytes.NewReader(file), pcapgo.DefaultNgReaderOptions)
	if err != nil {
		t.Fatal(err)
	}
	var segs []seg
	for {
		raw, info, err := r.ReadPacketData()
		if errors.Is(err, io.EOF) {
			return segs
		}
		if err != nil {
			t.Fatal(err)
		}
		p := gopacket.NewPacket(raw, r.LinkType(), gopacket.Default)
		if e := p.ErrorLayer(); e != nil {
			t.Fatalf("packet %d: %v", len(segs), e.Error())
		}
		s := seg{at: info.Timestamp, ip: p.NetworkLayer().(*layers.IPv4), tcp: p.TransportLayer().(*layers.TCP)}
		s.data = s.tcp.Payload
		segs = append(segs, s)
	}
}

// checksum returns the RFC 1071 checksum of the concatenated parts. It is 0 if they include a correct checksum.
func checksum(parts ...[]byte) uint16 {
	b := slices.Concat(parts...)
	if len(b)%2 == 1 {
		b = append(b, 0)
	}
	var sum uint32
	for ; len(b) > 0; b = b[2:] {
		sum += uint32(binary.BigEndian.Uint16(b))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

// TestEveryPacketIsWellFormed tests that written captures have packets with correct checksums, sequence numbers, sizes
// and increasing times, and contain all data.
func TestEveryPacketIsWellFormed(t *testing.T) {
	long := bytes.Repeat([]byte("0123456789"), 500)
	file := write(t, 4730,
		pcap.Event{Conn: 7, From: codec.Peer, Data: []byte("odd"), At: noon},
		pcap.Event{Conn: 9, From: codec.Peer, Data: long},
		pcap.Event{Conn: 7, From: codec.Server, Data: long},
		pcap.Event{Conn: 9, From: codec.Server, Kind: pcap.HalfCloses},
		pcap.Event{Conn: 9, From: codec.Peer, Data: []byte("more")},
	)
	type flow struct{ src, dst layers.TCPPort }
	sent := map[flow][]byte{} // the data of one direction
	next := map[flow]uint32{} // its next sequence number
	last := time.Time{}
	for i, s := range read(t, file) {
		pseudo := slices.Concat(s.ip.SrcIP, s.ip.DstIP, []byte{0, 6, byte(len(s.ip.Payload) >> 8), byte(len(s.ip.Payload))})
		if checksum(s.ip.Contents) != 0 || checksum(pseudo, s.ip.Payload) != 0 {
			t.Errorf("packet %d: a checksum is wrong", i)
		}
		if len(s.data) > 1460 {
			t.Errorf("packet %d: %d bytes in one segment", i, len(s.data))
		}
		if !s.at.After(last) {
			t.Errorf("packet %d: time stands still or runs back at %v", i, s.at)
		}
		last = s.at
		out, in := flow{s.tcp.SrcPort, s.tcp.DstPort}, flow{s.tcp.DstPort, s.tcp.SrcPort}
		if s.tcp.SYN {
			next[out] = s.tcp.Seq
		}
		if s.tcp.Seq != next[out] || s.tcp.ACK && s.tcp.Ack != next[in] {
			t.Errorf("packet %d: seq %d, ack %d; want %d, %d", i, s.tcp.Seq, s.tcp.Ack, next[out], next[in])
		}
		next[out] += uint32(len(s.data))
		if s.tcp.SYN || s.tcp.FIN {
			next[out]++
		}
		sent[out] = append(sent[out], s.data...)
	}
	want := map[flow]string{
		{40000, 4730}: "odd", {4730, 40000}: string(long),
		{40001, 4730}: string(long) + "more", {4730, 40001}: "",
	}
	if len(sent) != len(want) {
		t.Errorf("%d directions, want %d", len(sent), len(want))
	}
	for f, data := range want {
		if string(sent[f]) != data {
			t.Errorf("%v carries %d bytes, want %d", f, len(sent[f]), len(data))
		}
	}
}

// TestPacketsThatOpenAndCloseAConnection tests that a written capture has the packets with which TCP opens, closes,
// half-closes or resets a connection, and acknowledges data.
func TestPacketsThatOpenAndCloseAConnection(t *testing.T) {
	handshake := []string{"C SYN", "S SYN ACK", "C ACK"}
	tests := []struct {
		name   string
		events []pcap.Event
		want   []string
	}{
		{"client closes", []pcap.Event{{Kind: pcap.Opens}, {Kind: pcap.Closes}},
			[]string{"C FIN ACK", "S ACK", "S FIN ACK", "C ACK"}},
		{"server closes", []pcap.Event{{Kind: pcap.Opens}, {From: codec.Server, Kind: pcap.Closes}},
			[]string{"S FIN ACK", "C ACK", "C FIN ACK", "S ACK"}},
		{"left open", []pcap.Event{{Kind: pcap.Opens}},
			[]string{"C FIN ACK", "S ACK", "S FIN ACK", "C ACK"}},
		{"half-closed", []pcap.Event{{Kind: pcap.Opens}, {Kind: pcap.HalfCloses}, {From: codec.Server, Data: []byte("late")}},
			[]string{"C FIN ACK", "S ACK", "S PSH ACK 4", "C ACK", "S FIN ACK", "C ACK"}},
		{"reset", []pcap.Event{{Data: []byte("x")}, {From: codec.Server, Kind: pcap.Resets}},
			[]string{"C PSH ACK 1", "S ACK", "S RST ACK"}},
		{"segments", []pcap.Event{{Data: make([]byte, 3*1460+1)}, {Kind: pcap.Resets}},
			[]string{"C ACK 1460", "C ACK 1460", "S ACK", "C ACK 1460", "C PSH ACK 1", "S ACK", "C RST ACK"}},
		{"server speaks first", []pcap.Event{{From: codec.Server, Data: []byte("hi")}, {Kind: pcap.Resets}},
			[]string{"S PSH ACK 2", "C ACK", "C RST ACK"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, s := range read(t, write(t, 99, tt.events...)) {
				got = append(got, s.flags(99))
			}
			if want := append(handshake[:3:3], tt.want...); !slices.Equal(got, want) {
				t.Errorf("got  %q\nwant %q", got, want)
			}
		})
	}
}

// TestTimes tests that packets have the times of their events, later ones if an event is older than the packet before,
// and the Unix epoch if no event has a time.
func TestTimes(t *testing.T) {
	file := write(t, 4730,
		pcap.Event{Kind: pcap.Opens, At: noon},
		pcap.Event{Data: []byte("a"), At: noon.Add(time.Second)},
		pcap.Event{Data: []byte("b"), At: noon}, // older than the previous event
		pcap.Event{Data: []byte("c")},
		pcap.Event{Kind: pcap.Resets, At: noon.Add(2*time.Second + 1500*time.Nanosecond)},
	)
	var got []time.Duration
	for _, s := range read(t, file) {
		got = append(got, s.at.Sub(noon))
	}
	us := time.Microsecond
	want := []time.Duration{0, us, 2 * us,
		time.Second, time.Second + us,
		time.Second + 2*us, time.Second + 3*us,
		time.Second + 3*us + time.Millisecond, time.Second + 4*us + time.Millisecond,
		2*time.Second + 1500*time.Nanosecond}
	if !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if first := read(t, write(t, 1, pcap.Event{Kind: pcap.Opens}))[0].at; !first.Equal(time.Unix(0, 0)) {
		t.Errorf("a capture without times begins at %v", first)
	}
}

// TestSameEventsSameBytes tests that captures of the same events are identical.
func TestSameEventsSameBytes(t *testing.T) {
	var events []pcap.Event
	for i := range 20 {
		events = append(events, pcap.Event{Conn: i, Data: []byte("x")})
	}
	if !bytes.Equal(write(t, 4730, events...), write(t, 4730, events...)) {
		t.Error("two captures of the same events differ")
	}
}

// TestClientPortsDiffer tests that each connection in a written capture has its own client port, also if its number was
// used before, and that no port equals that of the server.
func TestClientPortsDiffer(t *testing.T) {
	seen := map[layers.TCPPort]bool{}
	for _, s := range read(t, write(t, 40001,
		pcap.Event{Conn: 1, Kind: pcap.Opens},
		pcap.Event{Conn: 2, Kind: pcap.Opens},
		pcap.Event{Conn: 2, Kind: pcap.Resets},
		pcap.Event{Conn: 2, Kind: pcap.Opens}, // a new connection under an old number
	)) {
		if s.tcp.SYN && !s.tcp.ACK {
			if s.tcp.SrcPort == 40001 || seen[s.tcp.SrcPort] {
				t.Errorf("port %d serves twice", s.tcp.SrcPort)
			}
			seen[s.tcp.SrcPort] = true
		}
	}
	if len(seen) != 3 {
		t.Errorf("%d connections, want 3", len(seen))
	}
}

// TestWriterRefuses tests that an invalid port, side or kind, and an event that is impossible in the state of its
// connection, is an error.
func TestWriterRefuses(t *testing.T) {
	for _, port := range []int{-1, 0, 65536} {
		if _, err := pcap.NewWriter(io.Discard, port); err == nil {
			t.Errorf("port %d was taken", port)
		}
	}
	tests := []struct {
		why    string
		events []pcap.Event // the last event must cause an error
	}{
		{"is already open", []pcap.Event{{Kind: pcap.Opens}, {Kind: pcap.Opens}}},
		{"is not open: close", []pcap.Event{{Kind: pcap.Closes}}},
		{"is not open: reset", []pcap.Event{{Kind: pcap.Opens}, {Kind: pcap.Closes}, {Kind: pcap.Resets}}},
		{"data after the peer closed the connection", []pcap.Event{{Kind: pcap.Opens}, {Kind: pcap.HalfCloses}, {Data: []byte("x")}}},
		{"invalid event kind 77", []pcap.Event{{Kind: pcap.Opens}, {Kind: 77}}},
		{"invalid side 2", []pcap.Event{{From: 2}}},
	}
	for _, tt := range tests {
		w, err := pcap.NewWriter(io.Discard, 1)
		if err != nil {
			t.Fatal(err)
		}
		for i, e := range tt.events {
			err := w.Write(e)
			if i < len(tt.events)-1 && err != nil {
				t.Errorf("%s: event %d: %v", tt.why, i, err)
			}
			if i == len(tt.events)-1 && (err == nil || !strings.Contains(err.Error(), tt.why)) {
				t.Errorf("got %v, want %q", err, tt.why)
			}
		}
	}
}

// TestTsharkReadsGearman checks that tshark decodes the written file: every message and its type, without
// errors in TCP.
func TestTsharkReadsGearman(t *testing.T) {
	tshark := peers.Need(t, "tshark")
	big := strings.Repeat("w", 5000)
	messages := []struct {
		conn int
		from codec.Side
		name string
		args []string
	}{
		{1, codec.Peer, "CAN_DO", []string{"reverse"}},
		{1, codec.Peer, "GRAB_JOB", nil},
		{1, codec.Server, "NO_JOB", nil},
		{1, codec.Peer, "PRE_SLEEP", nil},
		{2, codec.Peer, "SUBMIT_JOB", []string{"reverse", "", big}},
		{2, codec.Server, "JOB_CREATED", []string{"H:lap:1"}},
		{1, codec.Server, "NOOP", nil},
		{1, codec.Peer, "GRAB_JOB", nil},
		{1, codec.Server, "JOB_ASSIGN", []string{"H:lap:1", "reverse", big}},
		{1, codec.Peer, "WORK_COMPLETE", []string{"H:lap:1", "tset"}},
		{2, codec.Server, "WORK_COMPLETE", []string{"H:lap:1", "tset"}},
	}
	var events []pcap.Event
	var want []string
	s := gearman.Protocol.NewSession(codec.Options{})
	for _, m := range messages {
		msgType := gearman.Protocol.TypeNamed(m.name)
		msg := codec.Message{Type: msgType}
		for _, a := range m.args {
			msg.Args = append(msg.Args, []byte(a))
		}
		b, err := s.Append(nil, m.from, &msg)
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, pcap.Event{Conn: m.conn, From: m.from, Data: b})
		want = append(want, fmt.Sprint(msgType.Code))
	}
	const port = 14730
	file := filepath.Join(t.TempDir(), "jobs.pcap")
	if err := os.WriteFile(file, write(t, port, events...), 0o600); err != nil {
		t.Fatal(err)
	}
	fields := func(args ...string) []string {
		t.Helper()
		args = append([]string{"-n", "-r", file, "-d", fmt.Sprintf("tcp.port==%d,gearman", port),
			"-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"}, args...)
		cmd := exec.Command(tshark, args...)
		var complaint bytes.Buffer
		cmd.Stderr = &complaint
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %v: %s", cmd, err, complaint.String())
		}
		return strings.Fields(string(out))
	}
	if got := fields("-Y", "gearman", "-T", "fields", "-e", "gearman.pkt_type"); !slices.Equal(got, want) {
		t.Errorf("tshark sees types %v, want %v", got, want)
	}
	wrong := `tcp.analysis.flags || tcp.checksum.status != "Good" || ip.checksum.status != "Good" || _ws.malformed`
	if got := fields("-Y", wrong); len(got) > 0 {
		t.Errorf("tshark finds faults: %v", got)
	}
	if got := fields("-Y", `tcp.checksum.status == "Good"`); len(got) == 0 {
		t.Error("tshark has checked no checksum")
	}
}
