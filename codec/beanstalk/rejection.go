package beanstalk

import (
	"bytes"
	"slices"

	"jobwire/codec"
)

// Replies to illegal commands.
var (
	badFormat    = codec.Named(types, "BAD_FORMAT")
	unknownReply = codec.Named(types, "UNKNOWN_COMMAND")
	expectedCRLF = codec.Named(types, "EXPECTED_CRLF")
	jobTooBig    = codec.Named(types, "JOB_TOO_BIG")
)

// reject returns how a server may reply to a command that violates a rule ("Protocol", "Producer Commands").
// BAD_FORMAT says that the line is malformed, but servers differ in which lines they call unknown, and in whether they
// accept other white space, a plus sign, and numbers beyond those that all servers store.
func reject(f *codec.Frame, e *codec.Error) codec.Rejection {
	line := f.Raw
	if i := bytes.Index(line, []byte(crlf)); i >= 0 {
		line = line[:i]
	}
	r := codec.Rejection{Replies: []*codec.Type{badFormat, unknownReply},
		Closes:  f.Type != nil && f.Type.Does == codec.Leave,
		Unclear: bytes.IndexByte(line, '\n') >= 0} // a server may end the line there
	if f.Type != nil && announced(f.Type, line) > 0 {
		r.Resync = RuleBadFormatBody
	}
	switch e.Rule {
	case RulePutCRLF:
		if announced(f.Type, line) > DefaultMaxData+len(crlf) { // a server may refuse the size before it reads the body
			return codec.Rejection{Replies: []*codec.Type{expectedCRLF, jobTooBig}, Unclear: true}
		}
		return codec.Rejection{Replies: []*codec.Type{expectedCRLF}, Resync: RuleResync}
	case RulePutSize:
		return codec.Rejection{Replies: []*codec.Type{jobTooBig, badFormat}, Unclear: true}
	case RuleCommandKnown:
		r.Replies = []*codec.Type{unknownReply, badFormat}
		r.Performs = resembles(line)
	case RuleLineLength:
		r.Performs, r.Closes = resembles(line), true
	case RuleCommandSpacing:
		r.Performs = true
	case RuleBytes:
		if isInteger(line, e.Offset) {
			r.Unclear, r.Replies = true, append(r.Replies, jobTooBig)
		}
	case RuleNameLength: // the specification gives the limit only for other commands
		r.Performs = f.Type.Does == codec.Unregister || f.Type.Does == codec.Pause
	case RulePriority: // the specification gives the limit only for put
		r.Performs = isInteger(line, e.Offset) && (f.Type.Does != codec.Submit || bytes.IndexByte(line, '+') >= 0)
	case RuleDecimal, RuleSeconds, RuleTimeout:
		r.Performs = isInteger(line, e.Offset)
	}
	if f.Type != nil && e.Rule != RuleCommandArgs && e.Rule != RuleLineCRLF &&
		bytes.Count(line, []byte(" ")) == words(f.Type) {
		r.Replies = slices.DeleteFunc(r.Replies, func(t *codec.Type) bool { return t == unknownReply })
	}
	return r
}

// resembles reports whether a line is a command apart from letter case and white space.
func resembles(line []byte) bool {
	words := bytes.Fields(bytes.ToLower(line))
	return len(words) > 0 && command(words[0]) != nil
}

// words returns the number of arguments in the line of a command.
func words(t *codec.Type) int {
	if k := sizedAt[t.Index]; k >= 0 {
		return k + 1
	}
	return len(t.Fields)
}

// isInteger reports whether the word of a line that contains the byte at the offset is an integer, perhaps with a sign
// or too large.
func isInteger(line []byte, at int) bool {
	at = min(at, len(line))
	from, to := bytes.LastIndexByte(line[:at], ' ')+1, bytes.IndexByte(line[at:], ' ')
	if to < 0 {
		to = len(line) - at
	}
	digits := bytes.TrimPrefix(line[from:at+to], []byte("+"))
	return len(digits) > 0 && len(bytes.Trim(digits, "0123456789")) == 0
}
