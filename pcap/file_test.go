package pcap_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/klauspost/compress/zstd"

	"jobwire/fuzz/native"
	"jobwire/pcap"
	"jobwire/pcap/report"
)

// conversation returns a Gearman conversation as IPv4 packets, without link headers.
func conversation() (want []said, packets [][]byte) {
	r := rand.New(rand.NewPCG(1, 1))
	all, pieces := segmented(r, exchanges[0], 10, 700)
	for i := range pieces {
		packets = append(packets, pieces[i].packet(4730, 100))
	}
	return all, packets
}

// classic writes a pcap file.
func classic(order binary.AppendByteOrder, magic uint32, link uint32, packets [][]byte) []byte {
	u32 := order.AppendUint32
	b := u32(nil, magic)
	b = order.AppendUint16(order.AppendUint16(b, 2), 4)
	b = u32(u32(u32(u32(b, 0), 0), 262144), link)
	for i, p := range packets {
		b = u32(u32(b, 1700000000), uint32(i))
		b = append(u32(u32(b, uint32(len(p))), uint32(len(p))), p...)
	}
	return b
}

// nextGeneration writes a pcapng file with all kinds of packet blocks, two sections, interfaces with different
// clocks, and a block that readers ignore.
func nextGeneration(order binary.AppendByteOrder, link uint16, packets [][]byte) []byte {
	u16, u32 := order.AppendUint16, order.AppendUint32
	var b []byte
	block := func(kind uint32, body []byte) {
		for len(body)%4 != 0 {
			body = append(body, 0)
		}
		n := uint32(len(body) + 12)
		b = u32(append(u32(u32(b, kind), n), body...), n)
	}
	section := func() {
		block(0x0a0d0d0a, u32(u32(u16(u16(u32(nil, 0x1a2b3c4d), 1), 0), 0xffffffff), 0xffffffff))
		block(1, u32(u16(u16(nil, link), 0), 0))
		nanos := u32(u16(u16(nil, link), 0), 0)
		nanos = append(u16(u16(nanos, 9), 1), 9, 0, 0, 0)
		block(1, u32(nanos, 0))
	}
	section()
	for i, p := range packets {
		if i == len(packets)/2 {
			section()
		}
		n, us := uint32(len(p)), 1700000000_000000+uint64(i)
		stamp := func(b []byte, t uint64) []byte { return u32(u32(b, uint32(t>>32)), uint32(t)) }
		switch i % 4 {
		case 0:
			block(6, append(u32(u32(stamp(u32(nil, 0), us), n), n), p...))
		case 1:
			block(6, append(u32(u32(stamp(u32(nil, 1), us*1000), n), n), p...))
		case 2:
			block(2, append(u32(u32(stamp(u16(u16(nil, 0), 0), us), n), n), p...))
		case 3:
			block(3, append(u32(nil, n), p...))
		}
		block(0xbad, []byte("whatever"))
	}
	return b
}

// decodeFile decodes a file, and returns its messages and their times.
func decodeFile(file []byte) (*reading, []int64, error) {
	var got reading
	var times []int64
	f, err := pcap.NewFile("test.pcap", bytes.NewReader(file))
	if err != nil {
		return &got, nil, err
	}
	d := pcap.NewDecoder(pcap.Options{}, func(it *pcap.Item) {
		got.streams[it.From] = append(got.streams[it.From], it.Raw...)
		if it.Kind == pcap.Message {
			got.messages = append(got.messages, said{it.From, string(it.Raw)})
			times = append(times, it.At)
		}
	})
	err = d.Decode(f)
	got.stats = d.Stats()
	return &got, times, err
}

func prefixed(prefix string, packets [][]byte) [][]byte {
	var all [][]byte
	for _, p := range packets {
		all = append(all, append([]byte(prefix), p...))
	}
	return all
}

func packed(b []byte) []byte {
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	w.Write(b)
	w.Close()
	return z.Bytes()
}

func zstandard(b []byte) []byte {
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		panic(err)
	}
	defer w.Close()
	return w.EncodeAll(b, nil)
}

// sixth converts an IPv4 packet to an IPv6 packet with extension headers.
func sixth(p []byte) []byte {
	b := []byte{0x60, 0, 0, 0, 0, 0, 0, 64}
	b = append(append(b, make([]byte, 12)...), p[12:16]...)
	b = append(append(b, make([]byte, 12)...), p[16:20]...)
	b = append(b, 60, 0, 1, 4, 0, 0, 0, 0) // hop by hop
	b = append(b, 6, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	b = append(b, p[20:]...)
	binary.BigEndian.PutUint16(b[4:], uint16(len(b)-40))
	return b
}

// fragmentsOf cuts an IPv4 packet into at most three fragments.
func fragmentsOf(p []byte, id uint16) [][]byte {
	data := p[20:]
	var all [][]byte
	for at := 0; at < len(data); {
		n := min(len(data)-at, max(8, (len(data)/3+7)&^7))
		f := append(slices.Clone(p[:20]), data[at:at+n]...)
		binary.BigEndian.PutUint16(f[2:], uint16(len(f)))
		binary.BigEndian.PutUint16(f[4:], id)
		flags := uint16(at / 8)
		if at+n < len(data) {
			flags |= 0x2000
		}
		binary.BigEndian.PutUint16(f[6:], flags)
		all = append(all, f)
		at += n
	}
	slices.Reverse(all)
	return all
}

// TestFormatsAndLinks checks that the same conversation is decoded from every format and link type, with any
// headers around TCP.
func TestFormatsAndLinks(t *testing.T) {
	want, ip := conversation()
	each := func(f func(p []byte) []byte) (all [][]byte) {
		for _, p := range ip {
			all = append(all, f(p))
		}
		return all
	}
	var fragments [][]byte
	for i, p := range ip {
		fragments = append(fragments, fragmentsOf(p, uint16(i))...)
	}
	ether := strings.Repeat("\x02", 12) + "\x08\x00"
	little, big := binary.LittleEndian, binary.BigEndian
	const micro, nano = 0xa1b2c3d4, 0xa1b23c4d
	vxlan := func(p []byte) []byte {
		inner := append([]byte("\x08\x00\x00\x00\x00\x00\x05\x00"+ether), p...)
		udp := append([]byte{0x30, 0x39, 0x12, 0xb5, 0, 0, 0, 0}, inner...)
		return append(append([]byte{0x45, 0, 0, byte(0), 0, 0, 0, 0, 64, 17, 0, 0}, "\x0a\x09\x00\x01\x0a\x09\x00\x02"...), udp...)
	}
	gre := func(p []byte) []byte {
		return append([]byte("\x45\x00\x00\x00\x00\x00\x00\x00\x40\x2f\x00\x00\x0a\x09\x00\x01\x0a\x09\x00\x02\x20\x00\x08\x00\x00\x00\x00\x01"), p...)
	}
	padded := each(func(p []byte) []byte { return append(append([]byte(ether), p...), "padding"...) })
	offloaded := each(func(p []byte) []byte { q := slices.Clone(p); q[2], q[3] = 0, 0; return q })
	for name, file := range map[string][]byte{
		"raw":               classic(little, micro, 101, ip),
		"big-endian":        classic(big, micro, 101, ip),
		"nanoseconds":       classic(little, nano, 101, ip),
		"big nanoseconds":   classic(big, nano, 101, ip),
		"pcapng":            nextGeneration(little, 101, ip),
		"big pcapng":        nextGeneration(big, 1, padded),
		"gzip":              packed(classic(little, micro, 101, ip)),
		"gzip pcapng":       packed(nextGeneration(little, 276, prefixed("\x08\x00"+strings.Repeat("\x01", 18), ip))),
		"zstd":              zstandard(classic(little, micro, 101, ip)),
		"zstd, pzstd":       append([]byte("\x50\x2a\x4d\x18\x04\x00\x00\x00abcd"), zstandard(nextGeneration(little, 101, ip))...),
		"ethernet, padding": classic(little, micro, 1, padded),
		"vlan":              classic(little, micro, 1, prefixed(strings.Repeat("\x02", 12)+"\x81\x00\x00\x05\x08\x00", ip)),
		"qinq":              classic(little, micro, 1, prefixed(strings.Repeat("\x02", 12)+"\x88\xa8\x00\x05\x81\x00\x00\x05\x08\x00", ip)),
		"null":              classic(little, micro, 0, prefixed("\x02\x00\x00\x00", ip)),
		"loop":              classic(little, micro, 108, prefixed("\x00\x00\x00\x02", ip)),
		"sll":               classic(little, micro, 113, prefixed(strings.Repeat("\x01", 14)+"\x08\x00", ip)),
		"sll2":              classic(little, micro, 276, prefixed("\x08\x00"+strings.Repeat("\x01", 18), ip)),
		"frame check":       classic(little, micro, 1|0x14000000, padded),
		"ipv6":              classic(little, micro, 229, each(sixth)),
		"fragments":         classic(little, micro, 228, fragments),
		"offloaded":         classic(little, micro, 101, offloaded),
		"vxlan":             classic(little, micro, 1, prefixed(ether, each(vxlan))),
		"gre":               classic(little, micro, 1, prefixed(ether, each(gre))),
	} {
		got, times, err := decodeFile(file)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !slices.Equal(got.messages, want) {
			t.Errorf("%s: %d messages, want %d; stats %+v", name, len(got.messages), len(want), got.stats)
			continue
		}
		if at := time.Unix(0, times[0]); at.Unix() != 1700000000 {
			t.Errorf("%s: first message at %v", name, at)
		}
	}
}

// TestCutFiles checks that a file that is truncated anywhere causes an error with its name and the offset,
// after the messages before it were decoded.
func TestCutFiles(t *testing.T) {
	want, ip := conversation()
	ip = ip[:14]
	for name, file := range map[string][]byte{
		"pcap":   classic(binary.LittleEndian, 0xa1b2c3d4, 101, ip),
		"pcapng": nextGeneration(binary.BigEndian, 101, ip),
		"gzip":   packed(classic(binary.LittleEndian, 0xa1b2c3d4, 101, ip)),
		"zstd":   zstandard(classic(binary.LittleEndian, 0xa1b2c3d4, 101, ip)),
	} {
		whole, _, err := decodeFile(file)
		if err != nil {
			t.Fatal(err)
		}
		last, ends := 0, 0
		for n := range len(file) {
			got, _, err := decodeFile(file[:n])
			var at *pcap.FileError
			if err == nil {
				ends++ // cut between packets, which is not detectable
			} else if !errors.As(err, &at) || at.Offset > int64(len(file)) && name != "gzip" && name != "zstd" || !strings.HasPrefix(err.Error(), "test.pcap: byte ") {
				t.Fatalf("%s cut at %d: %v", name, n, err)
			}
			if !slices.Equal(got.messages, want[:len(got.messages)]) || len(got.messages) < last {
				t.Fatalf("%s cut at %d: other messages, %d after %d", name, n, len(got.messages), last)
			}
			last = len(got.messages)
		}
		if name != "gzip" && name != "zstd" && ends > 3*whole.stats.Packets+10 {
			t.Errorf("%s: %d of %d cuts are not seen", name, ends, len(file))
		}
	}
	for _, c := range []struct{ file, detail string }{
		{"", "byte 0: the file is empty"},
		{"GET", "expected a pcap or pcapng file, got 3 bytes"},
		{"GET / HTTP/1.1", "expected a pcap or pcapng file"},
		{"\x28\xb5\x2f\xfd....", "byte 0: read error: "},
		{string(zstandard(classic(binary.LittleEndian, 0xa1b2c3d4, 101, ip))[:200]), "byte 0: the compressed file is truncated"},
		{"\x28\xb5\x2f\xfd\x00\x88\x01\x00\x00", "byte 0: decompression needs more memory than jobwire allows"}, // 128 MiB
		{"\x1f\x8b....", "gzip"},
		{string(classic(binary.LittleEndian, 0xa1b2c3d4, 101, nil)) + "\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff", "byte 32: packet 1 has an invalid size of 4294967295 bytes"},
		{string(nextGeneration(binary.LittleEndian, 101, nil)) + "\x06\x00\x00\x00\x0d\x00\x00\x00\x00\x00\x00\x00", "a block has an invalid size of 13 bytes"},
	} {
		if _, _, err := decodeFile([]byte(c.file)); err == nil || !strings.Contains(err.Error(), c.detail) {
			t.Errorf("%.20q: %v, want %s", c.file, err, c.detail)
		}
	}
	broken := iotest.TimeoutReader(iotest.OneByteReader(bytes.NewReader(classic(binary.LittleEndian, 0xa1b2c3d4, 101, ip))))
	if _, err := pcap.NewFile("x", broken); !errors.Is(err, iotest.ErrTimeout) {
		t.Errorf("a reader that fails: %v", err)
	}
}

// TestDecoderReadsWhatWriterWrites tests that the messages of a capture that the package's Writer wrote are decoded
// unchanged.
func TestDecoderReadsWhatWriterWrites(t *testing.T) {
	want, _ := conversation()
	var events []pcap.Event
	for _, m := range want {
		events = append(events, pcap.Event{From: m.from, Data: []byte(m.raw)})
	}
	got, _, err := decodeFile(write(t, 4730, events...))
	if err != nil || !slices.Equal(got.messages, want) {
		t.Errorf("%d messages, want %d: %v", len(got.messages), len(want), err)
	}
}

// FuzzDecode checks that no file makes a decoder panic or use much memory, and that the first version of every byte of a
// stream is passed on exactly once or counted as skipped.
func FuzzDecode(f *testing.F) {
	_, ip := conversation()
	f.Add(classic(binary.LittleEndian, 0xa1b2c3d4, 101, ip[:12]))
	f.Add(nextGeneration(binary.BigEndian, 101, ip[:12]))
	f.Add(classic(binary.LittleEndian, 0xa1b2c3d4, 101, ip[4:12])) // the beginning of the connection is missing
	for _, ex := range exchanges {
		r := rand.New(rand.NewPCG(3, 3))
		_, pieces := segmented(r, ex, 3, 40)
		var packets [][]byte
		for i := range pieces {
			if i%5 != 4 {
				packets = append(packets, pieces[i].packet(ex.port, 1))
			}
		}
		f.Add(classic(binary.BigEndian, 0xa1b23c4d, 101, packets))
		other := slices.Clone(packets[len(packets)-2])
		other[len(other)-1] ^= 1
		f.Add(classic(binary.BigEndian, 0xa1b23c4d, 101, append(packets, other))) // sent again with other data
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		shown, list, lines := int64(0), report.NewListing(io.Discard, report.ListingOptions{Full: true}), report.NewJSONLines(io.Discard, false)
		var sum report.Summary
		d := pcap.NewDecoder(pcap.Options{Likely: len(file)%2 == 0}, func(it *pcap.Item) {
			switch it.Kind {
			case pcap.Skipped:
				shown += int64(it.Missing)
			case pcap.Conflicts: // Raw is a second version of bytes that are shown elsewhere
			default:
				shown += int64(it.Size())
			}
			if it.Kind == pcap.Gap && it.Missing <= 0 || it.First > it.Last {
				panic(fmt.Sprintf("%+v", it))
			}
			list.Add(it)
			lines.Add(it)
			sum.Add(it)
		})
		err := native.Bounded(len(file), 64<<20, 64<<10, func() {
			in, err := pcap.NewFile("fuzz", bytes.NewReader(file))
			if err != nil {
				return
			}
			d.Decode(in)
			sum.Report(d)
		})
		if err != nil {
			t.Error(err)
		}
		if st := d.Stats(); shown != st.StreamBytes {
			t.Errorf("%d bytes shown of %d", shown, st.StreamBytes)
		}
	})
}
