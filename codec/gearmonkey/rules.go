package gearmonkey

import "jobwire/codec"

// Rules that the codec itself enforces when it encodes a message. A received message that violates one of
// them is decoded as a general command.
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
