package resp

import "jobwire/codec"

// Regular expressions for what the functions in check.go accept.
const (
	integerForm  = `\A(0|-?[1-9][0-9]*)\z`
	doubleForm   = `\A(-?(inf|nan)|[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[-+]?[0-9]+)?)\z`
	booleanForm  = `\A[tf]\z`
	nullForm     = `\A\z`
	verbatimForm = `(?s)\A...:`
)

// Framing declares the format of RESP, and what sessions do with it, as data.
var Framing = codec.Framing{Values: &codec.Values{
	Kinds:   valueKinds(),
	Effects: effects,
	MaxLine: DefaultMaxLine, MaxDepth: maxDepth, MaxBulk: maxBulk, MaxCount: maxCount,
	MaxElements: maxElements(codec.DefaultMaxData), Longest: longestCommand,
	Inline: "inline", Aggregate: "aggregate", Push: "push",
	Asked: RuleReplyAsked, BadKind: RuleReplyKind, Depth: RuleDepth, Count: RuleCount, Size: RuleSize,
	LineEnd: RuleLineEnd, BulkEnd: RuleBulkEnd,
	Length: RuleLineLength, Word: RuleWord, Empty: RuleEmpty, Cap: RuleCap, InlineLength: RuleInlineLength,
	InlineWords: RuleInlineWords,
}}

// valueKinds returns what Framing declares of the kinds.
func valueKinds() map[byte]codec.ValueKind {
	all := map[byte]codec.ValueKind{}
	for c, k := range kinds {
		if k != nil {
			all[byte(c)] = k.ValueKind
		}
	}
	return all
}
