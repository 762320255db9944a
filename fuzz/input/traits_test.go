package input

import (
	"strings"
	"testing"

	"jobwire/codec"
	"jobwire/codec/beanstalk"
	"jobwire/codec/danga"
	"jobwire/codec/gearman"
	"jobwire/codec/gearmonkey"
)

// TestWordsInParts tests that IsUnsafe also finds an unsafe word that is sent in several parts.
func TestWordsInParts(t *testing.T) {
	d := TraitsOf(gearman.Protocol)
	if !d.IsUnsafe([]byte("status\nshut"), []byte("down\n")) || d.IsUnsafe([]byte("shut\n"), []byte("status\n")) {
		t.Error("expected only shutdown to be unsafe")
	}
	if d.IsUnsafe([]byte("shutdown\n"), []byte("status\n")) {
		t.Error("expected that shutdown, which was sent before, does not make status unsafe")
	}
	d = TraitsOf(gearmonkey.Protocol)
	for script, safe := range map[string]bool{gearmonkey.Script: true, "while true do end": false} {
		load := Step{Type: gearmonkey.Protocol.TypeNamed("SCRIPT_LOAD"), Args: []Arg{{Value: []byte(script)}}}
		if d.IsSafe(&load, encoded(t, &load)) != safe {
			t.Errorf("the script %s: expected that it is safe: %v", script, safe)
		}
	}
	d = TraitsOf(beanstalk.Protocol)
	if !d.NamesNumbers([]byte("reserve-jo"), []byte("b 42\r\n")) || !d.NamesNumbers(nil, []byte("stats-job 1\r\n")) || d.NamesNumbers([]byte("stats\r\n"), []byte("use a\r\n")) {
		t.Error("expected reserve-job and stats-job to name a job, and use to name none")
	}
}

// TestTraits tests that TraitsOf derives the properties of each protocol from its contract.
func TestTraits(t *testing.T) {
	for _, tt := range []struct {
		p                                                                 *codec.Protocol
		preamble, changes, lists, waits, numbered                         string
		unsafe, hasNumbers, openLists, computes, inOrder, attached, reuse bool
	}{
		{p: gearman.Protocol, changes: "SUBMIT_JOB_SCHED SUBMIT_JOB_EPOCH maxqueue create-function drop-function",
			lists: "workers status prioritystatus show-jobs show-unique-jobs", unsafe: true, openLists: true, reuse: true},
		{p: beanstalk.Protocol, preamble: "use a watch a ignore default", changes: "pause-tube", lists: "stats list-tubes list-tubes-watched",
			waits:    "reserve reserve-with-timeout",
			numbered: "reserve-job ,delete ,release ,bury ,touch ,peek ,kick-job ,stats-job ", hasNumbers: true, inOrder: true, reuse: true},
		{p: danga.Protocol, attached: true},
		{p: gearmonkey.Protocol, changes: "ZADD_SCHEDULED SUBSCRIBE_CHANNEL UNSUBSCRIBE_CHANNEL SET_COUNT SET_UID", waits: "BRPOP_LOCK BRPOP_QUEUES",
			unsafe: true, computes: true, inOrder: true},
	} {
		d := TraitsOf(tt.p)
		list := func(is func(*codec.Type) bool) string {
			var names []string
			for _, typ := range tt.p.Types {
				if is(typ) {
					names = append(names, typ.Name)
				}
			}
			return strings.Join(names, " ")
		}
		var preamble []string
		for _, s := range d.Preamble {
			preamble = append(preamble, s.Type.Name, string(s.Args[0].Value))
		}
		for what, pair := range map[string][2]string{
			"preamble": {strings.Join(preamble, " "), tt.preamble}, "changes a queue": {list(changesQueue), tt.changes}, "lists all": {list(ListsAll), tt.lists},
			"may wait": {list(MayWait), tt.waits}, "numbered": {strings.Join(d.numbered, ","), tt.numbered},
		} {
			if pair[0] != pair[1] {
				t.Errorf("%s, %s: expected %q, got %q", tt.p.Name, what, pair[1], pair[0])
			}
		}
		got := [...]bool{len(d.unsafe) > 0, d.HasNumbers, d.OpenLists, d.computes, d.InOrder, d.attached, d.Reuse}
		if want := [...]bool{tt.unsafe, tt.hasNumbers, tt.openLists, tt.computes, tt.inOrder, tt.attached, tt.reuse}; got != want {
			t.Errorf("%s: expected %v, got %v", tt.p.Name, want, got)
		}
		for _, id := range tt.p.Caps {
			if tt.p.Rule(id) == nil {
				t.Errorf("%s has no rule %s", tt.p.Name, id)
			}
		}
		if n := len(readTemplates(tt.p, templates, func(*codec.Type) bool { return true })); n < len(templates)/2 {
			t.Errorf("%s: expected at least half of the %d templates, got %d", tt.p.Name, len(templates), n)
		}
	}
}

// TestPrefixesDiffer tests that the prefixes of names are different, as long as the placeholder, and do not contain it.
func TestPrefixesDiffer(t *testing.T) {
	const prefixes = 30 * 30 * 30 * 30 * 30 // with the same first letter
	seen := map[string]uint64{}
	for _, from := range []uint64{0, 29, prefixes - 2, 2*prefixes - 2, 25*prefixes + prefixes - 5} {
		for n := from; n < from+4; n++ {
			p := PrefixOf('A', n)
			if len(p) != len(Placeholder) || strings.Contains(p, Placeholder) {
				t.Errorf("prefix %d is %q", n, p)
			}
			if m, again := seen[p]; again && m != n {
				t.Errorf("prefixes %d and %d are both %q", m, n, p)
			}
			seen[p] = n
		}
	}
}

// encoded returns the bytes of a message of GearMonkey.
func encoded(t *testing.T, s *Step) []byte {
	m := s.Message()
	b, err := gearmonkey.Protocol.NewSession(codec.Options{}).Append(nil, codec.Peer, &m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
