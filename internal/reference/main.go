// Command reference writes the pages in docs/protocols: the message types of each protocol, from their
// declarations in the contract.
package main

import (
	"cmp"
	_ "embed"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"text/template"
	"time"

	"jobwire/catalog"
	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/corpus"
)

//go:generate go run .

// The location of the pages and of the comments on effects and meanings, relative to this package.
const (
	folder   = "../../docs/protocols"
	behavior = "../../codec/behavior.go"
)

//go:embed page.md.tmpl
var layout string

// main writes the reference page of each protocol to docs.
func main() {
	for _, e := range catalog.All() {
		text, err := page(e.Protocol)
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, e.Protocol.Name+".md"), []byte(text), 0o666)
		}
		if err != nil {
			log.Fatal(err)
		}
	}
}

// page returns the reference page of a protocol in Markdown, from its definition and a template.
func page(p *codec.Protocol) (string, error) {
	words, err := readWords()
	if err != nil {
		return "", err
	}
	t, err := template.New("page").Funcs(template.FuncMap{
		"join":     strings.Join,
		"limits":   func(p *codec.Protocol) codec.Options { return p.Limits(codec.Options{}) },
		"word":     func(c any) string { return words[reflect.TypeOf(c).Name()][reflect.ValueOf(c).Uint()] },
		"code":     code,
		"escape":   escape,
		"wire":     wire,
		"link":     func(t *codec.Type) string { return fmt.Sprintf("[%s](#t%d)", t.Name, t.Index) },
		"ways":     ways,
		"requests": requests,
		"about":    about,
		"fields":   fields,
		"kind":     func(k codec.Kind) string { return kinds[k] },
		"bounds":   bounds,
		"unit":     func(d time.Duration) string { return units[d] },
		"example":  example,
	}).Parse(layout)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	err = t.Execute(&b, p)
	return b.String(), err
}

// kinds describes the valid bytes of a field.
var kinds = map[codec.Kind]string{codec.Opaque: "any bytes", codec.Text: "text", codec.Number: "decimal number",
	codec.Signed: "decimal integer", codec.Uint: "big-endian integer", codec.Length: "size in bytes"}

var units = map[time.Duration]string{time.Second: ", in seconds", time.Millisecond: ", in milliseconds"}

// readWords returns the comments on constants of the contract, by type and value.
func readWords() (map[string][]string, error) {
	file, err := parser.ParseFile(token.NewFileSet(), behavior, nil, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	words := map[string][]string{}
	for _, d := range file.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		typ := ""
		for _, s := range g.Specs {
			v := s.(*ast.ValueSpec)
			if v.Type != nil {
				typ = fmt.Sprint(v.Type)
			}
			comment := strings.Join(strings.Fields(cmp.Or(v.Comment, v.Doc).Text()), " ")
			text, _, _ := strings.Cut(comment, ", in units")
			words[typ] = append(words[typ], text)
		}
	}
	return words, nil
}

// example returns a message of the type from the test vectors, with its bytes.
func example(p *codec.Protocol, t *codec.Type) (string, error) {
	src, err := fs.ReadFile(corpus.Files(p.Name), "accept.wire")
	if err != nil {
		return "", err
	}
	scripts, err := transcript.Parse(p, "accept.wire", src)
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(scripts, func(s *transcript.Script) bool { return s.Value("case") == t.Name })
	if i < 0 {
		return "", nil
	}
	var f codec.Frame
	session, last := p.NewSession(codec.Options{}), transcript.Step{}
	for _, last = range scripts[i].Steps {
		if _, err := session.Decode(last.From, last.Choices[0].Bytes, &f); err != nil {
			return "", err
		}
	}
	printer := transcript.Printer{Protocol: p, Fold: 8}
	return string(printer.AppendFrame(nil, last.Peer.Name, &f)), nil
}

// ways describes which roles send a message to which role.
func ways(p *codec.Protocol, t *codec.Type) string {
	roles := func(set codec.Role) string {
		if set == 1<<len(p.Roles)-1 && len(p.Roles) > 1 {
			return "any role"
		}
		return strings.ReplaceAll(p.RoleNames(set), "/", " or ")
	}
	var all []string
	if t.Req != 0 {
		all = append(all, roles(t.Req)+" to "+p.ServerName)
	}
	if t.Res != 0 {
		all = append(all, p.ServerName+" to "+roles(t.Res))
	}
	return strings.Join(all, "; ")
}

// requests returns the message types to which a type may be the reply.
func requests(p *codec.Protocol, t *codec.Type) (all []*codec.Type) {
	for _, q := range p.Types {
		if slices.Contains(q.Answers, t) {
			all = append(all, q)
		}
	}
	return all
}

// fields returns the fields of a type, except constants and the sizes of strings in an array.
func fields(t *codec.Type) []codec.Field {
	all := slices.Clone(t.Fields)
	for _, f := range t.Repeat {
		f.Name += " (repeated)"
		all = append(all, f)
	}
	return slices.DeleteFunc(all, func(f codec.Field) bool {
		return kinds[f.Kind] == "" ||
			f.Kind == codec.Length && t.Sep == ""
	})
}

// bounds describes the valid values of a field, with the rules that other values violate.
func bounds(f codec.Field) string {
	var all []string
	add := func(holds bool, rule codec.RuleID, text string) bool {
		if holds && rule != "" {
			text = fmt.Sprintf("[%s](#%s)", text, rule)
		}
		if holds {
			all = append(all, text)
		}
		return holds
	}
	add(f.Width > 0, "", fmt.Sprintf("size %d", f.Width))
	_ = add(f.Values != nil, f.Rule, strings.Join(f.Values, ", ")) ||
		add(f.Hi > 0, f.Rule, fmt.Sprintf("%d to %d", f.Lo, f.Hi)) ||
		add(f.Chars != "", f.Rule, "certain characters") || add(f.Rule != "" && f.Kind != codec.Uint, f.Rule, "well-formed")
	add(f.Max > 0, f.MaxRule, fmt.Sprintf("at most %d bytes", f.Max))
	add(f.NonEmpty != "", f.NonEmpty, "not empty")
	add(f.Optional, "", "optional")
	return strings.Join(all, ", ")
}

// about returns the rules that name a type in their text or section. A name that is also an English word must be quoted
// there, or be the second word of the ID.
func about(p *codec.Protocol, t *codec.Type) (all []codec.Rule) {
	word := t.Name == strings.ToLower(t.Name) && !strings.ContainsAny(t.Name, "-_")
	for _, r := range p.Rules {
		is := strings.Contains(r.Text, `"`+t.Name+`"`) ||
			word && r.Section == t.Section && strings.HasPrefix(string(r.ID), p.Name+"."+t.Name+".")
		for name := range strings.FieldsFuncSeq(r.Text+" "+r.Section,
			func(c rune) bool { return strings.ContainsRune(" ,.:;()\"", c) }) {
			prefix, many := strings.CutSuffix(name, "*")
			is = is || !word && (name == t.Name || many && strings.HasPrefix(t.Name, prefix))
		}
		if is {
			all = append(all, r)
		}
	}
	return all
}

// wire returns the format of a message: its number or word, and its fields.
func wire(t *codec.Type) string {
	text, gap, sep, end := t.Word, " ", show(t.Sep), show(t.End)
	if text == "*" {
		text = ""
	}
	switch {
	case t.Word == "" && t.End == "":
		text = fmt.Sprintf("type %d", t.Code)
	case text == "" || t.Sep == "" && (text[0] < 'A' || text[0] > 'Z'):
		gap = "" // after the type byte of a Redis value
	}
	for i, f := range slices.Concat(t.Fields, t.Repeat) {
		if f.Kind == codec.Length && t.Sep == "" {
			if i > 0 {
				gap = " " // before the next string of an array
			}
			continue
		}
		if f.Prefix == ":" && t.Sep == "" && i > 0 {
			gap = " "
		}
		if text += gap + show(f.Prefix); f.Kind != codec.Literal || f.Prefix == "" {
			text += "{" + f.Name + "}"
		}
		text, gap = text+show(f.Term), ""
		switch next := i + 1; {
		case f.Kind == codec.Length:
			gap = end
		case f.Term == "" && f.Kind < codec.Uint && next != len(t.Fields) && next != len(t.Fields)+len(t.Repeat):
			gap = sep
		}
	}
	if len(t.Repeat) > 0 {
		text += " ... "
	}
	if t.Sep != "" {
		text += end
	}
	if t.Stop != "" {
		text += t.Stop + end
	}
	return strings.TrimSpace(text)
}

// show escapes bytes that are not printable.
func show(text string) string {
	return strings.ReplaceAll(strings.Trim(fmt.Sprintf("%+q", text), `"`), `\x00`, `\0`)
}

func code(text string) string { return "`" + escape(text) + "`" }

// escape escapes text for a table.
func escape(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
