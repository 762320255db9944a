package triage

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"jobwire/codec/gearman"
	"jobwire/fuzz/exec"
	"jobwire/fuzz/input"
	"jobwire/fuzz/internal/fuzztest"
)

// TestProvedDisclosure tests that a finding with evidence replaces the finding about the same data without evidence, in
// either order.
func TestProvedDisclosure(t *testing.T) {
	var dropped []*Finding
	tr := testTriage(t, Config{Protocol: gearman.Protocol, Reports: Reports{Dropped: func(fd *Finding) { dropped = append(dropped, fd) }}})
	finding := func(v exec.Fault) *Finding {
		v.Unsent = exec.Unsent{Data: []byte("data"), Does: "answer"}
		return &Finding{Key: key(gearman.Protocol, &input.Input{}, &v), Fault: &v, Input: &input.Input{}, Reproduced: true}
	}
	law := finding(exec.Fault{Oracle: exec.Law, Rule: "gearman.echo.same-data", Law: wrongContent})
	data := finding(exec.Fault{Oracle: exec.Disclosure, Law: "answer"})
	proved := finding(exec.Fault{Oracle: exec.Disclosure, Law: "answer", Proved: true})
	first := &Candidate{Fault: law.Fault, Log: &input.Log{}}
	tr.queue.add(first, signature{class: "model"})
	for i, tt := range []struct {
		fd    *Finding
		known bool
	}{{law, false}, {data, true}, {proved, false}, {law, true}, {data, true}, {proved, true}} {
		candidate := &Candidate{of: &observation{}}
		if i == 0 {
			candidate = first
		}
		if got := tr.isKnown(candidate, tt.fd); got != tt.known {
			t.Errorf("%s: expected a known finding: %v, got %v", tt.fd.Fault, tt.known, got)
		}
		if !tt.known {
			tr.assign(candidate.of, tt.fd)
		}
	}
	if !slices.Equal(tr.findings, []*Finding{proved}) || !slices.Equal(dropped, []*Finding{law}) || first.of.finding != proved {
		t.Errorf("expected the proved finding in place of the first one, got %v; dropped: %v", tr.findings, dropped)
	}
}

// TestSignatures tests that observations whose values are ordinary have one signature, and that a value that is long or
// has special characters has a signature of its own.
func TestSignatures(t *testing.T) {
	of := func(id string) signature {
		in := fuzztest.Input(t, gearman.Protocol, "Admin -> Job Server: workers\n")
		text := fmt.Sprintf("expected a worker with client ID %.40q in the list; got workers-reply %q", id, strings.Repeat("y", 50))
		c := Candidate{Log: &input.Log{Entries: []input.Entry{{Input: in}}}, Fault: &exec.Fault{Oracle: exec.Law, Law: wrongContent, Text: text}}
		return c.sign(gearman.Protocol)
	}
	if of("a") != of("b") {
		t.Errorf("ordinary values have two signatures: %v, %v", of("a"), of("b"))
	}
	long, special := of(strings.Repeat("x", 127)), of("a\tb")
	if long == of("a") || special == of("a") || long == special {
		t.Errorf("unusual values have the signature of others: %v, %v, %v", of("a"), long, special)
	}
}

// TestEachSignatureIsExamined tests that each signature of a run is examined, that observations with a signature are
// examined again while none of them is reproduced, at most maxExaminations times, and that the counts contain each
// signature.
func TestEachSignatureIsExamined(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 0))
		q, seen, examined := newQueue(), map[signature]bool{}, map[signature]int{}
		finished := map[signature]bool{}
		var running []*Candidate
		finish := func() {
			k := r.IntN(len(running))
			result := outcome(r.IntN(int(settled) + 1))
			o := running[k].of
			q.examined(o, result)
			if running = slices.Delete(running, k, k+1); result != interrupted && result != needsLog {
				examined[o.signature]++
			}
			finished[o.signature] = result == settled
		}
		for range 300 {
			switch r.IntN(3) {
			case 0:
				s := signature{class: strconv.Itoa(r.IntN(5)), state: strconv.Itoa(r.IntN(8))}
				isNew, _ := q.add(&Candidate{Fault: &exec.Fault{Oracle: [...]string{exec.Law, exec.HangAll}[r.IntN(2)]}, Log: &input.Log{}}, s)
				if isNew == seen[s] {
					t.Fatalf("seed %d: signature %v: new: %v, observed before: %v", seed, s, isNew, seen[s])
				}
				seen[s] = true
			case 1:
				if ca := q.next(pace(r.IntN(int(either) + 1))); ca != nil {
					if slices.ContainsFunc(running, func(o *Candidate) bool { return o.of == ca.of }) || finished[ca.of.signature] {
						t.Fatalf("seed %d: %v is examined twice at a time, or after it had a result", seed, ca.of.signature)
					}
					running = append(running, ca)
				}
			case 2:
				if len(running) > 0 {
					finish()
				}
			}
			if all, done, _, waiting := q.numbers(); all != len(seen) || done+waiting != all || done != len(examined) {
				t.Fatalf("seed %d: %d signatures were observed and %d examined; counted: %d observed, %d examined, %d waiting",
					seed, len(seen), len(examined), all, done, waiting)
			}
		}
		q.closed = true
		for steps := 0; !q.idle(); steps++ {
			if ca := q.next(either); ca != nil {
				running = append(running, ca)
			} else {
				finish()
			}
			if steps > 10000 {
				t.Fatalf("seed %d: the queue does not become empty", seed)
			}
		}
		for s := range seen {
			if n := examined[s]; n == 0 || n > maxExaminations {
				t.Errorf("seed %d: signature %v was examined %d times", seed, s, n)
			}
		}
	}
}

// TestNotReproduced tests which examined signatures count as not reproduced: those without a finding, and those with a
// crash that did not appear again.
func TestNotReproduced(t *testing.T) {
	q := newQueue()
	for i, fd := range []*Finding{nil, {}, {Reproduced: true}} {
		q.add(&Candidate{Fault: &exec.Fault{Oracle: exec.Law}, Log: &input.Log{}}, signature{class: strconv.Itoa(i)})
		q.examined(q.next(either).of, notReproduced)
		q.all[i].finding = fd
	}
	if all, examined, without, waiting := q.numbers(); all != 3 || examined != 3 || without != 2 || waiting != 0 {
		t.Errorf("got %d observed, %d examined, %d not reproduced and %d waiting", all, examined, without, waiting)
	}
}

// TestFindingsAreGroupedByCause tests the order of findings, and that findings with the same cause are in one group.
func TestFindingsAreGroupedByCause(t *testing.T) {
	all := []*Finding{
		{Name: "a", Fault: &exec.Fault{Oracle: exec.Law}, Reproduced: true}, {Name: "b", Fault: &exec.Fault{Oracle: exec.HangAll}, Reproduced: true},
		{Name: "c", Fault: &exec.Fault{Oracle: exec.Signal}}, {Name: "d", Fault: &exec.Fault{Oracle: exec.Signal}, Reproduced: true}, {Name: "e", Fault: &exec.Fault{Oracle: exec.Memory}},
		{Name: "f", Fault: &exec.Fault{Oracle: exec.Law}, Jobs: -1}, {Name: "g", Fault: &exec.Fault{Oracle: exec.Law, Rule: "gearman.queue.fifo"}},
	}
	all[5].Of = all[0]
	all[6].Of = all[0]
	order := ""
	for _, group := range Groups(gearman.Protocol, all) {
		for _, fd := range group {
			order += fd.Name
		}
		order += " "
	}
	if order != "d c b fag e " {
		t.Errorf("got %s", order)
	}
}
