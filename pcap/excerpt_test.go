package pcap_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"jobwire/codec"
	"jobwire/internal/peers"
	"jobwire/pcap"
)

// packetsOf returns packets of several connections, which alternate, as a pcapng file. Some requests are sent
// before the previous ones are answered.
func packetsOf(t *testing.T, r *rand.Rand, ex exchange, shuffled bool) []byte {
	t.Helper()
	var conns [3][]piece
	for i := range conns {
		var all []said
		for range 12 {
			next := ex.make(r)
			if r.IntN(3) == 0 { // two requests, then their replies
				other := ex.make(r)
				both := slices.Concat(next, other)
				slices.SortStableFunc(both, func(a, b said) int { return int(a.from) - int(b.from) })
				next = both
			}
			all = append(all, next...)
		}
		_, conns[i] = segmented(r, exchange{ex.protocol, ex.port, func(*rand.Rand) []said { return all }}, 1, 500)
		if shuffled {
			conns[i] = disorder(r, conns[i], streamsOf(all))
		}
	}
	var file bytes.Buffer
	w, err := pcap.NewPacketWriter(&file)
	if err != nil {
		t.Fatal(err)
	}
	for at := int64(0); len(conns[0])+len(conns[1])+len(conns[2]) > 0; at += 1000 {
		i := r.IntN(len(conns))
		if len(conns[i]) == 0 {
			continue
		}
		b := conns[i][0].packet(ex.port+uint16(i), 1000)
		conns[i] = conns[i][1:]
		if err := w.Write(&pcap.Packet{At: 1_700_000_000_000_000_000 + at, Digits: 6, Link: 101, Data: b, Length: len(b)}); err != nil {
			t.Fatal(err)
		}
	}
	return file.Bytes()
}

// selected decodes a capture, and returns the items that a filter selects, in a form without connection numbers.
// If x is not nil, it selects their packets.
func selected(t *testing.T, capture []byte, filter string, x *pcap.Excerpt) (items []string) {
	t.Helper()
	f, err := pcap.NewFile("capture", bytes.NewReader(capture))
	if err != nil {
		t.Fatal(err)
	}
	var o pcap.Options
	if o.Filter, err = pcap.ParseFilter(filter); err != nil {
		t.Fatal(err)
	}
	d := pcap.NewDecoder(o, func(it *pcap.Item) {
		name := ""
		if it.Frame != nil && it.Frame.Type != nil {
			name = it.Frame.Type.Name
		}
		if it.Err != nil {
			name += " " + string(it.Err.Rule)
		}
		items = append(items, fmt.Sprintf("%d %v %v %s %.40q", it.At, it.Conn.Server, it.From, name, it.Raw))
		if x != nil {
			x.Add(it)
		}
	})
	if err := d.Decode(f); err != nil {
		t.Fatal(err)
	}
	slices.Sort(items)
	return items
}

// excerpted returns the packets of the selected items of a capture, as a file.
func excerpted(t *testing.T, capture []byte, x *pcap.Excerpt) []byte {
	t.Helper()
	f, err := pcap.NewFile("capture", bytes.NewReader(capture))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if _, err := x.Write(&out, f); err != nil || x.LeftOut() > 0 {
		t.Fatal(err, x.LeftOut())
	}
	return out.Bytes()
}

// TestExcerptDecodesTheSame checks that the same filter selects the same messages, at the same times, in a
// capture and in the excerpt that it selects.
func TestExcerptDecodesTheSame(t *testing.T) {
	for _, ex := range exchanges {
		t.Run(ex.protocol.Name, func(t *testing.T) {
			for seed := range uint64(8) {
				r := rand.New(rand.NewPCG(seed, 9))
				capture := packetsOf(t, r, ex, seed%2 == 1)
				filters := []string{"type=*", "to=client type=*", "to=server type=*"}
				all := strings.Join(selected(t, capture, "type=*", nil), "\n")
				for _, msgType := range ex.protocol.Types { // those in the capture
					if !strings.Contains(msgType.Name, " ") && strings.Contains(all, " "+msgType.Name+" ") {
						filters = append(filters, "type="+msgType.Name)
					}
				}
				for _, filter := range filters {
					x := pcap.NewExcerpt()
					want := selected(t, capture, filter, x)
					if len(want) == 0 {
						continue
					}
					small := excerpted(t, capture, x)
					if got := selected(t, small, filter, nil); !slices.Equal(got, want) {
						t.Fatalf("seed %d, %s: the excerpt has %d messages\n%.2000s\nwant %d\n%.2000s", seed, filter, len(got), strings.Join(got, "\n"), len(want), strings.Join(want, "\n"))
					}
				}
			}
		})
	}
}

// TestExcerptKeepsPackets checks that the packets of an excerpt are packets of the capture, with their times.
func TestExcerptKeepsPackets(t *testing.T) {
	capture := packetsOf(t, rand.New(rand.NewPCG(1, 9)), exchanges[1], false)
	x := pcap.NewExcerpt()
	selected(t, capture, "type=DELETED", x)
	packets := func(file []byte) (all []string) {
		f, err := pcap.NewFile("x", bytes.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		for p := new(pcap.Packet); f.Next(p) == nil; {
			all = append(all, fmt.Sprintf("%d %d %d %d %q", p.At, p.Digits, p.Link, p.Length, p.Data))
		}
		return all
	}
	all, some := packets(capture), packets(excerpted(t, capture, x))
	for _, p := range some {
		i := slices.Index(all, p)
		if i < 0 {
			t.Fatalf("the packet %s is not in the rest of the capture", p)
		}
		all = all[i+1:]
	}
	if len(some) == 0 || len(all) == 0 {
		t.Errorf("%d packets are in the excerpt", len(some))
	}
}

// TestTsharkShowsViolations checks that the packet with a violation has a comment with the rule.
func TestTsharkShowsViolations(t *testing.T) {
	tshark := peers.Need(t, "tshark")
	capture := write(t, 11300,
		pcap.Event{Conn: 1, Data: []byte("use a\r\n")},
		pcap.Event{Conn: 1, From: codec.Server, Data: []byte("USING a\r\n")},
		pcap.Event{Conn: 2, Data: []byte("use b\r\n")},
		pcap.Event{Conn: 1, Data: []byte("delete x\r\n")},
		pcap.Event{Conn: 1, From: codec.Server, Data: []byte("BAD_FORMAT\r\n")},
	)
	x := pcap.NewExcerpt()
	want := selected(t, capture, "rule=*", x)
	small := excerpted(t, capture, x)
	if got := selected(t, small, "rule=*", nil); len(want) != 1 || !slices.Equal(got, want) {
		t.Errorf("the excerpt has %q, want %q", got, want)
	}
	file := filepath.Join(t.TempDir(), "x.pcapng")
	if err := os.WriteFile(file, small, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(tshark, "-r", file, "-T", "fields", "-e", "tcp.payload", "-e", "frame.comment").Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	last := lines[len(lines)-1]
	if !strings.HasPrefix(last, fmt.Sprintf("%x\t127.0.0.1:40000 -> 127.0.0.1:11300: [beanstalk.", "delete x\r\n")) || !strings.Contains(last, "Rule (") {
		t.Errorf("tshark shows %q", last)
	}
	if strings.Count(string(out), "[beanstalk.") != 1 {
		t.Errorf("tshark shows %s", out)
	}
}
