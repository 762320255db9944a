package resp

import (
	"slices"
	"strings"

	"jobwire/codec"
)

const crlf = "\r\n"

// general are the message types that have a form and are used for messages that match no specific type, in
// the order in which they are tried. [New] sets their roles.
var general = []TypeDecl{
	{Name: "command", Req: Client, AnyCommand: true, Form: "{Command} {Argument...}"},

	{Name: "simple", Worded: true, Does: codec.Answer, Form: "+{Text}"},
	{Name: "error", Worded: true, Does: codec.Refuse, Form: "-{Error code} {Error text}"},
	{Name: "integer", Does: codec.Answer, Form: ":{Integer}"},
	{Name: "bulk", Does: codec.Answer, Form: "${Data}"},
	{Name: "nil", Does: codec.Answer, Form: "$-1"},
	{Name: "nil-array", Does: codec.Answer, Form: "*-1"},
	{Name: "list", Does: codec.Answer, Form: "{Item...}"},

	{Name: "null", Does: codec.Answer, Form: "_"},
	{Name: "double", Does: codec.Answer, Form: ",{Double}"},
	{Name: "boolean", Does: codec.Answer, Form: "#{Boolean}"},
	{Name: "big-number", Does: codec.Answer, Form: "({Big number}"},
	{Name: "blob-error", Does: codec.Refuse, Form: "!{Error code} {Error text}"},
	{Name: "verbatim", Does: codec.Answer, Form: "={Format}:{Text}"},
	{Name: "map", Does: codec.Answer, Form: "%{Key...} {Value...}"},

	{Name: "message", Does: codec.Published, Push: true, Form: "message {Channel} {Payload}"},
	{Name: "pmessage", Does: codec.Published, Push: true, Form: "pmessage {Pattern} {Channel} {Payload}"},
	{Name: "smessage", Does: codec.Published, Push: true, Form: "smessage {Channel} {Payload}"},
	{Name: "subscribed", Does: codec.Answer, Push: true, Form: "subscribe {Channel} :{Count}"},
	{Name: "unsubscribed", Does: codec.Answer, Push: true, Form: "unsubscribe {Channel} :{Count}"},
	{Name: "psubscribed", Does: codec.Answer, Push: true, Form: "psubscribe {Pattern} :{Count}"},
	{Name: "punsubscribed", Does: codec.Answer, Push: true, Form: "punsubscribe {Pattern} :{Count}"},
	{Name: "ssubscribed", Does: codec.Answer, Push: true, Form: "ssubscribe {Channel} :{Count}"},
	{Name: "sunsubscribed", Does: codec.Answer, Push: true, Form: "sunsubscribe {Channel} :{Count}"},
}

// arguments declares the arguments of the general types that are not arbitrary bytes.
var arguments = map[string]codec.Field{
	"Command":    {Only: true, Examples: commandExamples},
	"Error code": {Kind: codec.Text},
	"Error text": {Means: codec.Chosen, Optional: true},
	"Integer":    {Kind: codec.Signed, Rule: RuleInteger},
	"Count":      {Kind: codec.Number, Rule: RuleInteger},
	"Double": {Kind: codec.Text, Chars: "0123456789+-.einfa", Rule: RuleDouble, NonEmpty: RuleDouble, Only: true,
		Examples: doubleExamples},
	"Boolean": {Kind: codec.Text, Values: []string{"t", "f"}, Rule: RuleBoolean},
	"Big number": {Kind: codec.Text, Chars: "0123456789-", Rule: RuleBigNumber, NonEmpty: RuleBigNumber, Only: true,
		Examples: bigNumberExamples},
	"Format": {Kind: codec.Text, Width: 3, Rule: RuleVerbatim},
}

// grammar is the data that the sessions of a protocol share.
type grammar struct {
	types []*codec.Type
	forms []*form // by the index of their type; nil if the type has no form
	// requests that have a message type of their own, by the name of the command in small letters
	commands map[string][]*form
	command  []*form // all other requests
	replies  []*form // the general replies
	pushes   []*form // the forms of specific types first
	events   []*form // replies that assign a job or report its end

	inline, aggregate, push *codec.Type // types without a form
}

// New creates a grammar from specific message types, which are tried first, and the general types, which
// peers with a role in anyone may send and receive, and which may answer any request. fields declares the
// arguments of the specific types by name; other arguments are arbitrary bytes.
func New(anyone codec.Role, fields map[string]codec.Field, typeDecls []TypeDecl) *Grammar {
	g := &grammar{commands: map[string][]*form{}}
	for i := range typeDecls {
		fm := g.add(&typeDecls[i], fields)
		if fm.command {
			command := strings.ToLower(fm.msgType.Word)
			g.commands[command] = append(g.commands[command], fm)
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
	g.inline = g.plain(codec.Type{Name: "inline", Req: anyone, AnyCommand: true, Ordered: true, Examples: inlineExample,
		Fields: []codec.Field{{Name: "Line", Rule: RuleInlineWords}}, End: "\n"})
	g.aggregate = g.plain(codec.Type{Name: "aggregate", Res: anyone, Examples: valueExample("*~|"), Does: codec.Answer,
		Repeat: token, End: crlf})
	g.push = g.plain(codec.Type{Name: "push", Res: anyone, Examples: valueExample(">"), Does: codec.Published, Push: true,
		Repeat: token, End: crlf})

	var answers []string
	for _, fm := range g.replies {
		answers = append(answers, fm.msgType.Name)
	}
	answers = append(answers, g.aggregate.Name)
	for i, t := range g.types {
		if t.Req == 0 {
			continue
		}
		if t.Replies = answers; i < len(typeDecls) {
			t.Replies = slices.Concat(typeDecls[i].Replies, answers)
			g.forms[i].variants = g.named(typeDecls[i].Replies)
		}
	}
	codec.Link(g.types)
	return &Grammar{Types: g.types, NewSession: g.newSession, Reread: g.reread}
}

// add adds a message type with a form.
func (g *grammar) add(r *TypeDecl, fields map[string]codec.Field) *form {
	fm := compile(r, fields)
	g.types, g.forms = append(g.types, fm.msgType), append(g.forms, fm)
	if len(fm.words) > 0 && (fm.command || fm.msgType.Push) {
		fm.effect = effectOf([]byte(fm.words[0].Tail))
	}
	if fm.msgType.Res != 0 && (fm.msgType.Does == codec.Assign || fm.msgType.Does == codec.Complete) {
		g.events = append(g.events, fm)
	}
	if fm.msgType.Push {
		g.pushes = append(g.pushes, fm)
	}
	return fm
}

// plain adds a general message type without a form.
func (g *grammar) plain(t codec.Type) *codec.Type {
	t.Section = section
	g.types, g.forms = append(g.types, &t), append(g.forms, nil)
	return &t
}

// named returns the forms of the message types with the names.
func (g *grammar) named(names []string) (forms []*form) {
	for _, fm := range g.forms {
		if fm != nil && slices.Contains(names, fm.msgType.Name) {
			forms = append(forms, fm)
		}
	}
	return forms
}
