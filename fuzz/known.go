package fuzz

import (
	"regexp"

	"jobwire/codec"
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

// exceeded reports whether a message has a value beyond the limits.
func (k *Known) exceeded(f *codec.Frame) bool {
	for i := range f.Type.NumArgs() {
		if most, limited := k.Limits[f.Type.FieldAt(i).Name]; limited && len(f.Arg(i)) > most {
			return true
		}
	}
	return false
}
