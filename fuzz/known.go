package fuzz

import (
	"jobwire/codec"
	"jobwire/fuzz/model"
)

// Known is what docs/findings.md tells of a server already, and fuzzing is to go past.
type Known struct {
	Avoid  []codec.RuleID // what breaks such a rule is not sent
	Waive  []codec.RuleID // the server may break such a rule
	Quirks []model.Quirk  // what models let pass
}

// Profiles are the servers of docs/findings.md, by the names of conform's profiles.
var Profiles = map[string]Known{
	"gearmand": {
		Avoid:  []codec.RuleID{"gearman.packet.type-known", "gearman.args.missing"},
		Waive:  []codec.RuleID{"gearman.args.trailing-nul"},
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
