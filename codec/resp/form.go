package resp

import (
	"fmt"
	"math"
	"strings"

	"jobwire/codec"
)

// Row declares a message type by its form, which is written as documents write
// commands: words between single blanks, {Name} for an argument inside a word.
//
//	HMSET job:{Function}:{ID} status idle input {Input}
//
// Where two arguments share a word, one byte stands between them; they are parted
// where it stands last, or first, if the second may hold any bytes. An argument
// that is named again must be equal to the first, and is framing. {Name...} in
// the last words is any number of them. The first words of a request, while they
// are capitals, are the command, and read without regard to letter case.
//
// Sizes and literal words are derived fields of the row, no arguments.
//
// A reply is an array of such words; one that begins with a colon is an
// integer. A form that begins with + - : , # ( _ $ ! or = is one value of that
// kind, % begins a map, and $-1 and *-1 are the null values of RESP2.
type Row struct {
	Name     string
	Req, Res codec.Role // who sends it to the server, or whom the server sends it to
	Section  string
	Form     string
	Replies  []string // rows that may answer it, before the general ones
	Push     bool     // sent by the server without being asked

	Does       codec.Effect // as in codec.Type
	Background bool
	Blocks     codec.Blocking
	Varies     bool
	Races      bool
	AnyCommand bool
	Worded     bool
}

// form is a compiled row.
type form struct {
	row     *codec.Type
	kind    byte // that begins the value
	null    bool
	words   []word
	group   int     // so many words at the end are repeated
	command bool    // the first word is the row's Code
	typed   []*form // the forms that may answer it, before the general ones
	effect  effect
	general bool // it fits what no typed row does
}

// word is a bulk string, or a line, of a form.
type word struct {
	kind    byte          // $ or the kind of the line
	fold    bool          // letter case does not matter
	command bool          // it is the row's Code, whose framing stands before the row's fields
	args    int           // how many arguments it has
	fields  []codec.Field // those of the row that are in the word: its size, if it has one, then the others
	parts   []part        // its arguments
	tail    string        // behind the last of them
}

// part is an argument inside a word.
type part struct {
	lead  string // before it
	arg   int    // its position among the row's arguments
	again bool   // it was named before
}

// Framing that is the same in all rows.
var (
	typeField    = codec.Field{Name: "Type", Kind: codec.Code}
	countField   = codec.Field{Name: "Count", Kind: codec.Length, Rule: RuleCount}
	wordsField   = codec.Field{Name: "Count", Kind: codec.Length, Lead: "*", Rule: RuleCount}
	sizeField    = codec.Field{Name: "Size", Kind: codec.Length, Lead: "$", Rule: RuleSize}
	bareSize     = codec.Field{Name: "Size", Kind: codec.Length, Rule: RuleSize} // behind a type byte of its own
	commandField = codec.Field{Name: "Command", Kind: codec.Code}
)

// singles are the bytes that begin a form of one value.
const singles = "+-:,#(_$!="

// compile reads a row's form. fields declares arguments by name; others may
// hold any bytes. It panics on a form that makes no sense: rows are constants.
func compile(r *Row, fields map[string]codec.Field) *form {
	fm := &form{row: &codec.Type{Name: r.Name, Req: r.Req, Res: r.Res, Section: r.Section, End: crlf,
		Does: r.Does, Background: r.Background, Blocks: r.Blocks, Varies: r.Varies, Races: r.Races, AnyCommand: r.AnyCommand, Worded: r.Worded, Push: r.Push, Ordered: r.Req != 0}}
	texts := []string{r.Form[1:]}
	switch {
	case r.Form == "$-1", r.Form == "*-1":
		fm.kind, fm.null, fm.row.Word, texts = r.Form[0], true, r.Form, nil
	case strings.IndexByte(singles, r.Form[0]) >= 0:
		fm.kind, fm.row.Word = r.Form[0], r.Form[:1]
	case r.Form[0] == '%':
		fm.kind, fm.row.Word = '%', "%"
		texts = split(r.Form[1:])
	default:
		fm.kind, fm.row.Word = '*', "*"
		texts = split(r.Form)
	}
	fm.words = make([]word, len(texts))
	c := compiler{form: fm, declared: fields, named: map[string]int{}}
	ends := make([][2]int, len(texts))
	for i, text := range texts {
		c.word(&fm.words[i], i, text)
		ends[i] = [2]int{len(fm.row.Fields), len(fm.row.Repeat)}
	}
	// The slices have stopped growing: every word gets its share.
	var at [2]int
	for i := range fm.words {
		w, end := &fm.words[i], ends[i]
		w.fields = fm.row.Fields[at[0]:end[0]]
		if end[1] > at[1] {
			w.fields = fm.row.Repeat[at[1]:end[1]]
		}
		at = end
	}
	return fm
}

// compiler reads the words of a form.
type compiler struct {
	form     *form
	declared map[string]codec.Field
	named    map[string]int // arguments, by name
	rest     bool           // the words have arguments
}

// word reads the i-th word of a form.
func (c *compiler) word(w *word, i int, text string) {
	fm := c.form
	isCommand := fm.row.Req != 0 && !c.rest && text != "" && strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
	c.rest = c.rest || !isCommand
	w.fold = isCommand
	if i == 0 && isCommand {
		fm.command, fm.row.Word = true, text
		w.kind, w.tail, w.command = '$', text, true
		return // its fields stand before those of the row
	}
	to := &fm.row.Fields
	if strings.Contains(text, "...}") {
		fm.group++
		to, text = &fm.row.Repeat, strings.ReplaceAll(text, "...}", "}")
		clear(c.named) // a repetition names nothing again
	} else if fm.group > 0 {
		panic(fmt.Sprintf("%s: a word follows the repeated words", fm.row.Name))
	}
	lead := ""
	switch w.kind = fm.kind; {
	case fm.kind == '!' || fm.kind == '=' || fm.kind == '$':
		*to = append(*to, bareSize)
	case !isArray(fm.kind):
	case text[0] == ':':
		w.kind, text, lead = ':', text[1:], ":"
	default:
		w.kind = '$'
		*to = append(*to, sizeField)
	}
	fields := c.cut(w, text, lead)
	for i := range fields {
		f := &fields[i]
		f.Canonical = w.kind == ':' || f.Kind == codec.Signed
		if w.kind == ':' && f.Kind == codec.Number && f.Hi == 0 {
			f.Hi = math.MaxInt64
		}
	}
	*to = append(*to, fields...)
}

// cut finds the arguments of a word and returns their fields, or the field of
// the whole word if all of it is framing. lead belongs to the first of them.
func (c *compiler) cut(w *word, text, lead string) (fields []codec.Field) {
	again := false
	for text != "" {
		before, rest, ok := strings.Cut(text, "{")
		if !ok {
			w.tail = text
			break
		}
		name, rest, _ := strings.Cut(rest, "}")
		k, known := c.named[name]
		if !known {
			k = len(c.named)
			c.named[name] = k
		}
		again = again || known
		if !known {
			w.args++
		}
		w.parts = append(w.parts, part{lead: before, arg: k, again: known})
		fd := c.declared[name]
		fd.Name = name
		fd.Term, _, _ = strings.Cut(rest, "{")
		if len(w.parts) == 1 {
			fd.Lead = lead + before
		}
		fields, text = append(fields, fd), rest
	}
	switch {
	case len(w.parts) == 0 && w.fold:
		return []codec.Field{{Name: "Subcommand", Kind: codec.Code}}
	case len(w.parts) == 0 && w.tail != "":
		return []codec.Field{{Name: w.tail, Kind: codec.Literal, Lead: w.tail}}
	case again && len(w.parts) == 1:
		return []codec.Field{{Name: "Key", Kind: codec.Literal}}
	case again || len(w.parts) > 2 || len(w.parts) == 2 && len(w.parts[1].lead) != 1:
		panic(fmt.Sprintf("%s: %q contains too many arguments", c.form.row.Name, text))
	}
	return fields
}

// split cuts a form at the blanks between its words; the names of arguments may
// hold some.
func split(form string) []string {
	inside := false
	return strings.FieldsFunc(form, func(c rune) bool {
		inside = c == '{' || inside && c != '}'
		return c == ' ' && !inside
	})
}

// isArray reports whether values of the kind hold others.
func isArray(kind byte) bool { return kind == '*' || kind == '%' }
