package gearman

import "jobwire/codec"

// Rules that the codec itself enforces; rules.txt states them. Conformance cases name the rules about the
// behavior of a server.
const (
	RuleMagic          codec.RuleID = "gearman.packet.magic"
	RuleMagicDirection codec.RuleID = "gearman.packet.magic-direction"
	RuleTypeKnown      codec.RuleID = "gearman.packet.type-known"
	RuleTypeDirection  codec.RuleID = "gearman.packet.type-direction"
	RuleSizeCap        codec.RuleID = "gearman.packet.size-cap"
	RuleArgsMissing    codec.RuleID = "gearman.args.missing"
	RuleArgsExtra      codec.RuleID = "gearman.args.surplus"
	RuleArgsTrailing   codec.RuleID = "gearman.args.trailing-nul"
	RuleHandleLength   codec.RuleID = "gearman.handle.length"
	RuleHandleEmpty    codec.RuleID = "gearman.handle.not-empty"
	RuleDecimal        codec.RuleID = "gearman.number.decimal"
	RuleRange          codec.RuleID = "gearman.number.schedule-range"
	RuleBoolean        codec.RuleID = "gearman.number.boolean"
	RuleAdminCommand   codec.RuleID = "gearman.admin.command-known"
	RuleAdminArgs      codec.RuleID = "gearman.admin.arguments"
	RuleAdminSpacing   codec.RuleID = "gearman.admin.spacing"
	RuleAdminLine      codec.RuleID = "gearman.admin.line-length"
	RuleAdminReply     codec.RuleID = "gearman.admin.reply-form"
	RuleAdminAsked     codec.RuleID = "gearman.admin.reply-asked-for"
	RuleAdminPending   codec.RuleID = "gearman.admin.pipelining-cap"
	RuleComplete       codec.RuleID = "gearman.message.complete"
	RuleAnswered       codec.RuleID = "gearman.request.answered"
)
