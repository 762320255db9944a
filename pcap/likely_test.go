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
	"jobwire/pcap/report"
)

// found counts messages whose boundaries are not proved.
type found struct {
	listed, left int // of the messages that were captured completely: listed as likely ones, or left out
	sent, wrong  int // of the likely messages: those that were sent, and others
}

func (f *found) add(o found) {
	f.listed, f.left, f.sent, f.wrong = f.listed+o.listed, f.left+o.left, f.sent+o.sent, f.wrong+o.wrong
}

func (f *found) String() string {
	return fmt.Sprintf("%d of %d listed (%.1f %%); wrong: %d of %d", f.listed, f.listed+f.left, f.recall(), f.wrong,
		f.sent+f.wrong)
}

func (f *found) recall() float64 { return 100 * float64(f.listed) / float64(max(1, f.listed+f.left)) }

func (f *found) precise() bool { return 100*f.wrong <= f.sent+f.wrong }

// Classes of messages that are not proved.
const (
	// The bytes do not show where these begin: payloads contain messages, too.
	inPacket = "after the rest of a message, in packets that begin with no message"

	line  = "line of text of a client in a binary protocol"
	other = "other message"
)

// TestLikelyMessages decodes the captures of TestDamagedCaptures and counts likely messages: nearly all were sent,
// though payloads contain messages, too, and nearly all captured messages are listed, by class and by damage. Likely
// messages do not change which messages are proved. Lines of Gearman's server are not counted: their end depends on the
// request.
func TestLikelyMessages(t *testing.T) {
	count := uint64(damagedCases()) / 20
	var all found
	for _, s := range speakers {
		var total found
		parts := map[string]*found{}
		for how := range damages {
			parts["damage: "+how] = &found{}
			for seed := *caseSeed; seed < *caseSeed+count; seed++ {
				classes, err := likelyCase(s, how, seed)
				if err != nil {
					t.Fatalf("%s, %s, seed %d: %v", s.protocol.Name, how, seed, err)
				}
				for class, f := range classes {
					if parts[class] == nil {
						parts[class] = &found{}
					}
					parts[class].add(f)
					parts["damage: "+how].add(f)
					total.add(f)
				}
			}
		}
		t.Logf("%s: %v", s.protocol.Name, &total)
		for _, part := range slices.Sorted(maps.Keys(parts)) {
			if f := parts[part]; *f != (found{}) {
				t.Logf("    %s: %v", part, f)
			}
		}
		if parts[other].recall() < 95 || total.sent > 1000 && !total.precise() {
			t.Errorf("%s: expected 99 %% right, and 95 %% of class %q", s.protocol.Name, other)
		}
		all.add(total)
	}
	if !all.precise() || all.recall() < 95 {
		t.Errorf("expected 99 %% right, and 95 %% of the messages: %v", &all)
	}
}

// likelyCase counts by class the messages of a damaged capture that were captured completely and are not proved.
func likelyCase(s speaker, how string, seed uint64) (classes map[string]found, err error) {
	s.reset(seed)
	d := s.converse(40000, 1+s.IntN(30))
	all := damages[how](&s, d, s.capture([]*dialogue{d}))
	with, err := s.record(all, []*dialogue{d}, pcap.Options{Likely: true})
	if err != nil {
		return nil, err
	}
	without, err := s.record(all, []*dialogue{d}, pcap.Options{})
	r := with[d]
	start, _ := startOf(all, d)
	classes = map[string]found{}
	for side := range codec.Side(2) {
		if !maps.Equal(r.listed[side], without[d].listed[side]) {
			err = fmt.Errorf("side %d: other messages are proved", side)
		}
		have, begins := make([]bool, len(d.streams[side])), map[int]bool{}
		for _, f := range all {
			if f.from == side && len(f.data) > f.lost {
				begins[f.off] = true
				for i := f.off; i < f.off+len(f.data)-f.lost; i++ {
					have[i] = true
				}
			}
		}
		last, packet := -1, false // end of the last message that was captured, and whether one of its row begins a packet
		for _, at := range slices.Sorted(maps.Keys(d.ends[side])) {
			end := d.ends[side][at]
			if at < start[side] || slices.Contains(have[at:end], false) {
				continue
			}
			packet = begins[at] || packet && last == at
			last = end
			class, text := other, s.protocol == gearman.Protocol && d.streams[side][at] != 0
			switch {
			case text && side == codec.Server || r.listed[side][at]:
				continue
			case !packet:
				class = inPacket
			case text:
				class = line
			}
			f := classes[class]
			if r.likely[side][at] {
				f.listed++
			} else {
				f.left++
			}
			classes[class] = f
		}
		for _, sent := range r.likely[side] {
			f := classes[other]
			if sent {
				f.sent++
			} else {
				f.wrong++
			}
			classes[other] = f
		}
	}
	return classes, err
}

// TestLikelyEvidence checks which bytes make messages likely, in captures of one connection from the middle on.
func TestLikelyEvidence(t *testing.T) {
	p, s := codec.Peer, codec.Server
	send := func(from codec.Side, off, ack int, data string) piece {
		return piece{from: from, off: off, ack: ack, data: []byte(data)}
	}
	for _, c := range []struct {
		name   string
		port   uint16
		want   string
		pieces []piece
	}{
		{"a message up to the end", 11300, "delete 7\r\n", []piece{send(p, 100, 50, "delete 7\r\n")}},
		{"a port of no protocol", 9999, "", []piece{send(p, 100, 50, "delete 7\r\n")}},
		{"four messages at this port", 9999, "use a\r\nuse b\r\nuse c\r\ndelete 7\r\n",
			[]piece{send(p, 100, 50, "use a\r\nuse b\r\nuse c\r\ndelete 7\r\n")}},
		{"the packet does not begin with a message", 11300, "", []piece{send(p, 100, 50, "rest\r\ndelete 7\r\n")}},
		{"the messages do not end with the bytes", 11300, "", []piece{send(p, 100, 50, "use a\r\nuse b\r\nnothing\r\n")}},
		{"a reply that is missing follows", 11300, "use a\r\n",
			[]piece{send(p, 100, 50, "use a\r\n"), send(p, 107, 59, "nothing\r\n")}},
		{"no reply follows", 11300, "", []piece{send(p, 100, 50, "use a\r\n"), send(p, 107, 50, "nothing\r\n")}},
		{"a missing reply comes before, and a gap after an incomplete message", 11300, "use a\r\n",
			[]piece{send(p, 100, 50, "rest\r\n"), send(p, 106, 59, "use a\r\nput 0 0 9 9\r\nx"),
				send(p, 200, 59, "nothing\r\n")}},
		{"no reply comes before", 11300, "",
			[]piece{send(p, 100, 50, "rest\r\n"), send(p, 106, 50, "use a\r\nput 0 0 9 9\r\nx"),
				send(p, 200, 50, "nothing\r\n")}},
		{"data of both sides is missing before, so that their order is unknown", 11300, "",
			[]piece{send(p, 100, 50, "rest\r\n"), send(p, 206, 59, "use a\r\nput 0 0 9 9\r\nx"),
				send(p, 300, 59, "nothing\r\n")}},
		{"a line of text in a binary protocol", 4730, "", []piece{send(p, 100, 50, "rest\n"), send(p, 105, 50, "status\n")}},
		{"the same after a reply", 4730, "status\n",
			[]piece{send(p, 100, 50, "rest\n"), send(s, 50, 105, "x"), send(p, 105, 51, "status\n")}},
		{"the same before a reply", 4730, "status\n",
			[]piece{send(p, 100, 50, "rest\n"), send(p, 105, 50, "status\n"), send(s, 50, 112, "x"), send(p, 112, 51, "rest\n")}},
		{"the replier had not received everything", 4730, "",
			[]piece{send(p, 100, 50, "rest\n"), send(s, 50, 101, "x"), send(p, 105, 51, "status\n")}},
		{"HTTP", 8080, "", []piece{send(p, 100, 50, "GET / HTTP/1.1\r\nHost: a\r\nAccept: *\r\nVia: x\r\nFrom: y\r\n\r\n")}},
	} {
		var got strings.Builder
		d := pcap.NewDecoder(pcap.Options{Likely: true}, func(it *pcap.Item) {
			switch it.Kind {
			case pcap.Likely:
				got.Write(it.Raw)
			case pcap.Message, pcap.Violates:
				t.Errorf("%s: %q is listed as proved", c.name, it.Raw)
			}
		})
		for i := range c.pieces {
			b := c.pieces[i].packet(c.port, 1)
			d.Packet(&pcap.Packet{Number: i + 1, At: int64(i) * 1e9, Link: 101, Data: b, Length: len(b)})
		}
		d.Close()
		if got.String() != c.want {
			t.Errorf("%s: likely messages %q, want %q", c.name, got.String(), c.want)
		}
	}
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
			l, j, sum := report.NewListing(&b[0], report.ListingOptions{Lines: true}), report.NewJSONLines(&b[1], false),
				report.Summary{}
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
