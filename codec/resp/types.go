package resp

import (
	"slices"

	"jobwire/codec"
)

const crlf = "\r\n"

// general are the rows that have a form and fit what no typed row does, in the
// order in which they are tried. [New] fills in who else may send them.
var general = []Row{
	{Name: "command", Req: Client, Form: "{Command} {Argument...}"},

	{Name: "simple", Form: "+{Text}"},
	{Name: "error", Form: "-{Error code} {Error text}"},
	{Name: "integer", Form: ":{Integer}"},
	{Name: "bulk", Form: "${Data}"},
	{Name: "nil", Form: "$-1"},
	{Name: "nil-array", Form: "*-1"},
	{Name: "list", Form: "{Item...}"},

	{Name: "null", Form: "_"},
	{Name: "double", Form: ",{Double}"},
	{Name: "boolean", Form: "#{Boolean}"},
	{Name: "big-number", Form: "({Big number}"},
	{Name: "blob-error", Form: "!{Error code} {Error text}"},
	{Name: "verbatim", Form: "={Format}:{Text}"},
	{Name: "map", Form: "%{Key...} {Value...}"},

	{Name: "message", Push: true, Form: "message {Channel} {Payload}"},
	{Name: "pmessage", Push: true, Form: "pmessage {Pattern} {Channel} {Payload}"},
	{Name: "smessage", Push: true, Form: "smessage {Channel} {Payload}"},
	{Name: "subscribed", Push: true, Form: "subscribe {Channel} :{Count}"},
	{Name: "unsubscribed", Push: true, Form: "unsubscribe {Channel} :{Count}"},
	{Name: "psubscribed", Push: true, Form: "psubscribe {Pattern} :{Count}"},
	{Name: "punsubscribed", Push: true, Form: "punsubscribe {Pattern} :{Count}"},
	{Name: "ssubscribed", Push: true, Form: "ssubscribe {Channel} :{Count}"},
	{Name: "sunsubscribed", Push: true, Form: "sunsubscribe {Channel} :{Count}"},
}

// arguments declares those of the general rows that may not hold any bytes.
var arguments = map[string]codec.Field{
	"Error code": {Kind: codec.Text},
	"Error text": {Optional: true},
	"Integer":    {Kind: codec.Signed, Rule: RuleInteger},
	"Count":      {Kind: codec.Number, Rule: RuleInteger},
	"Double":     {Kind: codec.Text, Chars: "0123456789+-.einfa", Rule: RuleDouble, NonEmpty: RuleDouble},
	"Boolean":    {Kind: codec.Text, Values: []string{"t", "f"}, Rule: RuleBoolean},
	"Big number": {Kind: codec.Text, Chars: "-0123456789", Rule: RuleBigNumber, NonEmpty: RuleBigNumber},
	"Format":     {Kind: codec.Text, Width: 3, Rule: RuleVerbatim},
}

// grammar is what the sessions of a protocol share.
type grammar struct {
	types    []*codec.Type
	forms    []*form            // by the index of their row; nil where the row has none
	commands map[string][]*form // typed requests, by their command in capitals
	command  []*form            // the one of all other requests
	replies  []*form            // the general ones
	pushes   []*form            // the typed ones first

	inline, aggregate, push *codec.Type // rows without a form
}

// New makes a grammar of typed rows, which are tried first, and the general
// ones, which anyone may send or be sent, and which may answer any request.
// fields declares the arguments of the typed rows by name; others hold any bytes.
func New(anyone codec.Role, fields map[string]codec.Field, rows []Row) *Grammar {
	g := &grammar{commands: map[string][]*form{}}
	for i := range rows {
		fm := g.add(&rows[i], fields)
		if fm.command {
			g.commands[fm.row.Word] = append(g.commands[fm.row.Word], fm)
		}
	}
	for _, r := range general {
		r.Section = section
		if r.Req != 0 {
			r.Req = anyone
		} else {
			r.Res = anyone
		}
		fm := g.add(&r, arguments)
		fm.general = true
		switch {
		case r.Req != 0:
			g.command = append(g.command, fm)
		case !r.Push:
			g.replies = append(g.replies, fm)
		}
	}
	token := []codec.Field{{Name: "Token"}}
	g.inline = g.plain(codec.Type{Name: "inline", Req: anyone, Fields: []codec.Field{{Name: "Line", Rule: RuleInlineWords}}, End: "\n"})
	g.aggregate = g.plain(codec.Type{Name: "aggregate", Res: anyone, Repeat: token, End: crlf})
	g.push = g.plain(codec.Type{Name: "push", Res: anyone, Repeat: token, End: crlf})

	var answers []string
	for _, fm := range g.replies {
		answers = append(answers, fm.row.Name)
	}
	answers = append(answers, g.aggregate.Name)
	for i, t := range g.types {
		if t.Req == 0 {
			continue
		}
		if t.Replies = answers; i < len(rows) {
			t.Replies = slices.Concat(rows[i].Replies, answers)
			g.forms[i].typed = g.named(rows[i].Replies)
		}
	}
	return &Grammar{Types: g.types, NewSession: g.newSession}
}

// add adds a row that has a form.
func (g *grammar) add(r *Row, fields map[string]codec.Field) *form {
	fm := compile(r, fields)
	fm.row.Index = len(g.types)
	g.types, g.forms = append(g.types, fm.row), append(g.forms, fm)
	if len(fm.words) > 0 && (fm.command || fm.push) {
		fm.effect = effectOf([]byte(fm.words[0].tail))
	}
	if fm.push {
		g.pushes = append(g.pushes, fm)
	}
	return fm
}

// plain adds a general row that has none.
func (g *grammar) plain(t codec.Type) *codec.Type {
	t.Section, t.Index = section, len(g.types)
	g.types, g.forms = append(g.types, &t), append(g.forms, nil)
	return &t
}

// named returns the forms of rows.
func (g *grammar) named(rows []string) (forms []*form) {
	for _, fm := range g.forms {
		if fm != nil && slices.Contains(rows, fm.row.Name) {
			forms = append(forms, fm)
		}
	}
	return forms
}
