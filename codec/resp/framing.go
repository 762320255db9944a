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
	Kinds:   valueKinds(map[byte]string{':': integerForm, '_': nullForm, ',': doubleForm, '#': booleanForm, '(': integerForm, '=': verbatimForm}),
	Effects: replyEffects(),
	MaxLine: DefaultMaxLine, MaxDepth: MaxDepth, MaxBulk: MaxBulk, MaxCount: MaxCount, MaxElements: maxElements(codec.DefaultMaxData), Longest: longestCommand,
	Inline: "inline", Aggregate: "aggregate", Push: "push",
	Asked: RuleReplyAsked, BadKind: RuleReplyKind, Depth: RuleDepth, Count: RuleCount, Size: RuleSize, LineEnd: RuleLineEnd, BulkEnd: RuleBulkEnd,
	Length: RuleLineLength, Word: RuleWord, Empty: RuleEmpty, Cap: RuleCap, InlineLength: RuleInlineLength, InlineWords: RuleInlineWords,
}}

// valueKinds declares kinds; forms are the regular expressions of those whose values are checked.
func valueKinds(forms map[byte]string) map[byte]codec.ValueKind {
	all := map[byte]codec.ValueKind{}
	for c, k := range kinds {
		if k != nil {
			all[byte(c)] = codec.ValueKind{Line: k.line, Bulk: k.bulk, Array: k.array, Nulls: k.nulls, Rule: k.rule, Form: forms[byte(c)], Int64: c == ':'}
		}
	}
	return all
}

// replyEffects declares effects.
func replyEffects() map[string]codec.ReplyEffect {
	of := [...]codec.ReplyEffect{subscribe: {Counts: "channels"}, unsubscribe: {Counts: "channels", Ends: true},
		psubscribe: {Counts: "patterns"}, punsubscribe: {Counts: "patterns", Ends: true}, ssubscribe: {Counts: "shards"}, sunsubscribe: {Counts: "shards", Ends: true},
		reply: {Mode: true}, monitor: {NoEnd: true}, reset: {Resets: true}}
	all := map[string]codec.ReplyEffect{}
	for word, e := range effects {
		all[word] = of[e]
	}
	return all
}
