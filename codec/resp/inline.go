package resp

import (
	"bytes"
	"fmt"

	"jobwire/codec"
)

// decodeInline decodes a command that is a line.
func (s *session) decodeInline(f *codec.Frame, b []byte) (int, error) {
	limit := s.lineLimit(RuleInlineLength)
	window := b[:min(len(b), limit)]
	k := bytes.IndexByte(window, '\n')
	if k < 0 {
		if len(b) < limit {
			return len(b) + 1, codec.ErrShort
		}
		return 0, &codec.Error{Rule: RuleInlineLength, Offset: limit - 1, Field: "Line", Fatal: true,
			Detail: fmt.Sprintf("expected the end of the line within %d bytes, got none", limit)}
	}
	end := k
	if end > 0 && b[end-1] == '\r' {
		end--
		f.CRLF = true
	}
	line := b[:end]
	count, bad, detail := s.cut(line)
	if bad >= 0 {
		if !s.opts.Waived(RuleInlineWords) {
			return 0, &codec.Error{Rule: RuleInlineWords, Offset: bad, Field: "Line", Detail: detail, Fatal: true}
		}
		count++ // the invalid word
	}
	f.Raw = b[: k+1 : k+1]
	if count == 0 && !s.opts.Waived(RuleEmpty) {
		return k + 1, &codec.Error{Rule: RuleEmpty, Field: "Line", Detail: "expected at least one word, got a blank line"}
	}
	f.Type = s.inline
	f.Spans = append(f.Spans, codec.Span{Field: &s.inline.Fields[0], Off: 0, End: end, Next: k + 1})
	if count > 0 {
		s.note(nil, s.words, count)
	}
	return k + 1, nil
}

// cut splits an inline command into words like a shell: with single and double quotes, and with escapes
// inside them. It returns the number of words and stores the first three in s.words, including their quotes.
// bad is the offset at which the line cannot be split, or -1.
func (s *session) cut(line []byte) (count, bad int, detail string) {
	s.words = s.words[:0]
	for i := 0; ; {
		for i < len(line) && isBlank(line[i]) {
			i++
		}
		if i == len(line) {
			return count, -1, ""
		}
		start, quote, opened := i, byte(0), 0
		for ; i < len(line) && (quote != 0 || !endsWord(line[i])); i++ {
			c := line[i]
			switch {
			case c == 0:
				return count, i, "expected text, got a NUL byte"
			case quote == 0 && (c == '"' || c == '\''):
				quote, opened = c, i
			case quote == '"' && c == '\\' && i+1 < len(line),
				quote == '\'' && c == '\\' && i+1 < len(line) && line[i+1] == '\'':
				i++
			case quote != 0 && c == quote:
				if i+1 < len(line) && !isBlank(line[i+1]) {
					return count, i + 1, "expected a space after the closing quote, got another character"
				}
				quote = 0
			}
		}
		if quote != 0 {
			return count, opened, "expected a closing quote, got the end of the line"
		}
		if count++; len(s.words) < cap(s.words) {
			s.words = append(s.words, line[start:i])
		}
	}
}

// isBlank reports whether a byte may separate words. endsWord reports whether it ends a word without quotes.
// Redis uses different bytes for the two.
func isBlank(c byte) bool  { return c == ' ' || c >= '\t' && c <= '\r' }
func endsWord(c byte) bool { return isBlank(c) && c != '\v' && c != '\f' }
