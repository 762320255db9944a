package resp

import (
	"bytes"
	"fmt"
	"slices"

	"jobwire/codec"
)

// Marks are the fields of the spans that scan stores, until the fields of a message type replace them.
var (
	countMark = codec.Field{Name: "Count", Kind: codec.Length} // count of the whole message
	sizeMark  = codec.Field{Name: "Size", Kind: codec.Length}  // size of the bulk string in the next span
	dataMark  = codec.Field{Name: "Data"}
	tokenMark = codec.Field{Name: "Value"} // a line, or the header of an array, including its first byte
)

// value describes the first value of a message that scan decoded.
type value struct {
	kind  byte
	null  bool
	count int // elements of an array; keys and values of a map
}

// kind describes the values that begin with the same byte.
type kind struct {
	name string
	codec.ValueKind
	check func(v []byte) (bad int, detail string) // checks the value; bad is the offset of the first wrong byte, or -1
}

// kinds are the kinds of all values that a server sends.
var kinds = [256]*kind{
	'+': {"Text", codec.ValueKind{Line: true}, nil},
	'-': {"Error", codec.ValueKind{Line: true}, nil},
	':': {"Integer", codec.ValueKind{Line: true, Rule: RuleInteger, Form: integerForm, Int64: true}, checkInteger},
	'$': {"Data", codec.ValueKind{Bulk: true, Nulls: true}, nil},
	'*': {"Count", codec.ValueKind{Array: 1, Nulls: true}, nil},
	'_': {"Null", codec.ValueKind{Line: true, Rule: RuleNull, Form: nullForm}, checkNull},
	',': {"Double", codec.ValueKind{Line: true, Rule: RuleDouble, Form: doubleForm}, checkDouble},
	'#': {"Boolean", codec.ValueKind{Line: true, Rule: RuleBoolean, Form: booleanForm}, checkBoolean},
	'(': {"Big number", codec.ValueKind{Line: true, Rule: RuleBigNumber, Form: integerForm}, checkBigNumber},
	'!': {"Error", codec.ValueKind{Bulk: true}, nil},
	'=': {"Text", codec.ValueKind{Bulk: true, Rule: RuleVerbatim, Form: verbatimForm}, checkVerbatim},
	'%': {"Count", codec.ValueKind{Array: 2}, nil},
	'~': {"Count", codec.ValueKind{Array: 1}, nil},
	'|': {"Count", codec.ValueKind{Array: 2}, nil},
	'>': {"Count", codec.ValueKind{Array: 1}, nil},
}

// Minimum size of an element in bytes.
const (
	leastValue = len("_\r\n")
	leastWord  = len("$0\r\n\r\n")
)

// spansSize is the maximum memory in bytes for the spans of an element.
const spansSize = 64

// maxElements returns the maximum number of elements of a message. It limits the memory for the spans of many
// short elements to little more than the limit on data.
func (s *session) maxElements() int { return maxElements(s.opts.MaxData) }

func maxElements(maxData int) int { return 1024 + maxData/spansSize }

// rescanThreshold is the length in bytes up to which scan asks for no element that has not begun to arrive.
const rescanThreshold = 64 << 10

// scan decodes the message at the beginning of b, an array of bulk strings or any value. It stores the spans
// in f: one for the first byte, one for the rest of its line, then those of the marks.
//
// scan returns an error at once if the error makes the end of the message unknown. It returns an error within
// a value after the whole message has arrived.
//
// An incomplete message is scanned again from its beginning. The length that scan returns with ErrShort
// extends to the end of the incomplete bulk string, so that a large bulk string is scanned only a few times
// even if it arrives in small pieces. The length does not include the elements after it, because a first byte
// of theirs may be illegal, and the error should then be returned without waiting for the other elements.
// Only if b is longer than rescanThreshold does the length include these elements, limited to a quarter of len(b),
// so that a long array is not scanned once for each element.
func (s *session) scan(b []byte, from codec.Side, f *codec.Frame) (v value, n int, err error) {
	sc := scanner{s: s, b: b, f: f, from: from, least: leastValue}
	if from == codec.Peer {
		sc.least = leastWord
	}
	v, err = sc.message()
	switch {
	case err == codec.ErrShort:
		need := max(sc.need, len(b)+1)
		if len(b) > rescanThreshold {
			need = max(need, len(b)+min(sc.expected*sc.least, len(b)/4))
		}
		return v, need, err
	case err != nil:
		return v, 0, err
	case sc.deferredErr != nil:
		f.Spans = f.Spans[:sc.good]
		return v, sc.at, sc.deferredErr
	}
	return v, sc.at, nil
}

// scanner is the state of one scan.
type scanner struct {
	s        *session
	b        []byte
	f        *codec.Frame
	from     codec.Side
	at       int
	data     int // bytes of bulk strings so far
	all      int // elements of arrays so far
	least    int // minimum size of an element in bytes
	need     int // length of the input for which another call is useful
	expected int // elements that have not begun to arrive

	counts bool // count the spans instead of storing them, until it is known that the message is complete
	spans  int

	deferredErr error // the first error that does not hide the end of the message
	good        int   // number of spans before it
}

// message scans one complete value with all nested ones and returns the kind, null flag and count of the first one. It
// uses a count for each depth instead of recursion. A message with many elements is first scanned without storing
// spans, until it has arrived completely.
func (sc *scanner) message() (first value, err error) {
	var expected, attributes [maxDepth + 1]int // values still expected, and attributes before the next value, by depth
	expected[0] = 1
	for depth := 0; depth >= 0; {
		if expected[depth] == 0 {
			depth--
			continue
		}
		if sc.at == len(sc.b) {
			for _, n := range expected[:depth+1] {
				sc.expected += n
			}
			return first, codec.ErrShort
		}
		at, c := sc.at, sc.b[sc.at]
		k := kinds[c]
		switch {
		case sc.from == codec.Peer && depth > 0 && c != '$':
			return first, sc.fatal(RuleWord, at, "Type", "expected a bulk string, got a value that begins with %q",
				sc.b[at:at+1])
		case k == nil || c == '>' && depth > 0:
			return first, sc.fatal(RuleReplyKind, at, "Type", "expected a byte that begins a value, such as +, : or $, got %q",
				sc.b[at:at+1])
		}
		count, null := 0, false
		if k.Line {
			err = sc.line(k)
		} else if count, null, err = sc.number(k); err == nil && k.Bulk && !null {
			err = sc.bulk(k, count)
		}
		if err != nil {
			return first, err
		}
		if c != '|' {
			expected[depth]--
			attributes[depth] = 0
		} else if attributes[depth]++; attributes[depth] > maxDepth { // attributes come before a value
			return first, sc.fatal(RuleDepth, at, "Type", "expected at most %d attributes before a value, got more", maxDepth)
		}
		count *= k.Array
		if depth == 0 && first.kind == 0 {
			first = value{c, null, count}
		}
		if count == 0 {
			continue
		}
		if sc.all += count; sc.all > sc.s.maxElements() && !sc.s.opts.Waived(RuleCap) {
			return first, sc.fatal(RuleCap, at+1, "Count", "expected at most %[2]d elements, got %[1]d", sc.all,
				sc.s.maxElements())
		}
		if depth++; depth > maxDepth {
			return first, sc.fatal(RuleDepth, at, "Type", "expected at most %d nested values, got more", maxDepth)
		}
		expected[depth] = count
		if count > maxIdleSpans && !sc.counts {
			counter := scanner{s: sc.s, b: sc.b, f: new(codec.Frame), from: sc.from, least: sc.least, counts: true}
			if _, err := counter.message(); err == codec.ErrShort {
				*sc = counter
				return first, err
			}
			sc.f.Spans = slices.Grow(sc.f.Spans, counter.spans)
		}
	}
	return first, nil
}

func (sc *scanner) fatal(rule codec.RuleID, at int, field, detail string, args ...any) error {
	return &codec.Error{Rule: rule, Offset: at, Field: field, Detail: fmt.Sprintf(detail, args...), Fatal: true}
}

// span adds the span of a part of the message. The first byte of the message has a span of its own.
func (sc *scanner) span(fd *codec.Field, off, end, next int) {
	if sc.spans++; sc.counts && len(sc.f.Spans) > 2 {
		sc.f.Spans = sc.f.Spans[:2]
	}
	if len(sc.f.Spans) == 0 {
		if end == off+1 {
			// The line contains only the first byte.
			sc.f.Spans = append(sc.f.Spans, codec.Span{Field: &typeField, Off: off, End: end, Next: end})
			sc.f.Spans = append(sc.f.Spans, codec.Span{Field: fd, Off: end, End: end, Next: next})
			return
		}
		sc.f.Spans = append(sc.f.Spans, codec.Span{Field: &typeField, Off: off, End: off + 1, Next: off + 1})
		off++
	} else if fd == &sizeMark {
		off++
	}
	sc.f.Spans = append(sc.f.Spans, codec.Span{Field: fd, Off: off, End: end, Next: next})
}

// line decodes a value that is a line.
func (sc *scanner) line(k *kind) error {
	at, b := sc.at, sc.b
	end, next, err := sc.lineEnd(at)
	if err != nil {
		return err
	}
	if k.check != nil {
		sc.check(k, at+1, b[at+1:end])
	}
	sc.span(&tokenMark, at, end, next)
	sc.at = next
	return nil
}

// check tests a value and records the first error.
func (sc *scanner) check(k *kind, at int, v []byte) {
	if sc.deferredErr != nil || sc.s.opts.Waived(k.Rule) {
		return
	}
	if bad, detail := k.check(v); bad >= 0 {
		sc.deferredErr = &codec.Error{Rule: k.Rule, Offset: at + bad, Field: k.name, Detail: detail}
		sc.good = len(sc.f.Spans)
	}
}

// lineEnd returns the end of the line that begins at offset at, and the beginning of the next line.
func (sc *scanner) lineEnd(at int) (end, next int, err error) {
	limit := sc.s.lineLimit(RuleLineLength)
	window := sc.b[at:min(len(sc.b), at+limit)]
	for i := 0; ; i++ {
		line := window[i:]
		k := bytes.IndexByte(line, '\n')
		if k >= 0 {
			line = line[:k]
		}
		cr := bytes.IndexByte(line, '\r')
		switch {
		case cr >= 0:
			i += cr
			if i+1 == len(window) {
				break // the next byte has not arrived
			}
			if window[i+1] == '\n' {
				return at + i, at + i + 2, nil
			}
			if !sc.s.opts.Waived(RuleLineEnd) {
				return 0, 0, sc.fatal(RuleLineEnd, at+i, "Value", "expected CR LF, got CR alone")
			}
			continue
		case k >= 0:
			i += k
			if !sc.s.opts.Waived(RuleLineEnd) {
				return 0, 0, sc.fatal(RuleLineEnd, at+i, "Value", "expected CR LF, got LF alone")
			}
			return at + i, at + i + 1, nil
		}
		break
	}
	if len(window) == limit {
		return 0, 0, sc.fatal(RuleLineLength, at+limit-1, "Value", "expected the end of the line within %d bytes, got none",
			limit)
	}
	return 0, 0, codec.ErrShort
}

// number decodes a count or a size, and the end of its line. The following bytes cannot be decoded without
// it, so its rules cannot be waived.
func (sc *scanner) number(k *kind) (n int, null bool, err error) {
	b, start := sc.b, sc.at+1
	rule, name, most := RuleCount, "Count", maxCount
	if k.Bulk {
		rule, name, most = RuleSize, "Size", maxBulk
	}
	at, negative := start, false
	if at < len(b) && b[at] == '-' {
		negative = true
		at++
	}
	for first := at; at < len(b) && b[at] != '\r'; at++ {
		d := int(b[at] - '0')
		switch {
		case d > 9:
			return 0, false, sc.fatal(rule, at, name, "expected a decimal digit, got %q", b[at:at+1])
		case at > first && n == 0:
			return 0, false, sc.fatal(rule, first, name,
				"expected a number without leading zeros, got a number with leading zeros")
		}
		if n > (most-d)/10 { // n*10 + d > most, without an overflow
			return 0, false, sc.fatal(rule, start, name, "expected at most %d, got more", most)
		}
		n = n*10 + d
	}
	if at == len(b) {
		return 0, false, codec.ErrShort
	}
	if b[at-1] < '0' || b[at-1] > '9' || negative && n == 0 {
		return 0, false, sc.fatal(rule, start, name, "expected a decimal number, got none")
	}
	if at+1 >= len(b) {
		return 0, false, codec.ErrShort
	}
	if b[at+1] != '\n' && !sc.s.opts.Waived(RuleLineEnd) {
		return 0, false, sc.fatal(RuleLineEnd, at, name, "expected CR LF, got CR alone")
	}
	if negative {
		switch {
		case sc.from == codec.Peer && !k.Bulk:
			// Redis ignores an array with a negative count.
		case !k.Nulls || n != 1 || sc.from == codec.Peer:
			return 0, false, sc.fatal(rule, start, name, "expected a number of at least 0, got a negative number")
		}
		n, null = 0, true
	}
	mark := &tokenMark
	switch {
	case null:
	case k.Bulk:
		mark = &sizeMark
	case len(sc.f.Spans) == 0:
		mark = &countMark
	}
	sc.span(mark, sc.at, at, at+2)
	sc.at = at + 2
	return n, null, nil
}

// bulk decodes the size bytes of a bulk string.
func (sc *scanner) bulk(k *kind, size int) error {
	at := sc.at
	if sc.data += size; sc.data > sc.s.opts.MaxData && !sc.s.opts.Waived(RuleCap) {
		return sc.fatal(RuleCap, sc.f.Spans[len(sc.f.Spans)-1].Off, "Size",
			"expected at most %[2]d bytes of bulk strings, got %[1]d", sc.data, sc.s.opts.MaxData)
	}
	end := at + size
	next := end + len(crlf)
	if next > len(sc.b) {
		// Check the part of the line end that has arrived.
		if end < len(sc.b) && sc.b[end] != '\r' && !sc.s.opts.Waived(RuleBulkEnd) {
			return sc.bulkEnd(end)
		}
		sc.need = end + 1
		return codec.ErrShort
	}
	if string(sc.b[end:next]) != crlf && !sc.s.opts.Waived(RuleBulkEnd) {
		return sc.bulkEnd(end)
	}
	if k.check != nil {
		sc.check(k, at, sc.b[at:end])
	}
	sc.span(&dataMark, at, end, next)
	sc.at = next
	return nil
}

// bulkEnd returns the error for a bulk string that is not followed by CR LF.
func (sc *scanner) bulkEnd(end int) error {
	if sc.b[end] == '\r' {
		end++
	}
	return sc.fatal(RuleBulkEnd, end, "Data", "expected CR LF immediately after the bulk string, got other bytes")
}

// lineLimit returns the maximum length of a line, including its line end, under the rule.
func (s *session) lineLimit(rule codec.RuleID) int {
	if s.opts.Waived(rule) {
		return max(s.opts.MaxLine, s.opts.MaxData)
	}
	return s.opts.MaxLine
}
