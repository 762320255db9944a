package pcap_test

import (
	"bytes"
	"flag"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"jobwire/codec"
	"jobwire/codec/gearman"
	"jobwire/pcap"
)

var (
	cases    = flag.Int("cases", 0, "number of damaged captures for each protocol; 0: 300, or 100 in the short form")
	anyPause = flag.Bool("pauses", false, "senders also pause inside payloads, while the other side sends")
	dump     = flag.Bool("dump", false, "print the packets and what is decoded")
	caseSeed = flag.Uint64("seed", 1, "seed of the first damaged capture")
)

// damagedCases returns the number of damaged captures for each protocol.
func damagedCases() int {
	switch {
	case *cases > 0:
		return *cases
	case testing.Short():
		return 100
	}
	return 300
}

// recorded is the output of a decoder for one connection.
type recorded struct {
	at       [2]int // the position up to which the stream is accounted for
	captured [2]int // bytes in messages, unread or skipped
	listed   [2]map[int]bool
	likely   [2]map[int]bool // false: not a message that was sent
}

// TestDamagedCaptures decodes captures of correct conversations with any part missing. It checks that each
// listed message was sent, that none violates a rule, that every byte is in a message, unread, skipped or in a
// gap, and that every message is listed whose boundaries the capture proves.
func TestDamagedCaptures(t *testing.T) {
	for _, sp := range speakers {
		t.Run(sp.protocol.Name, func(t *testing.T) {
			t.Parallel()
			listed, sent, proved := 0, 0, 0
			for seed := *caseSeed; seed < *caseSeed+uint64(damagedCases()); seed++ {
				l, n, p, err := damagedCase(sp, seed)
				if err != nil {
					t.Errorf("%v\nto repeat it: go test ./pcap -run '%s' -args -cases 1 -seed %d", err, t.Name(), seed)
					return
				}
				listed, sent, proved = listed+l, sent+n, proved+p
			}
			t.Logf("%d captures: %d of %d messages listed; %d had to be", damagedCases(), listed, sent, proved)
			if listed < sent/3 {
				t.Errorf("expected many messages after the damage, got %d of %d", listed, sent)
			}
		})
	}
}

// damagedCase generates a capture and checks what is decoded. It returns the number of messages that were
// listed, that were sent, and that had to be listed.
func damagedCase(s speaker, seed uint64) (listed, sent, proved int, err error) {
	s.reset(seed)
	if s.IntN(8) == 0 {
		s.big = []int{33 << 10, 70 << 10}[s.IntN(2)]
	}
	var of []*dialogue
	for i := range []int{1, 1, 2, 3}[s.IntN(4)] {
		of = append(of, s.converse(40000+uint16(i), 1+s.IntN(12)))
	}
	all := s.capture(of)
	names := slices.Sorted(maps.Keys(damages))
	var how []string
	for _, d := range of {
		how = append(how, names[s.IntN(len(names))])
		all = damages[how[len(how)-1]](&s, d, all)
	}
	o := pcap.Options{Audit: s.IntN(2) == 0}
	if s.IntN(3) == 0 {
		o.Protocol = s.protocol
	}
	if s.IntN(6) == 0 {
		o.Ports = []uint16{s.port}
	}
	o.Audit = o.Audit || o.Protocol != nil && o.Ports != nil // without Audit, these options permit guesses
	if listed, sent, proved, err = s.check(all, of, o, false); err != nil {
		err = fmt.Errorf("damage %q, %w", how, err)
	}
	return listed, sent, proved, err
}

// reset starts the random numbers of a case.
func (s *speaker) reset(seed uint64) {
	h := fnv.New64()
	h.Write([]byte(s.protocol.Name))
	s.Rand = rand.New(rand.NewPCG(seed, h.Sum64()))
}

// check decodes a capture and checks what is decoded. It returns the number of messages that were listed, that were
// sent, and that had to be listed. If only the beginning is missing, no message may be missing after a listed one.
func (s *speaker) check(all []frame, of []*dialogue, o pcap.Options, onlyBeginning bool) (listed, sent, proved int, err error) {
	got, err := s.record(all, of, o)
	if err != nil {
		return 0, 0, 0, fmt.Errorf("options %+v: %w", o, err)
	}
	for _, d := range of {
		r := got[d]
		pos, total := startOf(all, d)
		have, last := provable(all, d)
		for side := range 2 {
			where := fmt.Sprintf("options %+v, connection of port %d, side %d", o, d.port, side)
			if r.captured[side] != total[side] || r.at[side] > len(d.streams[side]) {
				return 0, 0, 0, fmt.Errorf("%s: expected %d bytes accounted for, got %d; from %d to %d", where, total[side], r.captured[side], pos[side], r.at[side])
			}
			before := false
			for _, at := range slices.Sorted(maps.Keys(d.ends[side])) {
				end := d.ends[side][at]
				sent++
				if r.listed[side][at] {
					listed++
				} else if before && onlyBeginning && !s.listedOnlyIfWhole(d, side, at, have) {
					return 0, 0, 0, fmt.Errorf("%s: the message at %d is not listed, but one before it is", where, at)
				}
				before = before || r.listed[side][at]
				if have[side] >= 0 && at >= have[side] && end <= last[side] && !s.listedOnlyIfWhole(d, side, at, have) {
					proved++
					if !r.listed[side][at] {
						return 0, 0, 0, fmt.Errorf("%s: the message at %d is not listed, %.40q; all from %d on are proved", where, at, d.streams[side][at:end], have[side])
					}
				}
			}
		}
	}
	return listed, sent, proved, nil
}

// TestCutAnywhere checks captures that begin after any byte of a conversation.
func TestCutAnywhere(t *testing.T) {
	enough := 60_000
	if testing.Short() {
		enough = 20_000
	}
	for _, s := range speakers {
		t.Run(s.protocol.Name, func(t *testing.T) {
			t.Parallel()
			listed, sent := 0, 0
			for seed := uint64(1); sent < enough; seed++ {
				s.reset(seed)
				d := s.converse(40000, 8)
				of, size := []*dialogue{d}, len(d.streams[0])+len(d.streams[1])
				if size > 3000 { // takes long
					continue
				}
				all := s.capture(of)
				for n := 1; n <= size; n++ {
					o := pcap.Options{Audit: seed%2 == 1}
					l, k, _, err := s.check(cutFrames(all, d, n), of, o, true)
					if err != nil {
						t.Fatalf("seed %d, cut at byte %d: %v", seed, n, err)
					}
					listed, sent = listed+l, sent+k
				}
			}
			if listed < sent/5 {
				t.Errorf("expected many messages after the cuts, got %d of %d", listed, sent)
			}
		})
	}
}

// record decodes a capture. It returns an error if a message was not sent, or violates a rule.
func (s *speaker) record(all []frame, of []*dialogue, o pcap.Options) (map[*dialogue]*recorded, error) {
	got := map[*dialogue]*recorded{}
	for _, d := range of {
		at, _ := startOf(all, d)
		got[d] = &recorded{at: at, listed: [2]map[int]bool{{}, {}}, likely: [2]map[int]bool{{}, {}}}
	}
	var failed error
	dec := pcap.NewDecoder(o, func(it *pcap.Item) {
		peer, from := it.Conn.Peer.Port(), it.From
		if peer == s.port { // the decoder does not know which end is the server and has guessed wrong
			peer, from = it.Conn.Server.Port(), from.Other()
		}
		d := of[peer-40000]
		r := got[d]
		at := r.at[from]
		fail := func(text string) {
			if failed == nil {
				failed = fmt.Errorf("connection of port %d, side %d at %d, packet %d: %s: %.60q", peer, from, at, it.Last, text, it.Raw)
			}
		}
		if *dump {
			fmt.Printf("    item kind %d port %d side %d at %d: %d missing, %.60q\n", it.Kind, peer, from, at, it.Missing, it.Raw)
		}
		end := at + len(it.Raw)
		if end > len(d.streams[from]) || !bytes.Equal(d.streams[from][at:end], it.Raw) {
			fail("bytes that were not sent here")
			return
		}
		switch it.Kind {
		case pcap.Violates:
			fail("violation: " + it.Err.Error())
		case pcap.Message:
			if d.ends[from][at] != end || from != it.From {
				fail("a message that was not sent")
			}
			r.listed[from][at] = true
		case pcap.Likely:
			r.likely[from][at] = d.ends[from][at] == end && from == it.From
		case pcap.Gap, pcap.Skipped:
			end += it.Missing
			if it.Kind == pcap.Skipped {
				r.captured[from] += it.Missing
			}
		}
		r.captured[from] += len(it.Raw)
		r.at[from] = end
	})
	for i := range all {
		if *dump {
			f := all[i]
			fmt.Printf("packet %d port %d side %d off %d ack %d syn %v fin %v lost %d %.60q\n", i+1, f.of.port, f.from, f.off, f.ack, f.syn, f.fin, f.lost, f.data)
		}
		b, length := all[i].packet(s.port)
		dec.Packet(&pcap.Packet{Number: i + 1, At: int64(i) * 1e6, Link: 101, Data: b, Length: length})
	}
	dec.Close()
	return got, failed
}

// startOf returns the positions from which the bytes of a conversation are known to the decoder, and the number
// of bytes captured after them.
func startOf(all []frame, d *dialogue) (start, captured [2]int) {
	known, begun := [2]bool{}, false
	var done [2]int
	for _, f := range all {
		if begun = begun || f.of == d && (f.syn || len(f.data) > 0); f.of != d || !begun {
			continue
		}
		if !known[f.from] {
			known[f.from], start[f.from] = true, f.off
			done[f.from] = f.off
		}
		if other := f.from.Other(); !known[other] && !(f.syn && f.from == codec.Peer) {
			known[other], start[other] = true, f.ack
			done[other] = f.ack
		}
		if end := f.off + len(f.data) - f.lost; end > done[f.from] {
			captured[f.from] += end - max(f.off, done[f.from])
			done[f.from] = end
		}
	}
	return start, captured
}

// listedOnlyIfWhole reports whether a reply is text of Gearman in an incomplete capture, or an answer to a request before
// the proved boundary. Such text is listed only if its end is certain.
func (s *speaker) listedOnlyIfWhole(d *dialogue, side, at int, from [2]int) bool {
	text := s.protocol == gearman.Protocol && from != [2]int{} && d.streams[side][at] != 0
	return side == int(codec.Server) && (text || d.askedBy[at] < from[codec.Peer])
}

// provable returns the positions from which on all messages must be listed, or -1, and the ends of the captured
// bytes. If nothing is missing, the positions are 0. Otherwise they are those of the first point after the
// damage at which three conditions are true: the sender changes, both sides have received all data, and both
// directions are at the end of a message. The second and third conditions must also be true at the next changes
// of the sender.
func provable(all []frame, d *dialogue) (from, last [2]int) {
	never := [2]int{-1, -1}
	begins := [2]bool{}
	pos, _ := startOf(all, d)
	sender, level := -1, false
	found, turns := never, 0
	damaged := false
	for _, f := range all {
		if f.of != d {
			continue
		}
		begins[f.from] = begins[f.from] || f.syn
		other := f.from.Other()
		if begins[0] && f.ack > pos[other] || f.off > pos[f.from] || f.lost > 0 {
			damaged = true
		}
		if f.ack > pos[other] || f.off > pos[f.from] {
			pos[other], pos[f.from] = max(pos[other], f.ack), max(pos[f.from], f.off)
			found, sender = never, -1
		}
		if len(f.data) == 0 {
			continue
		}
		now := f.ack == pos[other]
		if sender == int(other) && level && now {
			switch both := d.whole(0, pos[0]) && d.whole(1, pos[1]); {
			case found == never && both:
				found, turns = pos, 0
			case both:
				turns++
			case turns < enoughTurns:
				found = never
			}
		}
		sender, level = int(f.from), now
		if pos[f.from] = f.off + len(f.data); f.lost > 0 {
			found, sender = never, -1
		}
	}
	switch {
	case begins[0] && begins[1] && !damaged:
		return [2]int{}, pos
	case turns < enoughTurns:
		return never, pos
	}
	return found, pos
}

// enoughTurns is the number of changes of the sender after a boundary that prove the boundary in every case.
const enoughTurns = 5

// whole reports whether a message ends or begins at a position.
func (d *dialogue) whole(side codec.Side, at int) bool {
	_, begins := d.ends[side][at]
	return begins || at == len(d.streams[side])
}
