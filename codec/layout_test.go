package codec_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	. "jobwire/codec"
)

// Rules of an imaginary protocol.
const (
	missing  RuleID = "x.missing"
	extra    RuleID = "x.extra"
	trailing RuleID = "x.trailing"
	spacing  RuleID = "x.spacing"
	value    RuleID = "x.value"
	longest  RuleID = "x.longest"
	filled   RuleID = "x.filled"
)

// Message types with every kind of field that a layout supports.
var (
	binary = Type{Name: "binary", Sep: "\x00", Fields: []Field{
		{Name: "Count", Kind: Uint, Width: 4, Rule: value}, {Name: "Flag", Kind: Uint, Width: 1, Hi: 2, Rule: value},
		{Name: "Name", Kind: Text, Max: 5, MaxRule: longest, NonEmpty: filled}, {Name: "Data"}}}
	line = Type{Name: "line", Sep: " ", End: "\n", Fields: []Field{
		{Name: "Tube", Kind: Text}, {Name: "Size", Kind: Number, Lo: 1, Hi: 9, Rule: value, Optional: true}, {Name: "Delta", Kind: Signed, Rule: value, Optional: true}}}
	sized = Type{Name: "sized", Sep: " ", End: "\r\n", Fields: []Field{
		{Name: "Word", Kind: Text, Chars: "abc-", NotFirst: "-", Rule: value}, {Name: "Bytes", Kind: Length, Hi: 99, Rule: value}}}
	fixed = Type{Name: "fixed", Sep: " ", End: "\n", Fields: []Field{
		{Name: "Level", Kind: Text, Values: []string{"high", "low"}, Rule: value}, {Name: "Hash", Kind: Text, Width: 4, Chars: "0123456789abcdef", Rule: value}}}
	framed = Type{Name: "framed", Fields: []Field{{Name: "Count", Kind: Length}, {Name: "Word"}},
		Repeat: []Field{{Name: "Size", Kind: Length}, {Name: "Key"}, {Name: "Size", Kind: Length}, {Name: "Value"}}}
	list = Type{Name: "list", Sep: " ", End: "\n", Repeat: []Field{
		{Name: "Key", Kind: Text, Term: ": "}, {Name: "Value", Prefix: "=", Rule: value}}}
)

func init() { Link([]*Type{&binary, &line, &sized, &fixed, &framed, &list}) }

func split(t *Type, text string, opts Options) (*Frame, *Error) {
	l := Layout{Form: &Form{Missing: missing, Extra: extra, Trailing: trailing}, Options: &opts}
	if t.End != "" {
		l.Spacing = spacing
	}
	f := &Frame{Raw: []byte(text)}
	fields := t.Fields
	if len(fields) == 0 {
		fields = t.Repeat
	}
	return f, l.Split(f, fields, t.Sep, 0, len(text), true)
}

func values(f *Frame) (all []string) {
	for i := range f.Spans {
		all = append(all, string(f.Value(i)))
	}
	return all
}

// TestSplit tests that a text is divided into the arguments that the layout of its message type declares, without
// losing a byte, and that Join makes the same text of the arguments.
func TestSplit(t *testing.T) {
	tests := []struct {
		msgType *Type
		text    string
		want    []string
	}{
		{&binary, "\x00\x00\x00\x07\x01name\x00da\x00ta", []string{"\x00\x00\x00\x07", "\x01", "name", "da\x00ta"}},
		{&binary, "\x00\x00\x00\x00\x00n\x00", []string{"\x00\x00\x00\x00", "\x00", "n", ""}},
		{&line, "tube", []string{"tube"}},
		{&line, "tube 9 -4", []string{"tube", "9", "-4"}},
		{&line, "tube 9 -9223372036854775808", []string{"tube", "9", "-9223372036854775808"}},
		{&list, "some key: =some value", []string{"some key", "some value"}},
	}
	for _, tt := range tests {
		f, err := split(tt.msgType, tt.text, Options{})
		if err != nil || !slices.Equal(values(f), tt.want) {
			t.Errorf("%s %q: %q, %v; want %q", tt.msgType.Name, tt.text, values(f), err, tt.want)
		}
		var rows []byte
		for i := range f.Spans {
			rows = append(rows, f.SpanBytes(i)...)
		}
		if string(rows) != tt.text {
			t.Errorf("%s: the rows hold %q, not %q", tt.msgType.Name, rows, tt.text)
		}
		l := Layout{Form: &Form{Missing: missing, Extra: extra, Trailing: trailing}, Options: &Options{}}
		m := Message{Type: tt.msgType}
		f.Type = tt.msgType
		f.Message(&m)
		again, err := l.Join([]byte("kept"), 4, &m)
		if want := "kept" + tt.text + strings.Repeat(tt.msgType.End, len(tt.msgType.Repeat)/2); err != nil || string(again) != want {
			t.Errorf("%s: joined %q, %v; want %q", tt.msgType.Name, again, err, want)
		}
	}
}

// TestSplitRefuses tests that a text that does not have the layout of its message type is rejected with the rule, the
// offset and the field.
func TestSplitRefuses(t *testing.T) {
	tests := []struct {
		msgType *Type
		text    string
		rule    RuleID
		offset  int
		field   string
	}{
		{&binary, "\x00\x00", missing, 2, "Count"},
		{&binary, "\x00\x00\x00\x07", missing, 4, "Flag"},
		{&binary, "\x00\x00\x00\x07\x03name\x00", value, 4, "Flag"},
		{&binary, "\x00\x00\x00\x07\x01name", missing, 9, "Data"},
		{&binary, "\x00\x00\x00\x07\x01longname\x00", longest, 10, "Name"},
		{&binary, "\x00\x00\x00\x07\x01\x00", filled, 5, "Name"},
		{&line, "tube 0", value, 5, "Size"},
		{&line, "tube 10", value, 5, "Size"},
		{&line, "tube x", value, 5, "Size"},
		{&line, "tube 99999999999999999999", value, 24, "Size"},
		{&line, "tube 1 --2", value, 8, "Delta"},
		{&line, "tube 1 9223372036854775808", value, 7, "Delta"},
		{&line, "tube 1 -9223372036854775809", value, 8, "Delta"},
		{&line, "tube 1 2 ", trailing, 8, "Delta"},
		{&line, "tube 1 2 3", extra, 9, "Delta"},
		{&line, "tube  1", spacing, 5, "Size"},
		{&fixed, "medium 00ff", value, 0, "Level"},
		{&fixed, "low 00fx", value, 7, "Hash"},
		{&fixed, "low 00f", missing, 7, "Hash"},
		{&sized, "abd 1", value, 2, "Word"},
		{&sized, "-ab 1", value, 0, "Word"},
		{&sized, "a-b 100", value, 4, "Bytes"},
		{&sized, "a-b 1x", value, 5, "Bytes"},
		{&sized, "a-b 1 2", extra, 6, "Bytes"},
		{&list, "key: value", value, 5, "Value"},
		{&list, "key", missing, 3, "Value"},
	}
	for _, tt := range tests {
		_, err := split(tt.msgType, tt.text, Options{})
		if err == nil || err.Rule != tt.rule || err.Offset != tt.offset || err.Field != tt.field {
			t.Errorf("%s %q: %v; want %s at %d, %s", tt.msgType.Name, tt.text, err, tt.rule, tt.offset, tt.field)
		}
	}
}

// TestLengthIsNotWaived tests that a field that contains a length must be a number even if all rules are waived,
// because the length determines where the message ends.
func TestLengthIsNotWaived(t *testing.T) {
	if f, err := split(&sized, "d 10", Options{WaiveAll: true}); err != nil || !slices.Equal(values(f), []string{"d", "10"}) {
		t.Errorf("%q, %v", values(f), err)
	}
	if _, err := split(&sized, "d x", Options{WaiveAll: true}); err == nil || err.Rule != value {
		t.Errorf("a size that is no number was let pass: %v", err)
	}
}

// TestParseNumber tests that ParseNumber returns a decimal number of up to 64 bits, and false for other text.
func TestParseNumber(t *testing.T) {
	tests := []struct {
		text string
		n    uint64
		ok   bool
	}{{"0", 0, true}, {"007", 7, true}, {"18446744073709551615", 1<<64 - 1, true}, {"18446744073709551616", 0, false},
		{"", 0, false}, {"1a", 0, false}, {"-1", 0, false}}
	for _, tt := range tests {
		if n, ok := ParseNumber([]byte(tt.text)); n != tt.n || ok != tt.ok {
			t.Errorf("%q: %d, %v; want %d, %v", tt.text, n, ok, tt.n, tt.ok)
		}
	}
}

// TestOffsetOfInvalidNumber tests that the error of an invalid number has the offset of the first character that makes
// it invalid.
func TestOffsetOfInvalidNumber(t *testing.T) {
	number := &Field{Kind: Number}
	for text, at := range map[string]int{"18446744073709551616": 19, "": 0, "1a": 1, "-1": 0} {
		if err := number.Check([]byte(text), 0, &Options{}); err == nil || err.Offset != at {
			t.Errorf("%q: %v, want an error at offset %d", text, err, at)
		}
	}
}

// TestSignatureAndFieldAt tests that the signature of a message type shows its arguments, also optional and repeated
// ones, and that FieldAt returns the field of each argument.
func TestSignatureAndFieldAt(t *testing.T) {
	if got := line.Signature(); got != "line tube [size] [delta]" {
		t.Error(got)
	}
	if got := list.Signature(); got != "list {key value}..." {
		t.Error(got)
	}
	if f := list.FieldAt(5); f == nil || f.Name != "Value" {
		t.Errorf("the sixth argument of a list is %v", f)
	}
	if got := framed.Signature(); got != "framed word {key value}..." {
		t.Error(got)
	}
	for i, want := range []string{"Word", "Key", "Value", "Key", "Value"} {
		if f := framed.FieldAt(i); f == nil || f.Name != want {
			t.Errorf("argument %d of a row with framing between its arguments is %v, want %s", i, f, want)
		}
	}
	if f := line.FieldAt(3); f != nil {
		t.Errorf("a line has a fourth argument, %v", f)
	}
}

// TestArgsOfFrame checks that Frame.Arg counts arguments as Frame.Message does: without framing, with
// repetitions, and nil after the last.
func TestArgsOfFrame(t *testing.T) {
	spans := func(fields ...*Field) (all []Span) {
		for i, fd := range fields {
			all = append(all, Span{fd, i, i + 1, i + 1})
		}
		return all
	}
	head := &Field{Name: "Type", Kind: Code}
	stop := &Field{Name: "End", Kind: Literal}
	once, again := framed.Fields, framed.Repeat
	for _, f := range []Frame{
		{Type: &framed, Head: 1, Raw: []byte("T1w:k=v:k=v"), Spans: spans(head, &once[0], &once[1],
			&again[0], &again[1], &again[2], &again[3], &again[0], &again[1], &again[2], &again[3])},
		{Type: &framed, Head: 1, Raw: []byte("T1"), Spans: spans(head, &once[0])},
		{Type: &list, Raw: []byte("kv."), Spans: spans(&list.Repeat[0], &list.Repeat[1], stop)},
		{Type: &list, Raw: []byte("."), Spans: spans(stop)},
		{Raw: []byte("T"), Spans: spans(head)},
	} {
		var m Message
		f.Message(&m)
		for i := range 9 {
			var want []byte
			if i < len(m.Args) {
				want = m.Args[i]
			}
			if got := f.Arg(i); !bytes.Equal(got, want) || (got == nil) != (want == nil) {
				t.Errorf("argument %d of %q is %q, that of its message %q", i, f.Raw, got, want)
			}
		}
	}
}

// TestCloneSharesNoMemory tests that a clone of a frame stays the same when the frame changes.
func TestCloneSharesNoMemory(t *testing.T) {
	f, err := split(&line, "tube 1", Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := f.Clone()
	f.Raw[0] = 'T'
	f.Spans[0].End = 1
	if !bytes.Equal(c.Value(0), []byte("tube")) || c.Spans[0].End != 4 {
		t.Errorf("the clone changed with the frame: %q", c.Value(0))
	}
}
