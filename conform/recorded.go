package conform

import (
	"bytes"
	"slices"
	"strings"

	"jobwire/codec"
	"jobwire/codec/transcript"
)

// CaseText returns a recorded transcript as a test case of the rules. There must be at least one rule. The case uses
// the functions and unique IDs of the recording, so @alone gives it a server of its own.
func CaseText(s *transcript.Script, name, about string, rules []*codec.Rule) ([]byte, error) {
	ids := make([]string, len(rules))
	for i, r := range rules {
		ids[i] = string(r.ID)
	}
	made := *s
	made.Meta = []transcript.Meta{
		{Key: "protocol", Value: s.Protocol.Name}, {Key: "case", Value: name}, {Key: "about", Value: about},
		{Key: "section", Value: rules[0].Section}, {Key: "rules", Value: strings.Join(ids, " ")}, {Key: "alone"},
	}
	made.Steps = slices.Clone(s.Steps)
	for i := range made.Steps {
		made.Steps[i].Tests = nil
	}
	var text bytes.Buffer
	if err := transcript.Lines(&text, &made); err != nil {
		return nil, err
	}
	again, err := transcript.Parse(s.Protocol, s.File, text.Bytes())
	if err != nil {
		return nil, err
	}
	_, err = newCase(s.Protocol, again[0])
	return text.Bytes(), err
}
