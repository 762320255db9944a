package input

import (
	"regexp"

	"jobwire/codec"
	"jobwire/codec/transcript"
)

// Known describes known failures of a server. The fuzzer avoids messages that cause them, or does not report them.
type Known struct {
	Avoid  []codec.RuleID // messages that break these rules are not sent
	Never  *regexp.Regexp // bytes that match this expression are not sent
	Limits map[string]int // maximum length in bytes of the values that are sent, by the name of the field
	Waive  []codec.RuleID // rules that messages of the server may break
	After  []string       // message types that are sent only after the replies to all messages before them
	Quirks []string       // deviations that the model accepts
}

// neverWithin limits the search for Known.Never to the first bytes of a message. Searching long payloads would take
// most of the time of a run.
const neverWithin = 2 << 10

// Forbids reports whether the bytes of a step match Never. sent are the bytes that the connection has sent before.
func (k *Known) Forbids(s *Step, sent, b []byte) bool {
	if k.Never == nil {
		return false
	}
	if s.Verb != transcript.Raw {
		b = b[:min(len(b), neverWithin)]
	}
	return k.Never.Match(after(sent, b))
}

// Exceeded reports whether a message has a value beyond the limits.
func (k *Known) Exceeded(f *codec.Frame) bool {
	for i := range f.Type.NumArgs() {
		if most, limited := k.Limits[f.Type.FieldAt(i).Name]; limited && len(f.Arg(i)) > most {
			return true
		}
	}
	return false
}
