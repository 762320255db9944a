package triage

import (
	"jobwire/codec/beanstalk"
	"jobwire/codec/gearman"
	"jobwire/fuzz/exec"
	"jobwire/fuzz/input"
	"slices"
	"testing"
	"testing/synctest"
)

// TestProvedDisclosure tests that a finding with evidence replaces the finding about the same data without evidence, in
// either order.
func TestProvedDisclosure(t *testing.T) {
	var dropped []*Finding
	tr := testTriage(t, Config{Protocol: gearman.Protocol, Reports: Reports{Dropped: func(fd *Finding) { dropped = append(dropped, fd) }}})
	finding := func(observed string, v exec.Fault) *Finding {
		v.Unsent = exec.Unsent{Data: []byte("data"), Does: "answer"}
		return &Finding{Key: key(gearman.Protocol, &input.Input{}, &v), Fault: &v, Input: &input.Input{}, Reproduced: true, signatures: map[string]bool{observed: true}}
	}
	law := finding("model", exec.Fault{Oracle: exec.Law, Rule: "gearman.echo.same-data", Law: wrongContent})
	data := finding("data", exec.Fault{Oracle: exec.Disclosure, Law: "answer"})
	proved := finding("proved", exec.Fault{Oracle: exec.Disclosure, Law: "answer", Proved: true})
	for _, tt := range []struct {
		fd    *Finding
		known bool
	}{{law, false}, {data, true}, {proved, false}, {law, true}, {data, true}, {proved, true}} {
		if got := tr.isKnown(&Candidate{signature: "new"}, tt.fd); got != tt.known {
			t.Errorf("%s: expected a known finding: %v, got %v", tt.fd.Fault, tt.known, got)
		}
	}
	if !slices.Equal(tr.findings, []*Finding{proved}) || !slices.Equal(dropped, []*Finding{law}) || !proved.signatures["model"] {
		t.Errorf("expected the proved finding in place of the first one, got %v; dropped: %v", tr.findings, dropped)
	}
}

// TestCrashIsExaminedAgain tests that a crash that was not reproduced is examined again when it is observed again, and
// that a reproduced crash is not.
func TestCrashIsExaminedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for reproduced, want := range map[bool]int{false: 2, true: 1} {
			e := testTriage(t, Config{Protocol: beanstalk.Protocol})
			for n := range 4 {
				candidate := &Candidate{Fault: &exec.Fault{Oracle: exec.Sanitizer, Law: "heap-use-after-free", Stack: []string{"remove_job"}, Conn: -1, Step: -1}, Log: &input.Log{Protocol: beanstalk.Protocol}}
				e.Add(candidate)
				if n == 0 && reproduced {
					e.findings = append(e.findings, &Finding{Reproduced: true, signatures: map[string]bool{candidate.signature: true}})
				}
			}
			if got := len(e.waiting); got != want {
				t.Errorf("reproduced: %v: %d of four observations are examined, want %d", reproduced, got, want)
			}
		}
	})
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
