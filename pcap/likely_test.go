package pcap_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"jobwire/codec"
	"jobwire/codec/gearman"
	"jobwire/internal/prose"
	"jobwire/pcap"
)

// TestLikelyMessages decodes the captures of TestDamagedCaptures and counts likely messages: nearly all were sent,
// though payloads contain messages, too. Likely messages do not change which messages are proved. Lines of
// Gearman's server are not counted: their end depends on the request.
func TestLikelyMessages(t *testing.T) {
	count := uint64(*cases) / 20
	for _, s := range speakers {
		t.Run(s.protocol.Name, func(t *testing.T) {
			t.Parallel()
			right, wrong, left := 0, 0, 0
			for _, how := range slices.Sorted(maps.Keys(damages)) {
				for seed := *caseSeed; seed < *caseSeed+count; seed++ {
					r, w, l, err := likelyCase(s, how, seed)
					if err != nil {
						t.Fatalf("%s, seed %d: %v", how, seed, err)
					}
					right, wrong, left = right+r, wrong+w, left+l
				}
			}
			t.Logf("%d of %d likely messages were sent; %d of %d captured ones are left out", right, right+wrong, left,
				right+left)
			if 100*wrong > right+wrong || 3*right < left {
				t.Errorf("expected 99 %% right, and a quarter of the messages")
			}
		})
	}
}

// likelyCase returns the number of likely messages that were sent, of those that were not, and of messages that were
// captured completely and are neither proved nor likely.
func likelyCase(s speaker, how string, seed uint64) (right, wrong, left int, err error) {
	s.reset(seed)
	d := s.converse(40000, 1+s.IntN(30))
	all := damages[how](&s, d, s.capture([]*dialogue{d}))
	with, err := s.record(all, []*dialogue{d}, pcap.Options{Likely: true})
	if err != nil {
		return 0, 0, 0, err
	}
	without, err := s.record(all, []*dialogue{d}, pcap.Options{})
	r := with[d]
	start, _ := startOf(all, d)
	for side := range 2 {
		if !maps.Equal(r.listed[side], without[d].listed[side]) {
			err = fmt.Errorf("side %d: other messages are proved", side)
		}
		have := make([]bool, len(d.streams[side]))
		for _, f := range all {
			if int(f.from) == side {
				for i := f.off; i < f.off+len(f.data)-f.lost; i++ {
					have[i] = true
				}
			}
		}
		for at, end := range d.ends[side] {
			line := s.protocol == gearman.Protocol && side == int(codec.Server) && d.streams[side][at] != 0
			captured := at >= start[side] && !slices.Contains(have[at:end], false)
			if captured && !line && !r.listed[side][at] && !r.likely[side][at] {
				left++
			}
		}
		for _, sent := range r.likely[side] {
			if sent {
				right++
			} else {
				wrong++
			}
		}
	}
	return right, wrong, left, err
}

// TestLikelyIsMarked checks the mark of likely messages in the listing, in JSON and in the summary, and that a filter
// selects them.
func TestLikelyIsMarked(t *testing.T) {
	pieces := []piece{{off: 100, ack: 50, data: []byte("rest\r\n")},
		{off: 106, ack: 50, data: []byte("use a\r\nuse b\r\nuse c\r\n")}, {off: 127, ack: 50, data: []byte("delete 7\r\n")}}
	for _, c := range []struct {
		o     pcap.Options
		count int
	}{{pcap.Options{Likely: true}, 4}, {pcap.Options{}, 0}, {pcap.Options{Likely: true, Check: true}, 4}} {
		for _, filter := range []string{"", "type=delete"} {
			var b [3]strings.Builder
			l, j, sum := pcap.NewListing(&b[0], pcap.ListingOptions{Lines: true}), pcap.NewJSONLines(&b[1], false),
				pcap.Summary{}
			want := c.count
			if filter != "" {
				c.o.Filter, _ = pcap.ParseFilter(filter)
				want = min(want, 1)
			}
			d := pcap.NewDecoder(c.o, func(it *pcap.Item) {
				l.Add(it)
				j.Add(it)
				sum.Add(it)
			})
			for i := range pieces {
				p := pieces[i].packet(11300, 1)
				d.Packet(&pcap.Packet{Number: i + 1, At: int64(i) * 1e9, Link: 101, Data: p, Length: len(p)})
			}
			d.Close()
			l.Flush()
			j.Flush()
			r := sum.Report(d)
			r.WriteText(&b[2], prose.Width)
			text, lines, report := b[0].String(), b[1].String(), b[2].String()
			if strings.Count(text, " ?\n") != want || strings.Count(text, "? marks") != min(want, 1) || want > 0 &&
				!strings.Contains(text, "delete 7\n") {
				t.Errorf("%+v:\n%s", c.o, text)
			}
			if strings.Count(lines, `"protocol":"beanstalk","likely":true,`) != want || len(r.Messages) != 0 ||
				r.Violations != 0 || r.Likely != c.count {
				t.Errorf("%+v: %d likely\n%s", c.o, r.Likely, lines)
			}
			if strings.Count(lines, `"kind":"message","time":2.000000,"frame":3,`) != min(want, 1) {
				t.Errorf("%+v: the last message is not in packet 3, at 2 s\n%s", c.o, lines)
			}
			if strings.Contains(report, "4  likely messages") != (c.count > 0) || d.Stats().Skipped != map[int]int64{0: 37,
				4: 6}[c.count] {
				t.Errorf("%+v:\n%s", c.o, report)
			}
		}
	}
}
