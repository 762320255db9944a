package fuzz

import (
	"regexp"

	"jobwire/codec"
)

// Known describes known failures of a server, which the fuzzer avoids or does not report.
type Known struct {
	Avoid  []codec.RuleID // messages that break these rules are not sent
	Never  *regexp.Regexp // bytes that match are not sent
	Limits map[string]int // longer values are not sent: the limit in bytes, by the name of the field
	Waive  []codec.RuleID // rules that the server may break
	After  []string       // message types that are sent only after the replies to all messages before them
	Quirks []string       // deviations that the model accepts
}

// exceeded reports whether a message has a value beyond the limits.
func (k *Known) exceeded(f *codec.Frame) bool {
	for i := range f.Type.NumArgs() {
		if most, limited := k.Limits[f.Type.FieldAt(i).Name]; limited && len(f.Arg(i)) > most {
			return true
		}
	}
	return false
}
