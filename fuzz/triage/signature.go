package triage

import (
	"fmt"
	"jobwire/codec"
	"jobwire/fuzz/exec"
	"jobwire/fuzz/input"
)

// Candidate is a failure that a worker has observed, with the log of the server.
type Candidate struct {
	signature string
	Fault     *exec.Fault
	Log       *input.Log // the entries until the failure
	From      int        // number of entries that had run when the server was last checked without this failure
	finding   *Finding
}

// last returns the last input of the log.
func (ca *Candidate) last() *input.Input {
	if len(ca.Log.Entries) == 0 {
		return &input.Input{}
	}
	return ca.Log.Entries[len(ca.Log.Entries)-1].Input
}

// sign returns the signature of an observation, before the failure is reproduced. It consists of the oracle, the rule and
// the kind of failure. Unless the fault has a stack, it also contains the effect of the step at which the failure was
// observed.
func (ca *Candidate) sign(p *codec.Protocol) string {
	v, in := ca.Fault, ca.last()
	key := v.Oracle + "|" + string(v.Rule) + "|" + v.Law
	if v.Oracle == exec.Memory {
		return key + "|" + in.Shape(p) // the leak may be in any of the repeated inputs, which differ between observations
	}
	if len(v.Stack) == 0 && v.Step >= 0 && v.Step < len(in.Steps) {
		key += "|" + effect(p, &in.Steps[v.Step])
		if v.Law == closedLaw {
			key += fmt.Sprint(sizeClass(&in.Steps[v.Step]))
		}
	}
	return key
}

// kind returns the properties that candidates with the same cause probably have in common.
func (ca *Candidate) kind() string {
	return ca.Fault.Oracle + "|" + string(ca.Fault.Rule) + "|" + ca.Fault.Law + "|" + ca.Fault.Refusal
}

// matches reports whether f may have the same cause as the expected fault. A crash matches if it is in the same place,
// or if the expected place is unknown. A hang or crash matches a hang, even on another connection, and a wrong reply
// matches another wrong reply.
func matches(f, expected *exec.Fault) bool {
	if expected.Ends() || expected.Oracle == exec.LeakReport {
		return (f.Ends() || f.Oracle == exec.LeakReport) && (len(expected.Stack) == 0 || f.Law == expected.Law)
	}
	group := map[string]int{exec.Exit: 1, exec.Signal: 1, exec.Sanitizer: 1, exec.HangAll: 1, exec.HangConn: 1, exec.Disturbed: 1, exec.Law: 2, exec.Framing: 2,
		exec.Disclosure: 2}
	return f.Oracle == expected.Oracle || group[f.Oracle] != 0 && group[f.Oracle] == group[expected.Oracle]
}
