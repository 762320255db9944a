package laws

import (
	"os"
	"strings"
	"testing"

	"jobwire/codec"
	"jobwire/codec/beanstalk"
	"jobwire/codec/danga"
	"jobwire/codec/gearman"
	"jobwire/codec/gearmonkey"
	"jobwire/codec/transcript"
	"jobwire/fuzz/gen"
	"jobwire/judge"
)

func init() {
	judge.Register(gearman.Protocol, judge.Gearman)
	judge.Register(beanstalk.Protocol, judge.Beanstalk)
	judge.Register(danga.Protocol, judge.Danga)
	judge.Register(gearmonkey.Protocol, judge.GearMonkey)
}

// conversation reads a conversation of several clients and workers from testdata.
func conversation(t *testing.T, p *codec.Protocol) []sent {
	t.Helper()
	file := "testdata/" + p.Name + ".wire"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	scripts, err := transcript.Parse(p, file, text)
	if err != nil {
		t.Fatal(err)
	}
	var steps []Step
	var conns []int
	ids := map[string]int{}
	for _, st := range scripts[0].Steps {
		if _, known := ids[st.Peer.Name]; !known {
			ids[st.Peer.Name] = len(ids)
		}
		m := codec.Message{Type: st.Choices[0].Type}
		for _, a := range st.Choices[0].Args {
			m.Args = append(m.Args, a.Value)
		}
		steps, conns = append(steps, Step{From: st.From, Message: m}), append(conns, ids[st.Peer.Name])
	}
	all, err := encode(p, steps, conns)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// monitor is a checker with the rules of package judge.
type monitor struct {
	*judge.Monitor
	number int // of the current message
}

func newMonitor(p *codec.Protocol) checker {
	m := &monitor{Monitor: judge.New(p)}
	m.PeerChecks, m.Counts, m.Snapshot = true, true, func() any { return m.number }
	return m
}

func (m *monitor) Message(conn int, f *codec.Frame, number int, err *codec.Error) (all []violation) {
	m.number = number
	for _, v := range m.Monitor.Message(conn, f, int64(number), err) {
		if earlier, ok := v.Snapshot.(int); ok {
			number = earlier
		}
		all = append(all, violation{number, v.Err()})
	}
	return all
}

// TestOneFieldDamaged checks that one damaged field in a conversation of several clients and workers is one violation,
// and that no other message violates a rule because of it.
func TestOneFieldDamaged(t *testing.T) {
	for _, p := range []*codec.Protocol{gearman.Protocol, beanstalk.Protocol, danga.Protocol, gearmonkey.Protocol} {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			all := conversation(t, p)
			if err := (&damage{}).check(p, all, newMonitor(p)); err != nil {
				t.Fatalf("without damage: %v", err)
			}
			n, failed := 10000, map[string]bool{}
			if testing.Short() {
				n = 400
			}
			for i := range n {
				err := oneFieldDamaged(gen.New(*seed+uint64(i)), p, all, newMonitor(p))
				if err == nil {
					continue
				}
				kind, _, _ := strings.Cut(err.Error(), " of message")
				if !failed[kind] {
					failed[kind] = true
					t.Errorf("seed %d: %v", *seed+uint64(i), err)
				}
			}
		})
	}
}
