package gearmonkey

import "jobwire/codec"

// Rules that the codec itself enforces, on what it is asked to write: a message
// that breaks one is read as a command of no typed row.
const (
	RuleID        codec.RuleID = "gearmonkey.placeholder.id"
	RulePriority  codec.RuleID = "gearmonkey.placeholder.priority"
	RuleTimestamp codec.RuleID = "gearmonkey.placeholder.timestamp"
	RuleTimeout   codec.RuleID = "gearmonkey.placeholder.timeout"
	RuleStatus    codec.RuleID = "gearmonkey.work.status"
	RuleSHA1      codec.RuleID = "gearmonkey.placeholder.sha1"
	RuleSeconds   codec.RuleID = "gearmonkey.placeholder.seconds"
	RuleEvent     codec.RuleID = "gearmonkey.placeholder.event"
	RuleCount     codec.RuleID = "gearmonkey.placeholder.count"
	RuleRange     codec.RuleID = "gearmonkey.placeholder.range"
)
