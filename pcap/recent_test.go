package pcap_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"jobwire/codec"
	"jobwire/internal/prose"
	"jobwire/pcap"
	"jobwire/pcap/report"
)

// conflicts decodes pieces of a connection and returns its messages and conflicts.
func conflicts(pieces ...piece) (messages, found []string, st pcap.Stats) {
	d := pcap.NewDecoder(pcap.Options{}, func(it *pcap.Item) {
		switch it.Kind {
		case pcap.Message:
			messages = append(messages, string(it.Raw))
		case pcap.Conflicts:
			found = append(found, fmt.Sprintf("%d: %s, not %s", it.Conflict.Offset, it.Conflict.Earlier, it.Raw))
		}
	})
	for i := range pieces {
		b := pieces[i].packet(11300, 0xfffffff8)
		d.Packet(&pcap.Packet{Number: i + 1, At: int64(i), Link: 101, Data: b, Length: len(b)})
	}
	d.Close()
	return messages, found, d.Stats()
}

// TestConflictingRetransmission sends data again with other bytes: the first version is decoded, and the
// conflict is reported with both versions.
func TestConflictingRetransmission(t *testing.T) {
	const use, using = "use first\r\n", "USING first\r\n"
	begin := []piece{{syn: true}, {from: codec.Server, syn: true}, {data: []byte(use)}, {from: codec.Server, ack: len(use), data: []byte(using)}}
	again := func(off int, data string) piece { return piece{off: off, ack: len(using), data: []byte(data)} }
	next := again(len(use), "watch b\r\n")
	for _, tt := range []struct {
		name  string
		sent  []piece
		found []string
	}{
		{"same data", []piece{again(0, use), next}, nil},
		{"part of it", []piece{again(4, "first"), next}, nil},
		{"other data", []piece{again(0, "use other\r\n"), next}, []string{"4: first\r\n, not other\r\n"}},
		{"other data in a part", []piece{again(6, "xst"), next}, []string{"6: rst\r\n, not xst"}},
		{"other data, then new data", []piece{again(0, "use other\r\nwatch b\r\n"), next}, []string{"4: first\r\n, not other\r\n"}},
		{"across segments", []piece{next, again(9, "\r\nWatch b\r\n")}, []string{"11: watch b\r\n, not Watch b\r\n"}},
		{"first difference in the older segment", []piece{next, again(8, "T\r\nWatch")}, []string{"8: t\r\n, not T\r\nWatch"}},
		{"a keep-alive probe", []piece{again(len(use)-1, "\x00"), next}, nil},
		{"one byte further back", []piece{again(len(use)-2, "\x00"), next}, []string{"9: \r\n, not \x00"}},
		{"before its predecessor", []piece{again(len(use)+4, "h b\r\n"), again(len(use)+4, "h c\r\n"), next}, []string{"17: b\r\n, not c\r\n"}},
		{"data of the server", []piece{next, {from: codec.Server, ack: len(use), data: []byte("USING again\r\n")}}, []string{"6: first\r\n, not again\r\n"}},
	} {
		messages, found, st := conflicts(slices.Concat(begin, tt.sent)...)
		if !slices.Equal(found, tt.found) || st.Conflicts != len(tt.found) {
			t.Errorf("%s: %d conflicts %q, want %q", tt.name, st.Conflicts, found, tt.found)
		}
		if len(messages) < 3 || messages[0] != use || !slices.Contains(messages, using) || !slices.Contains(messages, "watch b\r\n") {
			t.Errorf("%s: messages %q", tt.name, messages)
		}
	}
}

// TestConflictWithinBounds checks how far back data is compared: 64 KiB in the same stream, unless other
// connections have sent too much data since then.
func TestConflictWithinBounds(t *testing.T) {
	for _, tt := range []struct {
		body  int
		found int
	}{{60_000, 1}, {70_000, 0}} {
		put := []byte(fmt.Sprintf("put 0 0 60 %d\r\n%s\r\n", tt.body, strings.Repeat("x", tt.body)))
		pieces := []piece{{syn: true}, {from: codec.Server, syn: true}}
		for off := 0; off < len(put); off += 1000 {
			pieces = append(pieces, piece{off: off, data: put[off:min(len(put), off+1000)]})
		}
		pieces = append(pieces, piece{data: []byte("pot")})
		if _, found, _ := conflicts(pieces...); len(found) != tt.found {
			t.Errorf("%d bytes: conflicts %q", tt.body, found)
		}
	}
}

// TestConflictAtAnyPosition sends other data again throughout a message that is larger than the memory for earlier
// data, and checks that a decoder of a small capture allocates little of this memory.
func TestConflictAtAnyPosition(t *testing.T) {
	const size, step, back = 3 << 20, 999, 60 * 999
	put := fmt.Appendf(nil, "put 0 0 60 %d\r\n%s\r\n", size, strings.Repeat("x", size))
	pieces, want := []piece{{syn: true}, {from: codec.Server, syn: true}}, 0
	for off := 0; off < len(put); off += step {
		pieces = append(pieces, piece{off: off, data: put[off:min(len(put), off+step)]})
		if off > back && off%7 == 0 {
			want++
			pieces = append(pieces, piece{off: off - back + 4, data: []byte("yy")})
		}
	}
	if _, found, _ := conflicts(pieces...); len(found) != want || want < 400 {
		t.Errorf("%d conflicts, want %d", len(found), want)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	conflicts(pieces[:50]...)
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 400<<10 {
		t.Errorf("a decoder of 50 KB of data allocates %d bytes", n)
	}
}

// TestConflictIsShown checks that the listing, the JSON lines and the summary contain a conflict.
func TestConflictIsShown(t *testing.T) {
	long := strings.Repeat("x", 40)
	pieces := []piece{{syn: true}, {from: codec.Server, syn: true}, {data: []byte("use " + long + "\r\n")}, {data: []byte("use y" + long)}}
	text, lines, counts := outputs(report.ListingOptions{}, pieces...)
	for _, c := range []struct{ got, want string }{
		{text, "# conflict: 10.0.0.1:40000 sent other data again, from byte 4 of its stream on\n# decoded:       \"" + long[:32] + "\"\n# not decoded:   \"y" + long[:31] + "\"\n"},
		{lines, `"kind":"conflict","time":0.000000,"frame":4,`},
		{lines, `,"offset":4,"raw":"y` + long[:31] + `","earlier":"` + long[:32] + `"}`},
		{counts, "1  retransmissions with other data than before\n"},
	} {
		if !strings.Contains(c.got, c.want) {
			t.Errorf("%s\nis not in\n%s", c.want, c.got)
		}
	}
}

// outputs returns the listing, the JSON lines and the summary of pieces of a connection.
func outputs(o report.ListingOptions, pieces ...piece) (text, lines, counts string) {
	var b [3]strings.Builder
	l, j, sum := report.NewListing(&b[0], o), report.NewJSONLines(&b[1], false), report.Summary{}
	d := pcap.NewDecoder(pcap.Options{}, func(it *pcap.Item) {
		l.Add(it)
		j.Add(it)
		sum.Add(it)
	})
	for i := range pieces {
		p := pieces[i].packet(11300, 1)
		d.Packet(&pcap.Packet{Number: i + 1, Link: 101, Data: p, Length: len(p)})
	}
	d.Close()
	l.Flush()
	j.Flush()
	sum.Report(d).WriteText(&b[2], prose.Width)
	return b[0].String(), b[1].String(), b[2].String()
}
