package input

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"jobwire/codec"
	"jobwire/codec/beanstalk"
	"jobwire/codec/danga"
	"jobwire/codec/gearman"
	"jobwire/codec/transcript"
)

// sends reports whether a step is a message of a type whose name has the prefix.
func sends(s *Step, prefix string) bool {
	return s.Type != nil && s.Verb == transcript.Send && strings.HasPrefix(s.Type.Name, prefix)
}

// value returns the argument for the field with the label, or nil.
func value(s *Step, label string) []byte {
	for i := range s.Args {
		if f := s.Type.FieldAt(i); f != nil && f.Name == label && s.Args[i].Of == 0 {
			return s.Args[i].Value
		}
	}
	return nil
}

// inTurn reports whether the conditions are true for steps in this order, possibly with other steps in between.
func inTurn(in *Input, conds ...func(s *Step) bool) bool {
	for i := range in.Steps {
		if len(conds) > 0 && conds[0](&in.Steps[i]) {
			conds = conds[1:]
		}
	}
	return len(conds) == 0
}

// TestGeneratesWhatBreaksServers tests that the generator reaches, without seeds, messages that are known to crash real
// servers.
func TestGeneratesWhatBreaksServers(t *testing.T) {
	anyStep := func(cond func(s *Step) bool) func(in *Input) bool {
		return func(in *Input) bool { return inTurn(in, cond) }
	}
	unique := func(n int) func(in *Input) bool {
		return anyStep(func(s *Step) bool { return sends(s, "SUBMIT") && len(value(s, "Unique ID")) == n })
	}
	for _, tt := range []struct {
		p    *codec.Protocol
		what string
		is   func(in *Input) bool
	}{
		{gearman.Protocol, "a unique ID of 63 bytes", unique(63)},
		{gearman.Protocol, "a unique ID of 64 bytes", unique(64)},
		{gearman.Protocol, "a unique ID of 65 bytes", unique(65)},
		{gearman.Protocol, "a unique ID of 8000 bytes", unique(8000)},
		{gearman.Protocol, "progress beyond 32 bits", anyStep(func(s *Step) bool {
			return sends(s, "WORK_STATUS") && s.Args[0].Of > 0 && len(value(s, "Numerator")) >= 10 && value(s, "Numerator")[0] >= '4'
		})},
		{gearman.Protocol, "a blank at the end of a line", anyStep(func(s *Step) bool {
			return s.Verb == transcript.Raw && bytes.HasPrefix(s.Bytes, []byte("status ")) && bytes.HasSuffix(s.Bytes, []byte(" \n"))
		})},
		{gearman.Protocol, "a client leaves after another client joined its job, before the result", func(in *Input) bool {
			of := map[string]int{}
			return inTurn(in, func(s *Step) bool {
				if sends(s, "SUBMIT_JOB") && len(value(s, "Unique ID")) > 0 {
					of[string(value(s, "Function"))+"\x00"+string(value(s, "Unique ID"))]++
				}
				for _, n := range of {
					if n > 1 {
						return true
					}
				}
				return false
			}, func(s *Step) bool { return slices.Contains(Leaves, s.Verb) }, func(s *Step) bool { return sends(s, "WORK_COMPLETE") && s.Args[0].Of > 0 })
		}},
		{gearman.Protocol, "a grab with a time limit, after which time passes", func(in *Input) bool {
			return inTurn(in, func(s *Step) bool { return sends(s, "CAN_DO_TIMEOUT") }, func(s *Step) bool { return sends(s, "GRAB") },
				func(s *Step) bool { return s.Verb == transcript.Nothing }, func(s *Step) bool { return sends(s, "WORK_") })
		}},
		{beanstalk.Protocol, "33 different tubes that one client watches", func(in *Input) bool {
			tubes := map[string]bool{}
			for i := range in.Steps {
				if s := &in.Steps[i]; sends(s, "watch") {
					tubes[string(rune(s.Conn))+string(value(s, "Tube"))] = true
				}
			}
			return len(tubes) >= 33
		}},
		{gearman.Protocol, "a hundred messages on one connection", func(in *Input) bool {
			kinds := map[*codec.Type]bool{}
			for i := range in.Steps {
				kinds[in.Steps[i].Type] = true
			}
			return len(in.Steps) >= 100 && in.Conns() == 1 && len(kinds) >= 5
		}},
		{gearman.Protocol, "ten thousand functions", func(in *Input) bool { return len(in.Steps) >= 10_000 }},
		{gearman.Protocol, "urgent data", anyStep(func(s *Step) bool { return s.Verb == transcript.Urgent })},
		{gearman.Protocol, "a megabyte of requests of a client that reads nothing", func(in *Input) bool {
			return inTurn(in, func(s *Step) bool { return s.Verb == transcript.StopsReading },
				func(s *Step) bool { return len(s.Bytes) >= 100<<10 }, func(s *Step) bool { return len(s.Bytes) >= 100<<10 })
		}},
		{gearman.Protocol, "a report just after a time limit of one", func(in *Input) bool {
			return inTurn(in, func(s *Step) bool { return sends(s, "CAN_DO_TIMEOUT") && string(value(s, "Timeout")) == "1" },
				func(s *Step) bool { return sends(s, "GRAB") },
				func(s *Step) bool {
					return s.Verb == transcript.Nothing && s.For > time.Second && s.For < 1100*time.Millisecond
				},
				func(s *Step) bool { return sends(s, "WORK_COMPLETE") })
		}},
		{beanstalk.Protocol, "a blank at the end of a command", anyStep(func(s *Step) bool {
			return s.Verb == transcript.Raw && bytes.HasPrefix(s.Bytes, []byte("stats ")) && bytes.HasSuffix(s.Bytes, []byte(" \r\n"))
		})},
		{beanstalk.Protocol, "the lowest priority", anyStep(func(s *Step) bool { return sends(s, "put") && string(value(s, "Priority")) == "4294967295" })},
		{beanstalk.Protocol, "a worker who leaves while it waits", func(in *Input) bool {
			return inTurn(in, func(s *Step) bool { return sends(s, "reserve") }, func(s *Step) bool { return slices.Contains(Leaves, s.Verb) }, func(s *Step) bool { return sends(s, "put") })
		}},
	} {
		b := NewGenerator(tt.p, NewRand(3), &Known{})
		made := 0
		for n := 0; n < 100_000 && made == 0; n++ {
			b.Slow = n%2 > 0
			in := b.Generate()
			if len(in.Steps) > 0 && n%4 < 2 {
				in = b.Mutate(in, func() *Input { return nil })
			}
			if tt.is(in) {
				made = n + 1
			}
		}
		if made == 0 {
			t.Errorf("%s: never made: %s", tt.p.Name, tt.what)
		}
		t.Logf("%s: %s: first in input %d", tt.p.Name, tt.what, made)
	}
}

// TestMessagesWithLongLists tests that some messages have lists of 256 values, and that all of these are different.
func TestMessagesWithLongLists(t *testing.T) {
	b := NewGenerator(danga.Protocol, NewRand(1), &Known{})
	for range 100_000 {
		for _, s := range b.Generate().Steps {
			if s.Type == nil || len(s.Type.Repeat) == 0 || len(s.Args) < 256 {
				continue
			}
			values := map[string]bool{}
			for _, a := range s.Args {
				values[string(a.Value)] = true
			}
			if len(values) < 255 {
				t.Errorf("%d values, %d different", len(s.Args), len(values))
			}
			return
		}
	}
	t.Error("no message has a list of 256 values")
}

// TestCorpusFile tests that a corpus that is written to a file is read back unchanged, that a missing file is an empty
// corpus, and that the corpus of another protocol is an error.
func TestCorpusFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "corpus")
	none, err := ReadCorpus(gearman.Protocol, name)
	if err != nil || none != nil {
		t.Fatal(none, err)
	}
	in := FromScript(parse(t, gearman.Protocol, conversation+"Client -> Job Server: raw 00 \"x\"\nClient -> Job Server: resets\n"))
	if err := WriteCorpus(name, []*Input{in}); err != nil {
		t.Fatal(err)
	}
	back, err := ReadCorpus(gearman.Protocol, name)
	if err != nil || len(back) != 1 || !back[0].Equal(in) {
		t.Errorf("%+v, %v; want %+v", back, err, in)
	}
	if _, err := ReadCorpus(beanstalk.Protocol, name); err == nil {
		t.Error("another protocol accepts it")
	}
}

// TestGeneratesBySeed tests that the inputs depend on the seed alone.
func TestGeneratesBySeed(t *testing.T) {
	make := func() (all []*Input) {
		f := FromScript(parse(t, gearman.Protocol, conversation))
		b := NewGenerator(gearman.Protocol, NewRand(7), &Known{})
		for range 200 {
			all = append(all, b.Mutate(f, func() *Input { return f }), b.Generate())
		}
		return all
	}
	a, b := make(), make()
	if !slices.EqualFunc(a, b, (*Input).Equal) {
		t.Error("the same seed generates other inputs")
	}
	for _, in := range a {
		for _, s := range in.Steps {
			if s.Conn >= MaxConns || s.Type != nil && s.Type.Name == "shutdown" {
				t.Fatalf("a step that must not be generated: %+v", s)
			}
		}
	}
}

const conversation = `Client -> Job Server: SUBMIT_JOB $fn "" test
Job Server -> Client: JOB_CREATED $handle
Worker -> Job Server: CAN_DO $fn
Worker -> Job Server: GRAB_JOB
Job Server -> Worker: JOB_ASSIGN $handle $fn test
Worker -> Job Server: WORK_COMPLETE $handle tset
`

// parse parses a transcript.
func parse(t *testing.T, p *codec.Protocol, src string) *transcript.Script {
	t.Helper()
	scripts, err := transcript.Parse(p, "test", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	return scripts[0]
}

// TestList tests that an input is followed by a request for a list, on a connection of its own, and that messages that
// are sent together are not.
func TestList(t *testing.T) {
	for _, p := range []*codec.Protocol{gearman.Protocol, beanstalk.Protocol} {
		g := NewGenerator(p, NewRand(1), &Known{})
		listed := map[*codec.Type]bool{}
		for range 200 {
			in := g.Generate()
			before := in.Clone()
			g.List(in)
			added := in.Steps[len(before.Steps):]
			for i := range added {
				listed[added[i].Type] = true
				if i > 0 || in.Mode != OneByOne || !ListsAll(added[i].Type) || added[i].Conn != before.Conns() {
					t.Fatalf("%s: %s is followed by %v", p.Name, before, added)
				}
			}
		}
		if len(listed) < 2 {
			t.Errorf("%s: only %d lists are requested", p.Name, len(listed))
		}
	}
}
