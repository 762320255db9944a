package resp

import (
	"bytes"

	"jobwire/codec"
)

// Recognition finds requests, which are arrays of bulk strings, and replies. It finds no reply in the middle
// of a packet, because the bytes could be a part of another reply or of data.
var Recognition = codec.Recognition{
	Begins: begins,
	Next: func(from codec.Side, b, _ []byte) int {
		if from == codec.Server {
			return -1
		}
		return codec.NextLine(b)
	},
	Pairing:  []codec.RuleID{RuleReplyAsked, RulePending},
	Unpaired: []codec.RuleID{RuleReplyAsked},
}

// begins recognizes requests and replies. The count of an array on a new connection may be illegal.
func begins(from codec.Side, b, _ []byte, resumed bool) codec.Match {
	line, rest, whole := bytes.Cut(b[:min(len(b), codec.DefaultMaxLine)], []byte(crlf))
	if bytes.IndexByte([]byte("*$+-:_,#(!=%~|>"), b[0]) < 0 || !codec.IsPrintable(line) || !whole && len(line) > 64 {
		return codec.NoMatch
	}
	if !whole {
		return codec.MayMatch
	}
	n, isNumber := codec.ParseNumber(bytes.TrimPrefix(line[1:], []byte("-")))
	isCount := isNumber && n <= maxCount
	switch b[0] {
	case '*':
		switch {
		case !isCount && isNumber && line[1] != '-' && !resumed:
			return codec.Matches
		case !isCount:
			return codec.NoMatch
		case len(rest) == 0:
			return codec.MayMatch
		case rest[0] == '$':
			return codec.Matches
		}
	case '$', ':':
		if !isCount {
			return codec.NoMatch
		}
	case '+', '-':
		if len(line) < 2 || line[1] < 'A' || line[1] > 'Z' {
			return codec.NoMatch
		}
	}
	if from == codec.Peer {
		return codec.NoMatch
	}
	return codec.Matches
}
