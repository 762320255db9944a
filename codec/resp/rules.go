package resp

import "jobwire/codec"

// Rules that the codec itself enforces.
const (
	RuleDirection    codec.RuleID = "resp.message.direction"
	RuleForm         codec.RuleID = "resp.message.form"
	RuleCap          codec.RuleID = "resp.message.size-cap"
	RuleLineEnd      codec.RuleID = "resp.line.crlf"
	RuleLineLength   codec.RuleID = "resp.line.length"
	RuleCount        codec.RuleID = "resp.count.decimal"
	RuleSize         codec.RuleID = "resp.bulk.size"
	RuleBulkEnd      codec.RuleID = "resp.bulk.crlf"
	RuleWord         codec.RuleID = "resp.request.bulk-strings"
	RuleEmpty        codec.RuleID = "resp.request.not-empty"
	RulePending      codec.RuleID = "resp.request.pipelining-cap"
	RuleInlineLength codec.RuleID = "resp.inline.length"
	RuleInlineWords  codec.RuleID = "resp.inline.words"
	RuleReplyAsked   codec.RuleID = "resp.reply.asked-for"
	RuleReplyKind    codec.RuleID = "resp.reply.kind"
	RuleDepth        codec.RuleID = "resp.reply.depth"
	RuleInteger      codec.RuleID = "resp.reply.integer"
	RuleDouble       codec.RuleID = "resp.reply.double"
	RuleBoolean      codec.RuleID = "resp.reply.boolean"
	RuleBigNumber    codec.RuleID = "resp.reply.big-number"
	RuleNull         codec.RuleID = "resp.reply.null"
	RuleVerbatim     codec.RuleID = "resp.reply.verbatim"
	RuleComplete     codec.RuleID = "resp.message.complete"
	RuleAnswered     codec.RuleID = "resp.request.answered"
)
