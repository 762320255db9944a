package beanstalk

import "jobwire/codec"

var recognition = codec.Recognition{
	Begins: func(from codec.Side, b, _ []byte, _ bool) codec.Match {
		return codec.BeginsLine(types, from, b, crlf)
	},
	Pairing:   []codec.RuleID{RuleReplyAsked, RuleReplyForm, RuleCommandPending},
	Dependent: []codec.RuleID{RuleReplyYAML},
}
