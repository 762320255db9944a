package resp

import (
	"fmt"
	"math"
	"strings"

	"jobwire/codec"
)

// TypeDecl declares a message type by its form. A form is written like a command in a specification: words
// separated by single spaces, with {Name} for an argument inside a word.
//
//	HMSET job:{Function}:{ID} status idle input {Input}
//
// Two arguments in one word are separated by one byte. A value is split at the last occurrence of
// this byte or, if the second argument may contain any bytes, at the first. If the name of an
// argument occurs again, the value must be the same there. The later occurrence counts as framing:
// the codec writes it, and it is not an argument. {Name...} in the words at the end stands for any
// number of repetitions of these words. The leading words of a request that consist of capitals are
// the command, and are decoded without regard to letter case.
//
// Sizes and literal words are derived fields of the type, not arguments.
//
// A reply is an array of such words; a word that begins with a colon is an integer. A form that begins with
// one of + - : , # ( _ $ ! = is one value of that kind, % begins a map, and $-1 and *-1 are the null values
// of RESP2.
type TypeDecl struct {
	Name     string
	Req, Res codec.Role // roles that send it to the server, or that the server sends it to
	Section  string
	Form     string
	Replies  []string // names of specific types that may answer it, before the general ones
	Push     bool     // sent by the server without a request

	Does       codec.Effect // as in codec.Type
	Background bool
	Blocks     codec.Blocking
	Varies     bool
	Races      bool
	AnyCommand bool
	Worded     bool
}

// form is a compiled [TypeDecl].
type form struct {
	msgType  *codec.Type
	kind     byte // the byte that begins the value
	null     bool
	words    []word
	group    int     // number of repeated words at the end
	command  bool    // the first word is the Code field of the type
	variants []*form // the forms of specific types that may answer it
	effect   codec.ReplyEffect
	general  bool // the form belongs to a general type
}

// word is a bulk string, or a line, of a form. Its Kind is $ or the kind of the line.
type word struct {
	codec.Word
	command bool          // the word is the Code field of the type; its spans come before those of the type's fields
	args    int           // number of its arguments
	fields  []codec.Field // the type's fields in the word: its size, if it has one, then the others
}

// Framing fields that all types share.
var (
	typeField    = codec.Field{Name: "Type", Kind: codec.Code}
	countField   = codec.Field{Name: "Count", Kind: codec.Length, Rule: RuleCount}
	wordsField   = codec.Field{Name: "Count", Kind: codec.Length, Prefix: "*", Rule: RuleCount}
	sizeField    = codec.Field{Name: "Size", Kind: codec.Length, Prefix: "$", Rule: RuleSize}
	bareSize     = codec.Field{Name: "Size", Kind: codec.Length, Rule: RuleSize} // after the type byte of the value
	commandField = codec.Field{Name: "Command", Kind: codec.Code}
)

// singles are the bytes that begin a form of one value.
const singles = "+-:,#(_$!="

// compile compiles the form of a message type. fields declares arguments by name; other arguments are
// arbitrary bytes. compile panics on an invalid form, because forms are constants.
func compile(r *TypeDecl, fields map[string]codec.Field) *form {
	fm := &form{msgType: &codec.Type{Name: r.Name, Req: r.Req, Res: r.Res, Section: r.Section, End: crlf,
		Does: r.Does, Background: r.Background, Blocks: r.Blocks, Varies: r.Varies, Races: r.Races, AnyCommand: r.AnyCommand,
		Worded: r.Worded, Push: r.Push, Ordered: r.Req != 0}}
	texts := []string{r.Form[1:]}
	switch {
	case r.Form == "$-1", r.Form == "*-1":
		fm.kind, fm.null, fm.msgType.Word, texts = r.Form[0], true, r.Form, nil
	case strings.IndexByte(singles, r.Form[0]) >= 0:
		fm.kind, fm.msgType.Word = r.Form[0], r.Form[:1]
	case r.Form[0] == '%':
		fm.kind, fm.msgType.Word = '%', "%"
		texts = split(r.Form[1:])
	default:
		fm.kind, fm.msgType.Word = '*', "*"
		texts = split(r.Form)
	}
	fm.words = make([]word, len(texts))
	c := compiler{form: fm, declared: fields, named: map[string]int{}}
	ends := make([][2]int, len(texts))
	for i, text := range texts {
		c.word(&fm.words[i], i, text)
		ends[i] = [2]int{len(fm.msgType.Fields), len(fm.msgType.Repeat)}
	}
	// The slices Fields and Repeat are now complete: assign each word its part.
	var at [2]int
	for i := range fm.words {
		w, end := &fm.words[i], ends[i]
		w.fields = fm.msgType.Fields[at[0]:end[0]]
		if end[1] > at[1] {
			w.fields = fm.msgType.Repeat[at[1]:end[1]]
		}
		at = end
		w.Repeat = i >= len(fm.words)-fm.group
		for k := range w.Parts {
			w.Parts[k].Field = &w.fields[len(w.fields)-len(w.Parts)+k]
		}
		fm.msgType.Words = append(fm.msgType.Words, w.Word)
	}
	return fm
}

// compiler reads the words of a form.
type compiler struct {
	form     *form
	declared map[string]codec.Field
	named    map[string]int // arguments, by name
	rest     bool           // a word that is not part of the command has been read
}

// word compiles the i-th word of a form.
func (c *compiler) word(w *word, i int, text string) {
	fm := c.form
	isCommand := fm.msgType.Req != 0 && !c.rest && text != "" && strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
	c.rest = c.rest || !isCommand
	w.Fold = isCommand
	if i == 0 && isCommand {
		fm.command, fm.msgType.Word = true, text
		w.Kind, w.Tail, w.command = '$', text, true
		return // the spans of the command come before those of the type's fields
	}
	to := &fm.msgType.Fields
	if strings.Contains(text, "...}") {
		fm.group++
		to, text = &fm.msgType.Repeat, strings.ReplaceAll(text, "...}", "}")
		clear(c.named) // an argument of a repetition is never the same as an earlier one
	} else if fm.group > 0 {
		panic(fmt.Sprintf("%s: a word follows the repeated words", fm.msgType.Name))
	}
	prefix := ""
	switch w.Kind = fm.kind; {
	case fm.kind == '!' || fm.kind == '=' || fm.kind == '$':
		*to = append(*to, bareSize)
	case !isArray(fm.kind):
	case text[0] == ':':
		w.Kind, text, prefix = ':', text[1:], ":"
	default:
		w.Kind = '$'
		*to = append(*to, sizeField)
	}
	fields := c.cut(w, text, prefix)
	for i := range fields {
		f := &fields[i]
		f.Canonical = w.Kind == ':' || f.Kind == codec.Signed
		if w.Kind == ':' && f.Kind == codec.Number && f.Hi == 0 {
			f.Hi = math.MaxInt64
		}
	}
	*to = append(*to, fields...)
}

// cut finds the arguments of a word and returns their fields, or the field of the whole word if all
// of it is framing. lead is put before the Prefix of the first argument.
func (c *compiler) cut(w *word, text, prefix string) (fields []codec.Field) {
	again := false
	for text != "" {
		before, rest, ok := strings.Cut(text, "{")
		if !ok {
			w.Tail = text
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
		w.Parts = append(w.Parts, codec.Part{Prefix: before, Same: k, Again: known})
		fd := c.declared[name]
		fd.Name = name
		fd.Term, _, _ = strings.Cut(rest, "{")
		if len(w.Parts) == 1 {
			fd.Prefix = prefix + before
		}
		fields, text = append(fields, fd), rest
	}
	switch {
	case len(w.Parts) == 0 && w.Fold:
		return []codec.Field{{Name: "Subcommand", Kind: codec.Code}}
	case len(w.Parts) == 0 && w.Tail != "":
		return []codec.Field{{Name: w.Tail, Kind: codec.Literal, Prefix: w.Tail}}
	case again && len(w.Parts) == 1 && w.Parts[0].Same < maxNamed:
		return []codec.Field{{Name: "Key", Kind: codec.Literal}}
	case again || len(w.Parts) > 2 || len(w.Parts) == 2 && len(w.Parts[1].Prefix) != 1:
		panic(fmt.Sprintf("%s: %q contains too many arguments", c.form.msgType.Name, text))
	}
	return fields
}

// split splits a form at the spaces between its words. The names of arguments may contain spaces.
func split(form string) []string {
	inside := false
	return strings.FieldsFunc(form, func(c rune) bool {
		inside = c == '{' || inside && c != '}'
		return c == ' ' && !inside
	})
}

// isArray reports whether values of the kind contain other values.
func isArray(kind byte) bool { return kind == '*' || kind == '%' }
