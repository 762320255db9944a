package triage

import (
	"strings"
	"testing"

	"jobwire/codec"
	"jobwire/codec/gearman"
	"jobwire/codec/transcript"
	"jobwire/fuzz/exec"
	"jobwire/fuzz/input"
)

// TestLosesJob tests that a job is lost if a correct server assigns it, or reports its end, and the other server does not.
func TestLosesJob(t *testing.T) {
	sent := func(conn, step int, name string) exec.Event {
		return exec.Event{Conn: conn, From: codec.Server, Verb: transcript.Send, Type: gearman.Protocol.TypeNamed(name), Step: step}
	}
	correct := &exec.Record{Events: []exec.Event{sent(0, 1, "JOB_CREATED"), sent(1, 2, "JOB_ASSIGN"), sent(0, 3, "WORK_COMPLETE")}}
	for _, tt := range []struct {
		name  string
		fault exec.Fault
		got   []exec.Event
		lost  bool
	}{
		{"not assigned", exec.Fault{Oracle: exec.Law, Conn: 1, Step: 2}, []exec.Event{sent(0, 1, "JOB_CREATED"), sent(1, 2, "NO_JOB")}, true},
		{"end not reported", exec.Fault{Oracle: exec.Law, Conn: 0, Step: 3}, []exec.Event{sent(0, 1, "JOB_CREATED"), sent(1, 2, "JOB_ASSIGN")}, true},
		{"assigned with a wrong field", exec.Fault{Oracle: exec.Law, Conn: 1, Step: 2}, []exec.Event{sent(0, 1, "JOB_CREATED"), sent(1, 2, "JOB_ASSIGN")}, false},
		{"not created", exec.Fault{Oracle: exec.Law, Conn: 0, Step: 1}, nil, false},
		{"crash", exec.Fault{Oracle: exec.Signal, Conn: -1, Step: 2}, nil, false},
	} {
		if got := extraJobs(&tt.fault, correct, &exec.Record{Events: tt.got}) < 0; got != tt.lost {
			t.Errorf("%s: got %v, expected %v", tt.name, got, tt.lost)
		}
	}
}

// TestImpact tests that each oracle has a severity, a title and a sentence that ends.
func TestImpact(t *testing.T) {
	for oracle := range oracles {
		for _, fd := range []*Finding{
			{Fault: &exec.Fault{Oracle: oracle}, Reproduced: true, Input: &input.Input{Steps: make([]input.Step, 1)}},
			{Fault: &exec.Fault{Oracle: oracle}, Input: &input.Input{}},
			{Fault: &exec.Fault{Oracle: oracle, Rule: "gearman.queue.fifo"}, Input: &input.Input{Steps: []input.Step{{Conn: 2}}}},
			{Fault: &exec.Fault{Oracle: oracle}, Jobs: -1, Input: &input.Input{}},
		} {
			text := fd.Impact(gearman.Protocol)
			if !strings.HasSuffix(text, ".") || strings.Contains(text, "  ") || fd.Title(gearman.Protocol) == "" || fd.Severity(gearman.Protocol).Level() == "" {
				t.Errorf("%s: %q, %q", oracle, text, fd.Title(gearman.Protocol))
			}
		}
	}
}
