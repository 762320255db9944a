package fuzz

import (
	"regexp"

	"jobwire/codec"
	"jobwire/fuzz/model"
)

// Known is what docs/findings.md tells of a server already, and fuzzing is to go past.
type Known struct {
	Avoid  []codec.RuleID // what breaks such a rule is not sent
	Never  *regexp.Regexp // nor bytes like these
	Limits map[string]int // nor values of more bytes, by their fields' labels
	Waive  []codec.RuleID // the server may break such a rule
	Behind []string       // types that are sent when all before them has been answered
	Quirks []model.Quirk  // what models let pass
}

// exceeded reports whether a message has a value beyond the limits.
func (k *Known) exceeded(f *codec.Frame) bool {
	for i := range f.Type.Fields {
		if most, limited := k.Limits[f.Type.Fields[i].Name]; limited && len(f.Arg(i)) > most {
			return true
		}
	}
	return false
}

// Profiles are the servers of docs/findings.md, by the names of conform's profiles.
var Profiles = map[string]Known{
	"gearmand": {
		Avoid: []codec.RuleID{"gearman.packet.type-known", "gearman.packet.type-direction", "gearman.args.missing", "gearman.args.surplus", "gearman.handle.not-empty", "gearman.handle.length", "gearman.number.decimal"},
		Never: regexp.MustCompile(`\x00RE[QS](\x00{4}|\x00{3}[^\x00-\x2a]|\x00{0,2}[^\x00])` + // no type
			`|\x00REQ\x00{3}[\x01\x02\x07\x12\x15\x17\x20-\x26](?s:.{4})[^\x00]*\t` + // a function that breaks lists
			`|(?i)create[ \t]+function[ \t]+\r?\n`),
		Limits: map[string]int{
			"Function": 8000, "Unique ID": 63, "Reducer": 8000, "Unused": 8000, "Job handle": 63, "Option": 64,
			"Client ID": 127, "Timeout": 9, "Numerator": 9, "Denominator": 9, "Epoch time": 18,
		},
		Waive:  []codec.RuleID{"gearman.args.trailing-nul", "gearman.admin.reply-form"},
		Behind: []string{"WORK_COMPLETE", "WORK_FAIL", "WORK_EXCEPTION"},
		Quirks: []model.Quirk{"gearmand"},
	},
	"gearmand-perl": {
		Avoid:  []codec.RuleID{"gearman.packet.magic"},
		Waive:  []codec.RuleID{"gearman.number.decimal"},
		Quirks: []model.Quirk{"gearmand-perl"},
	},
	"beanstalkd":   {Quirks: []model.Quirk{"beanstalkd"}},
	"redis-server": {Quirks: []model.Quirk{"redis-server"}},
}
