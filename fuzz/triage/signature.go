package triage

import (
	"fmt"
	"regexp"
	"strings"

	"jobwire/codec"
	"jobwire/fuzz/exec"
	"jobwire/fuzz/input"
	"jobwire/internal/crash"
)

// Candidate is a failure that a worker has observed, with the log of the server.
type Candidate struct {
	Fault *exec.Fault
	Log   *input.Log // the entries until the failure
	From  int        // number of entries that had run when the server was last checked without this failure
	Seed  bool       // the last input is a seed
	of    *observation
}

// last returns the last input of the log.
func (ca *Candidate) last() *input.Input {
	if len(ca.Log.Entries) == 0 {
		return &input.Input{}
	}
	return ca.Log.Entries[len(ca.Log.Entries)-1].Input
}

// signature identifies an observation before it is reproduced. Observations with different signatures are examined
// separately.
type signature struct {
	// What fails, after which message: the oracle, the rule, the kind of failure, the expected and the received message,
	// and the effect of the message before the failure.
	class string

	// The circumstances: the state of the jobs and peers, and for a seed also the effects of its messages, because each
	// seed tests something else.
	state string
}

// sign returns the signature of an observation.
func (ca *Candidate) sign(p *codec.Protocol) signature {
	v, in := ca.Fault, ca.last()
	s := signature{class: v.Oracle + "|" + string(v.Rule) + "|" + v.Law + "|" + v.Got}
	switch {
	case v.Resync:
		return signature{class: resynced + string(v.Rule)}
	case v.Oracle == exec.Memory:
		s.class += "|" + in.Shape(p) // the leak may be in any of the repeated inputs, which differ between observations
		return s
	case len(v.Stack) > 0:
		return s
	case v.Oracle == exec.Law:
		s.class += "|" + withoutValues(v.Text) + unusualQuoted(v.Text)
	}
	if v.Step >= 0 && v.Step < len(in.Steps) && !v.Timed {
		s.class += "|" + effect(p, &in.Steps[v.Step])
		if v.Law == closedLaw {
			s.class += fmt.Sprint(sizeClass(&in.Steps[v.Step]))
		}
	}
	if v.Oracle == exec.Law {
		s.state = fmt.Sprintf("%x", v.State)
	}
	if ca.Seed {
		for _, a := range behavior(p, in) {
			s.state += " " + a.does
		}
	}
	return s
}

// withoutValues returns the text of a fault without the values that differ between observations: quoted texts, numbers
// and handles.
func withoutValues(text string) string {
	var b strings.Builder
	for {
		before, rest, quoted := strings.Cut(text, `"`)
		b.WriteString(before)
		if !quoted {
			return strings.ReplaceAll(crash.Normalize(b.String()), " #", "") // lists have any number of values
		}
		end := 0
		for end < len(rest) && rest[end] != '"' {
			if rest[end] == '\\' {
				end++
			}
			end++
		}
		b.WriteByte('#')
		text = rest[min(end+1, len(rest)):]
	}
}

// unusualQuoted says whether the text of a fault, up to what the server has sent, quotes long values and values with
// special characters. A server may treat them wrongly for a reason of their own.
func unusualQuoted(text string) string {
	expected, _, _ := strings.Cut(text, " got ")
	unusual := [2]string{}
	for _, v := range quoted.FindAllString(expected, -1) {
		if len(v) > longValue {
			unusual[0] = " long"
		}
		if strings.Contains(v, `\`) {
			unusual[1] = " special"
		}
	}
	return unusual[0] + unusual[1]
}

var quoted = regexp.MustCompile(`"(\\.|[^"\\])*"`)

// related reports whether f may be another effect of what caused the expected fault. A crash is related if it is in the
// same place, or if the expected place is unknown. A hang or crash is related to a hang, even on another connection,
// and a wrong reply to another wrong reply.
func related(f, expected *exec.Fault) bool {
	if expected.Ends() || expected.Oracle == exec.LeakReport {
		return (f.Ends() || f.Oracle == exec.LeakReport) && (len(expected.Stack) == 0 || f.Law == expected.Law)
	}
	group := map[string]int{exec.Exit: 1, exec.Signal: 1, exec.Sanitizer: 1, exec.HangAll: 1, exec.HangConn: 1,
		exec.Disturbed: 1, exec.Law: 2, exec.Framing: 2,
		exec.Disclosure: 2}
	return f.Oracle == expected.Oracle || group[f.Oracle] != 0 && group[f.Oracle] == group[expected.Oracle]
}
