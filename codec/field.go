package codec

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Field is the declaration of one argument, or one framing field, of a message.
type Field struct {
	Name   string // the label in annotated listings: "Job handle"
	Kind   Kind
	Means  Meaning
	Unit   time.Duration // the unit of a Delay, TimeLimit or Timeout
	Width  int           // bytes of a binary integer, or of a Text of fixed length
	Lo     uint64        // smallest legal Number, or Uint if Hi is set
	Hi     uint64        // largest legal Number or Uint; 0: the limit of 64 bits, or of Width
	Max    int           // longest legal value in bytes; 0: no limit for this field
	Prefix string        // bytes that precede the value
	Term   string        // terminator of the field, instead of the type's Sep

	Chars    string   // the bytes that are allowed in a Text; "": all
	NotFirst string   // those of Chars that are not allowed as the first byte
	Values   []string // the allowed values of a Text; nil: all
	Examples []string // values that peers commonly send
	Only     bool     // values other than the Examples may be illegal, although the rest of the declaration allows them

	Canonical bool // the number must not have leading zeros

	Optional bool // may be omitted, together with all following fields
	Assigned bool // chosen by the server: a transcript binds the value instead of comparing it
	Unique   bool // a repeated field whose values within one message must all differ
	Scalar   bool // a YAML scalar: the quotes around it are not part of the value

	Rule     RuleID // rule that a value violates if it does not match Kind, Lo, Hi or Chars
	MaxRule  RuleID // rule that a value longer than Max violates
	NonEmpty RuleID // rule that an empty value violates; "": the value may be empty

	// Set by Link:
	plain   bool // the field has no Prefix and ends at a separator of one byte
	least   int  // smallest length of a range in which all values are legal; see legalLength
	lengths uint
	chars   [4]uint64 // the set of Chars
}

// Derived reports whether the field is framing, which the codec computes, rather than an argument of the
// message.
func (f *Field) Derived() bool { return f.Kind >= Literal }

// prepare computes the fields that Link sets. sep is the separator of the message type, which ends the field.
func (f *Field) prepare(sep string) {
	f.plain = len(sep) == 1 && f.Kind <= Text && f.Chars == "" && f.Values == nil && f.Prefix == "" && f.Term == "" &&
		f.Width == 0
	if f.lengths = 0; f.Kind <= Text && f.Width == 0 && f.Chars == "" && f.Values == nil {
		if f.lengths = math.MaxInt; f.Max > 0 {
			f.lengths = uint(f.Max) + 1
		}
		if f.least = 0; f.NonEmpty != "" {
			f.least = 1
			f.lengths--
		}
	}
	for i := range f.Chars {
		f.chars[f.Chars[i]>>6] |= 1 << (f.Chars[i] & 63)
	}
}

// legalLength reports whether every value of length n is legal.
func (f *Field) legalLength(n int) bool { return uint(n-f.least) < f.lengths }

// decimal reports whether the value is a legal Number. It is faster than Check and returns false for some
// legal values.
func (f *Field) decimal(v []byte) bool {
	if f.Kind != Number || f.Canonical || f.Max > 0 {
		return false
	}
	n, ok := ParseNumber(v)
	return ok && n >= f.Lo && (f.Hi == 0 || n <= f.Hi)
}

// Check returns an error for the first rule that the value violates and that is not waived. at is the offset
// of the value in its message.
func (f *Field) Check(v []byte, at int, o *Options) *Error {
	rule, bad, why := f.fault(v, o)
	if why == nil {
		return nil
	}
	return &Error{Rule: rule, Offset: at + bad, Field: f.Name, Detail: why(f, v[bad:], v)}
}

// Legal reports whether Check would return nil.
func (f *Field) Legal(v []byte, o *Options) bool {
	if f.legalLength(len(v)) {
		return true
	}
	_, _, why := f.fault(v, o)
	return why == nil
}

// reason describes what is wrong with the value v. from is the part of v that begins with the first invalid
// byte.
type reason func(f *Field, from, v []byte) string

func tooLong(f *Field, _, v []byte) string {
	return fmt.Sprintf("expected at most %d bytes, got %d", f.Max, len(v))
}

func empty(*Field, []byte, []byte) string {
	return "expected a value that is not empty, got an empty value"
}

func wrongWidth(f *Field, _, v []byte) string {
	return fmt.Sprintf("expected %d bytes, got %d", f.Width, len(v))
}

func unlisted(f *Field, _, v []byte) string {
	return fmt.Sprintf("expected one of %s, got %s", strings.Join(f.Values, ", "), quote(v))
}

func wrongChar(_ *Field, from, _ []byte) string {
	return fmt.Sprintf("expected only allowed characters, got %q", from[:1])
}

func wrongFirst(_ *Field, from, _ []byte) string {
	return fmt.Sprintf("expected a first character that is allowed at the beginning, got %q", from[:1])
}

func leadingZero(*Field, []byte, []byte) string {
	return "expected a number without leading zeros, got a number with leading zeros"
}

// notNumber describes a value that is not a decimal number, or has more than 64 bits.
func notNumber(f *Field, _, v []byte) string {
	switch {
	case f.Kind == Signed:
		return "expected a decimal number, got " + quote(v)
	case len(v) == 0:
		return "expected a decimal number, got an empty value"
	}
	return "expected a decimal number of at most 64 bits, got " + quote(v)
}

// outOfRange describes a number below Lo or above Hi.
func outOfRange(f *Field, _, v []byte) string {
	n := string(v)
	if f.Kind == Uint {
		n = strconv.FormatUint(BigEndian(v), 10)
	}
	if f.Hi > 0 {
		return fmt.Sprintf("expected a number from %d to %d, got %s", f.Lo, f.Hi, n)
	}
	return fmt.Sprintf("expected a number of at least %d, got %s", f.Lo, n)
}

// fault returns the first rule that a value violates, the offset of the first invalid byte in the value, and
// the reason, which is nil if the value is legal.
func (f *Field) fault(v []byte, o *Options) (rule RuleID, at int, why reason) {
	if f.Max > 0 && len(v) > f.Max && !o.Waived(f.MaxRule) {
		return f.MaxRule, f.Max, tooLong
	}
	if len(v) == 0 && f.NonEmpty != "" && !o.Waived(f.NonEmpty) {
		return f.NonEmpty, 0, empty
	}
	switch f.Kind {
	case Text:
		at, why = f.checkText(v)
	case Uint:
		if len(v) != f.Width { // no other width can be encoded
			return f.Rule, 0, wrongWidth
		}
		if n := BigEndian(v); f.Hi > 0 && (n < f.Lo || n > f.Hi) {
			why = outOfRange
		}
	case Length:
		// The bytes after a length cannot be decoded without it, so this rule cannot be waived.
		if f.Width == 0 {
			at, why = f.number(v)
		}
		return f.Rule, at, why
	case Number, Signed:
		at, why = f.number(v)
	}
	if why != nil && o.Waived(f.Rule) {
		why = nil
	}
	return f.Rule, at, why
}

// checkText returns the offset of the first byte of a text that the field does not allow, and the reason.
func (f *Field) checkText(v []byte) (at int, why reason) {
	switch {
	case f.Width > 0 && len(v) != f.Width:
		return 0, wrongWidth
	case f.Values != nil && !slices.ContainsFunc(f.Values, func(s string) bool { return s == string(v) }):
		return 0, unlisted
	case f.Chars == "":
		return 0, nil
	}
	for i, c := range v {
		if !f.allows(c) {
			return i, wrongChar
		}
	}
	if len(v) > 0 && strings.IndexByte(f.NotFirst, v[0]) >= 0 {
		return 0, wrongFirst
	}
	return 0, nil
}

// allows reports whether Chars contains a byte.
func (f *Field) allows(c byte) bool { return f.chars[c>>6]&(1<<(c&63)) != 0 }

// number checks decimal text.
func (f *Field) number(v []byte) (at int, why reason) {
	digits, most := v, uint64(math.MaxUint64)
	if f.Kind == Signed {
		most = math.MaxInt64
		if digits = bytes.TrimPrefix(v, []byte("-")); len(digits) < len(v) {
			most++
		}
	}
	n, badAt := parseNumber(digits)
	sign := len(v) - len(digits)
	switch {
	case badAt >= 0:
		return sign + badAt, notNumber
	case n > most:
		return sign, notNumber
	case f.Kind != Signed && (n < f.Lo || f.Hi > 0 && n > f.Hi):
		return 0, outOfRange
	case f.Canonical && digits[0] == '0' && len(v) > 1:
		return 0, leadingZero
	}
	return 0, nil
}

// Sample returns the word if it is legal for the field, and otherwise another legal value, such as the
// smallest number.
func (f *Field) Sample(word string) []byte {
	switch {
	case f == nil:
		return []byte(word)
	case len(f.Values) > 0:
		return []byte(f.Values[0])
	case f.Kind == Number:
		return strconv.AppendUint(nil, f.Lo, 10)
	case f.Kind == Signed:
		return []byte("0")
	case f.Kind == Uint:
		return binary.BigEndian.AppendUint64(nil, f.Lo)[8-f.Width:]
	case f.Legal([]byte(word), &Options{}):
		return []byte(word)
	}
	legal := strings.Trim(f.Chars, f.NotFirst) + "x"
	return bytes.Repeat([]byte(legal[:1]), max(1, f.Width))
}

// Sample returns a legal message with all arguments and two repetitions of the repeated ones.
func (t *Type) Sample() *Message {
	m := &Message{Type: t}
	_, once, group := t.Arity()
	for i := range once + 2*group {
		fd := t.FieldAt(i)
		word := "x-" + strings.ReplaceAll(fd.Name, " ", "_")
		if i >= once+group {
			word += "-2"
		}
		m.Args = append(m.Args, fd.Sample(word))
	}
	return m
}

// BigEndian decodes a binary number of at most 8 bytes.
func BigEndian(v []byte) (n uint64) {
	for _, c := range v {
		n = n<<8 | uint64(c)
	}
	return n
}

// ParseNumber decodes unsigned decimal text. ok is false if v is empty, is not decimal, or needs more than 64 bits.
func ParseNumber(v []byte) (n uint64, ok bool) {
	n, badAt := parseNumber(v)
	return n, badAt < 0
}

// parseNumber is ParseNumber with the offset of the first byte that makes v invalid, or -1 if v is valid. For an
// empty v, badAt is 0.
func parseNumber(v []byte) (n uint64, badAt int) {
	if len(v) == 0 {
		return 0, 0
	}
	for i, c := range v {
		d := uint64(c - '0')
		if d > 9 || i >= 19 && n > (math.MaxUint64-d)/10 { // 19 digits always fit
			return 0, i
		}
		n = n*10 + d
	}
	return n, -1
}

// quote quotes a value for an error and truncates it to 40 bytes.
func quote(v []byte) string {
	if len(v) > 40 {
		return fmt.Sprintf("%q...", v[:40])
	}
	return fmt.Sprintf("%q", v)
}
