package pcap_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"jobwire/codec"
	"jobwire/codec/beanstalk"
	"jobwire/codec/danga"
	"jobwire/codec/gearman"
	"jobwire/codec/gearmonkey"
	"jobwire/pcap"
	"jobwire/pcap/report"
)

// said is a message that was sent or decoded.
type said struct {
	from codec.Side
	raw  string
}

// exchange generates messages: requests and their replies.
type exchange struct {
	protocol *codec.Protocol
	port     uint16
	make     func(r *rand.Rand) []said
}

// binaryMessage encodes arguments as a Gearman packet.
func binaryMessage(from codec.Side, code uint32, args ...string) said {
	b := []byte{0, 'R', 'E', "QS"[from]}
	data := ""
	for i, a := range args {
		if i > 0 {
			data += "\x00"
		}
		data += a
	}
	b = binary.BigEndian.AppendUint32(b, code)
	b = binary.BigEndian.AppendUint32(b, uint32(len(data)))
	return said{from, string(b) + data}
}

// payload returns bytes that sometimes look like framing.
func payload(r *rand.Rand) string {
	n := []int{0, 1, 30, 300, 5000}[r.IntN(5)]
	words := []string{"\x00", "\r\n", "RES", "a", "$3\r\n", "xyz ", "\xff"}
	var b []byte
	for len(b) < n {
		b = append(b, words[r.IntN(len(words))]...)
	}
	return string(b[:n])
}

func dangaMessage(from codec.Side, code byte, data string) said {
	b := binary.BigEndian.AppendUint32(append([]byte("GEAR"), code), uint32(len(data)))
	return said{from, string(b) + data}
}

func bulk(words ...string) string {
	s := fmt.Sprintf("*%d\r\n", len(words))
	for _, w := range words {
		s += fmt.Sprintf("$%d\r\n%s\r\n", len(w), w)
	}
	return s
}

var exchanges = []exchange{
	{gearman.Protocol, 4730, func(r *rand.Rand) []said {
		if r.IntN(5) == 0 {
			return []said{{codec.Peer, "version\n"}, {codec.Server, "OK 1.1\n"}}
		}
		return []said{
			binaryMessage(codec.Peer, 7, "reverse", fmt.Sprint(r.Uint32()), payload(r)),
			binaryMessage(codec.Server, 8, fmt.Sprintf("H:lap:%d", r.IntN(1000))),
			binaryMessage(codec.Server, 13, "H:lap:1", payload(r)),
		}
	}},
	{beanstalk.Protocol, 11300, func(r *rand.Rand) []said {
		body := payload(r)
		return [][]said{
			{{codec.Peer, fmt.Sprintf("put 1 0 60 %d\r\n%s\r\n", len(body), body)}, {codec.Server, fmt.Sprintf("INSERTED %d\r\n", r.IntN(1000))}},
			{{codec.Peer, "reserve\r\n"}, {codec.Server, fmt.Sprintf("RESERVED %d %d\r\n%s\r\n", r.IntN(1000), len(body), body)}},
			{{codec.Peer, "delete 4\r\n"}, {codec.Server, "DELETED\r\n"}},
		}[r.IntN(3)]
	}},
	{gearmonkey.Protocol, 6379, func(r *rand.Rand) []said {
		return [][]said{
			{{codec.Peer, bulk("HMSET", "job:reverse:7", "status", "idle", "input", payload(r))}, {codec.Server, "+OK\r\n"}},
			{{codec.Peer, bulk("INCR", "uid:reverse")}, {codec.Server, fmt.Sprintf(":%d\r\n", r.IntN(1000))}},
			{{codec.Peer, bulk("GET", "x")}, {codec.Server, "$2\r\nab\r\n"}},
		}[r.IntN(3)]
	}},
	{danga.Protocol, 7003, func(r *rand.Rand) []said {
		return []said{dangaMessage(codec.Peer, 4, "reverse\x00\x00\x00\x01"+payload(r)), dangaMessage(codec.Server, 5, "h")}
	}},
}

// piece is a segment of a stream, not yet a packet.
type piece struct {
	from     codec.Side
	off, ack int // bytes from the beginning of its stream, and of the other stream
	data     []byte
	syn, fin bool
}

// segmented performs exchanges and cuts them into segments of at most most bytes. Some requests are sent before the
// previous ones are answered.
func segmented(r *rand.Rand, ex exchange, count, most int) ([]said, []piece) {
	var all []said
	for range count {
		all = append(all, ex.make(r)...)
	}
	pieces := []piece{{from: codec.Peer, syn: true}, {from: codec.Server, syn: true}}
	var sent [2]int
	for i := 0; i < len(all); {
		from, b := all[i].from, []byte(nil)
		for ; i < len(all) && all[i].from == from; i++ {
			b = append(b, all[i].raw...)
		}
		for len(b) > 0 {
			n := min(len(b), 1+r.IntN(most))
			pieces = append(pieces, piece{from: from, off: sent[from], ack: sent[from.Other()], data: b[:n]})
			sent[from] += n
			b = b[n:]
		}
	}
	for _, from := range []codec.Side{codec.Peer, codec.Server} {
		pieces = append(pieces, piece{from: from, off: sent[from], ack: sent[from.Other()], fin: true})
	}
	return all, pieces
}

// beforeWrap is a first sequence number after which the sequence numbers soon wrap around.
const beforeWrap = 0xffffff80

// packet returns an IPv4 packet for a piece. Sequence numbers wrap around soon after start.
func (p *piece) packet(port uint16, start uint32) []byte {
	ports := [2]uint16{40000, port}
	seq, ack, flags := start+1+uint32(p.off), start+1+uint32(p.ack), byte(0x10)
	switch {
	case p.syn && p.from == codec.Peer:
		seq, flags = start, 0x02
	case p.syn:
		seq, flags = start, 0x12
	case p.fin:
		flags = 0x11
	}
	b := []byte{0x45, 0, 0, 0, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1 + byte(p.from), 10, 0, 0, 2 - byte(p.from)}
	binary.BigEndian.PutUint16(b[2:], uint16(40+len(p.data)))
	b = binary.BigEndian.AppendUint16(b, ports[p.from])
	b = binary.BigEndian.AppendUint16(b, ports[p.from.Other()])
	b = binary.BigEndian.AppendUint32(b, seq)
	b = binary.BigEndian.AppendUint32(b, ack)
	b = append(b, 5<<4, flags, 0xff, 0xff, 0, 0, 0, 0)
	return append(b, p.data...)
}

// reading is the output of a decoder.
type reading struct {
	messages []said
	streams  [2][]byte // all bytes, without gaps
	faults   []string
	skipped  bool // bytes were skipped and are not in streams
	stats    pcap.Stats
}

func readPackets(packets [][]byte, o pcap.Options) *reading {
	var got reading
	d := pcap.NewDecoder(o, func(it *pcap.Item) {
		got.streams[it.From] = append(got.streams[it.From], it.Raw...)
		switch it.Kind {
		case pcap.Skipped:
			got.skipped = true
		case pcap.Message:
			got.messages = append(got.messages, said{it.From, string(it.Raw)})
		case pcap.Violates:
			got.faults = append(got.faults, it.Err.Error())
		}
	})
	for i, b := range packets {
		d.Packet(&pcap.Packet{Number: i + 1, At: int64(i) * 1e6, Link: 101, Data: b, Length: len(b)})
	}
	d.Close()
	got.stats = d.Stats()
	return &got
}

// disorder shuffles the pieces after the handshake, each by a few places, and sends some of them again,
// together with the bytes around them.
func disorder(r *rand.Rand, pieces []piece, streams [2][]byte) []piece {
	type placed struct {
		p  piece
		at int
	}
	var all []placed
	for i, p := range pieces {
		at := 2 * i
		if !p.syn {
			at += r.IntN(40)
		}
		all = append(all, placed{p, at})
		if !p.syn && !p.fin && r.IntN(4) == 0 {
			from, to := max(0, p.off-r.IntN(50)), min(len(streams[p.from]), p.off+len(p.data)+r.IntN(50))
			if to <= p.off+len(p.data) || r.IntN(2) == 0 { // data that the other end has not received needs no later ack
				again := piece{from: p.from, off: from, ack: p.ack, data: streams[p.from][from:min(to, p.off+len(p.data))]}
				all = append(all, placed{again, at + r.IntN(20)})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b placed) int { return a.at - b.at })
	var out []piece
	for _, a := range all {
		out = append(out, a.p)
	}
	return out
}

func streamsOf(all []said) (s [2][]byte) {
	for _, m := range all {
		s[m.from] = append(s[m.from], m.raw...)
	}
	return s
}

// TestAnySegmentationAndOrder checks that the messages of each side are decoded in their order, regardless of how the
// segments of a conversation are cut, shuffled, repeated and overlapped.
func TestAnySegmentationAndOrder(t *testing.T) {
	for _, ex := range exchanges {
		t.Run(ex.protocol.Name, func(t *testing.T) {
			for seed := range uint64(60) {
				r := rand.New(rand.NewPCG(seed, 1))
				all, pieces := segmented(r, ex, 1+r.IntN(20), []int{3, 100, 1460}[seed%3])
				pieces = disorder(r, pieces, streamsOf(all))
				var packets [][]byte
				for i := range pieces {
					packets = append(packets, pieces[i].packet(ex.port, beforeWrap))
				}
				got := readPackets(packets, pcap.Options{})
				for side := range 2 {
					fromOther := func(m said) bool { return int(m.from) != side }
					sent := slices.DeleteFunc(slices.Clone(all), fromOther)
					decoded := slices.DeleteFunc(slices.Clone(got.messages), fromOther)
					if !slices.Equal(sent, decoded) {
						t.Fatalf("seed %d: %d messages from side %d, want %d; stats %+v", seed, len(decoded), side, len(sent), got.stats)
					}
				}
				if len(got.faults) > 0 || got.stats.Gaps > 0 {
					t.Fatalf("seed %d: %d gaps, faults %v", seed, got.stats.Gaps, got.faults)
				}
			}
		})
	}
}

// without returns pieces without the bytes of gone. A piece that contains gone in its middle becomes two.
func without(pieces []piece, gone piece) []piece {
	var out []piece
	end := gone.off + len(gone.data)
	for _, p := range pieces {
		if p.from != gone.from || p.syn || p.fin || p.off >= end || p.off+len(p.data) <= gone.off {
			out = append(out, p)
			continue
		}
		if n := gone.off - p.off; n > 0 {
			before := p
			before.data = p.data[:n]
			out = append(out, before)
		}
		if n := end - p.off; n < len(p.data) {
			p.off, p.data = end, p.data[n:]
			out = append(out, p)
		}
	}
	return out
}

// isPart reports whether the elements of part are elements of whole, in the same order.
func isPart(part, whole []string) bool {
	for _, s := range whole {
		if len(part) > 0 && part[0] == s {
			part = part[1:]
		}
	}
	return len(part) == 0
}

// TestOneLostSegment checks that messages before a lost segment and in the other direction are decoded, that no
// message is decoded that was not sent, and that all captured bytes are shown, regardless of how the segments are
// shuffled, repeated and overlapped. Sequence numbers wrap around soon.
func TestOneLostSegment(t *testing.T) {
	for _, ex := range exchanges {
		t.Run(ex.protocol.Name, func(t *testing.T) {
			for seed := range uint64(150) {
				r := rand.New(rand.NewPCG(seed, 2))
				all, pieces := segmented(r, ex, 12, []int{100, 1460}[seed%2])
				gone := pieces[2+r.IntN(len(pieces)-4)]
				streams := streamsOf(all)
				if seed%3 > 0 {
					pieces = disorder(r, pieces, streams)
				}
				var packets [][]byte
				for _, p := range without(pieces, gone) {
					packets = append(packets, p.packet(ex.port, 0xfffffff0))
				}
				got := readPackets(packets, pcap.Options{})
				streams[gone.from] = slices.Delete(slices.Clone(streams[gone.from]), gone.off, gone.off+len(gone.data))
				var at [2]int
				var sure, sent [2][]string
				for _, m := range all {
					from := at[m.from]
					at[m.from] += len(m.raw)
					if m.from == gone.from && at[m.from] > gone.off && from < gone.off+len(gone.data) {
						continue
					}
					sent[m.from] = append(sent[m.from], m.raw)
					before := m.from == gone.from && at[m.from] <= gone.off
					text := ex.protocol == gearman.Protocol && m.from == codec.Server && m.raw[0] != 0 // its end may depend on a lost request
					if before || m.from != gone.from && !text {
						sure[m.from] = append(sure[m.from], m.raw)
					}
				}
				for side := range 2 {
					var have []string
					for _, m := range got.messages {
						if int(m.from) == side {
							have = append(have, m.raw)
						}
					}
					if !isPart(sure[side], have) || !isPart(have, sent[side]) {
						t.Errorf("seed %d: side %d: %d messages, want %d to %d; lost %+v", seed, side, len(have), len(sure[side]), len(sent[side]), gone.off)
					}
					if !got.skipped && !bytes.Equal(got.streams[side], streams[side]) {
						t.Errorf("seed %d: side %d: %d bytes shown, want %d", seed, side, len(got.streams[side]), len(streams[side]))
					}
				}
				if len(got.faults) > 0 || got.stats.Gaps != 1 || got.stats.Missing != int64(len(gone.data)) {
					t.Errorf("seed %d: %d gaps of %d bytes, want 1 of %d; faults %v", seed, got.stats.Gaps, got.stats.Missing, len(gone.data), got.faults)
				}
			}
		})
	}
}

// rebuild reconstructs the bytes of both directions from a complete listing.
func rebuild(t *testing.T, listing, server string) (streams [2][]byte) {
	t.Helper()
	from := codec.Peer
	for line := range strings.Lines(listing) {
		line = strings.TrimRight(line, "\n")
		switch {
		case line == "" || line[0] == '#' || strings.HasPrefix(strings.TrimLeft(line, " "), "^^"):
		case strings.HasPrefix(line, server+" -> "):
			from = codec.Server
		case strings.Contains(line, " -> "+server):
			from = codec.Peer
		case line[0] == '"':
			text, err := strconv.QuotedPrefix(strings.ReplaceAll(line, `\0`, `\x00`))
			if err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			b, _ := strconv.Unquote(text)
			streams[from] = append(streams[from], b...)
		default:
			b, err := hex.DecodeString(strings.ReplaceAll(line[:min(len(line), 24)], " ", ""))
			if err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			streams[from] = append(streams[from], b...)
		}
	}
	return streams
}

// TestEveryByteIsListedOnce checks that a listing contains every byte of both streams once, even if a segment
// is lost.
func TestEveryByteIsListedOnce(t *testing.T) {
	for _, ex := range exchanges {
		for seed := range uint64(20) {
			r := rand.New(rand.NewPCG(seed, 4))
			all, pieces := segmented(r, ex, 8, 900)
			want := streamsOf(all)
			if seed%2 == 1 {
				lost := 2 + r.IntN(len(pieces)-4)
				gone := pieces[lost]
				pieces = slices.Delete(pieces, lost, lost+1)
				want[gone.from] = slices.Delete(want[gone.from], gone.off, gone.off+len(gone.data))
			}
			var out bytes.Buffer
			l := report.NewListing(&out, report.ListingOptions{Full: true})
			d := pcap.NewDecoder(pcap.Options{}, l.Add)
			for i := range pieces {
				b := pieces[i].packet(ex.port, 7)
				d.Packet(&pcap.Packet{Number: i + 1, Link: 101, Data: b, Length: len(b)})
			}
			d.Close()
			if err := l.Flush(); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(out.String(), "# skipped ") { // the protocol was not decided before the loss
				continue
			}
			got := rebuild(t, out.String(), ex.protocol.ServerName)
			for side := range 2 {
				if !bytes.Equal(got[side], want[side]) {
					t.Errorf("%s: seed %d: side %d: %d bytes in the listing, want %d", ex.protocol.Name, seed, side, len(got[side]), len(want[side]))
				}
			}
		}
	}
}
