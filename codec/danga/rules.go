package danga

import "jobwire/codec"

// Rules that the codec itself enforces; rules.txt states them. Conformance cases name the rules about the
// behavior of a server.
const (
	RuleMagic         codec.RuleID = "danga.packet.magic"
	RuleTypeKnown     codec.RuleID = "danga.packet.type-known"
	RuleTypeDirection codec.RuleID = "danga.packet.type-direction"
	RuleSizeCap       codec.RuleID = "danga.packet.size-cap"
	RuleArgsMissing   codec.RuleID = "danga.args.missing"
	RuleArgsExtra     codec.RuleID = "danga.args.surplus"
	RuleArgsTrailing  codec.RuleID = "danga.args.trailing-nul"
	RuleInteger       codec.RuleID = "danga.number.big-endian"
	RuleASCII         codec.RuleID = "danga.text.ascii"
	RuleTextCap       codec.RuleID = "danga.text.length-cap"
	RuleNameEmpty     codec.RuleID = "danga.name.not-empty"
	RuleNamesCap      codec.RuleID = "danga.connect.names-cap"
	RuleHandleEmpty   codec.RuleID = "danga.handle.not-empty"
	RuleJobType       codec.RuleID = "danga.create.type-known"
	RuleComplete      codec.RuleID = "danga.message.complete"
	RuleAnswered      codec.RuleID = "danga.request.answered"
)
