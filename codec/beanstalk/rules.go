package beanstalk

import "jobwire/codec"

// Rules that the codec itself enforces; rules.txt states them. Conformance cases name the rules about the
// behavior of a server.
const (
	RuleLineCRLF       codec.RuleID = "beanstalk.line.crlf"
	RuleLineLength     codec.RuleID = "beanstalk.line.length"
	RuleDirection      codec.RuleID = "beanstalk.line.direction"
	RuleCommandKnown   codec.RuleID = "beanstalk.command.known"
	RuleCommandArgs    codec.RuleID = "beanstalk.command.arguments"
	RuleCommandSpacing codec.RuleID = "beanstalk.command.spacing"
	RuleCommandPending codec.RuleID = "beanstalk.command.pipelining-cap"
	RuleDecimal        codec.RuleID = "beanstalk.number.decimal"
	RulePriority       codec.RuleID = "beanstalk.number.priority"
	RuleSeconds        codec.RuleID = "beanstalk.number.seconds"
	RuleTimeout        codec.RuleID = "beanstalk.number.timeout"
	RuleNameChars      codec.RuleID = "beanstalk.name.characters"
	RuleNameEmpty      codec.RuleID = "beanstalk.name.not-empty"
	RuleNameLength     codec.RuleID = "beanstalk.name.length"
	RuleBytes          codec.RuleID = "beanstalk.body.bytes"
	RuleBodyCRLF       codec.RuleID = "beanstalk.body.crlf"
	RulePutCRLF        codec.RuleID = "beanstalk.put.body-crlf"
	RulePutSize        codec.RuleID = "beanstalk.put.max-job-size"
	RuleResync         codec.RuleID = "beanstalk.put.crlf-resync"
	RuleBadFormatBody  codec.RuleID = "beanstalk.put.bad-format-body"
	RuleReplyAsked     codec.RuleID = "beanstalk.reply.asked-for"
	RuleReplyForm      codec.RuleID = "beanstalk.reply.form"
	RuleReplySize      codec.RuleID = "beanstalk.reply.size-cap"
	RuleReplyYAML      codec.RuleID = "beanstalk.reply.yaml"
	RuleComplete       codec.RuleID = "beanstalk.message.complete"
	RuleAnswered       codec.RuleID = "beanstalk.request.answered"
)
