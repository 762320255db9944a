package triage

import (
	"bytes"
	"testing"
	"time"

	"jobwire/codec/gearman"
	"jobwire/fuzz/input"
	"jobwire/fuzz/internal/fuzztest"
)

// TestMinimizes tests that an input with eight messages on three connections is reduced to the two messages that the fault
// needs.
func TestMinimizes(t *testing.T) {
	in := fuzztest.Input(t, gearman.Protocol, `Worker -> Job Server: CAN_DO other
Client -> Job Server: SUBMIT_JOB $fn unique "some long workload"
Job Server -> Client: JOB_CREATED $handle
Worker 2 -> Job Server: CAN_DO $fn
Worker -> Job Server: PRE_SLEEP
Worker 2 -> Job Server: WORK_FAIL $handle
Client -> Job Server: ECHO_REQ bye
Client -> Job Server: closes
`)
	holds := func(in *input.Input) bool { // the fault needs a submission and, later, a failure of that job
		id := 0
		for _, s := range in.Steps {
			switch {
			case s.Type != nil && s.Type.Name == "SUBMIT_JOB":
				id = s.ID
			case s.Type != nil && s.Type.Name == "WORK_FAIL" && id > 0 && s.Args[0].Of == id:
				return true
			}
		}
		return false
	}
	m := minimizer{best: in, holds: holds, budget: time.Minute, proto: gearman.Protocol}
	small := m.minimize()
	if len(small.Steps) != 2 || small.Conns() != 1 || len(small.Steps[0].Args[2].Value) != 0 {
		t.Errorf("%d steps on %d connections are left: %+v", len(small.Steps), small.Conns(), small.Steps)
	}
}

// TestMinimizesSharedNames tests that a name which several messages must share is shortened in all of them.
func TestMinimizesSharedNames(t *testing.T) {
	in := fuzztest.Input(t, gearman.Protocol, `Client -> Job Server: SUBMIT_JOB_BG "a long name" "" x
Worker -> Job Server: CAN_DO "a long name"
Worker -> Job Server: CAN_DO a
`)
	holds := func(in *input.Input) bool {
		return len(in.Steps) == 3 && bytes.Equal(in.Steps[0].Args[0].Value, in.Steps[1].Args[0].Value) && !bytes.Equal(in.Steps[1].Args[0].Value, in.Steps[2].Args[0].Value)
	}
	m := minimizer{best: in, holds: holds, budget: time.Minute, proto: gearman.Protocol}
	if small := m.minimize(); len(small.Steps[0].Args[0].Value) != 1 {
		t.Errorf("%q is left", small.Steps[0].Args[0].Value)
	}
}

// TestMinimizesPairs tests that two messages are removed together if neither can be removed alone.
func TestMinimizesPairs(t *testing.T) {
	in := fuzztest.Input(t, gearman.Protocol, `Worker -> Job Server: CAN_DO a
Worker -> Job Server: CAN_DO b
Worker -> Job Server: CANT_DO a
Worker -> Job Server: CANT_DO b
`)
	holds := func(in *input.Input) bool {
		counts := map[string]int{}
		for i := range in.Steps {
			counts[in.Steps[i].Type.Name]++
		}
		return counts["CAN_DO"] == counts["CANT_DO"] && len(in.Steps) > 0
	}
	m := minimizer{best: in, holds: holds, budget: time.Minute, proto: gearman.Protocol}
	if small := m.minimize(); len(small.Steps) != 2 {
		t.Errorf("%d steps are left", len(small.Steps))
	}
}
