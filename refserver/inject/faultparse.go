package inject

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/vm"

	"jobwire/codec"
)

// maxPause is the maximum pause between the pieces of a split message. A connection cannot be closed before its pauses
// are over.
const maxPause = time.Second

// faultParser parses one line of a fault script.
type faultParser struct {
	protocol *Protocol
	words    []string
	env      map[string]any // variables of expressions, with samples of their values
	action   *action
}

// parseFault parses a line. last is the previous fault, or nil.
func (p *Protocol) parseFault(line string, last *fault) (*fault, error) {
	f := &fault{side: codec.Server, asks: strings.Contains(line, "ask("), rest: strings.Contains(line, ".rest")}
	for name := range p.Functions {
		f.asks = f.asks || strings.Contains(line, name+"(")
	}
	words, err := splitWords(line)
	if err != nil {
		return nil, err
	}
	fp := &faultParser{protocol: p, words: words, env: maps.Clone(samples)}
	maps.Copy(fp.env, functions)
	maps.Copy(fp.env, (*Server)(nil).functions())
	maps.Copy(fp.env, p.Functions)
	name := fp.next()
	if f.then = name == "then"; f.then {
		if name = fp.next(); last == nil {
			return nil, errors.New("expected a fault before then")
		}
		prefix := []string{strings.Join(last.types, ",")}
		if last.types[0][0] != '(' {
			prefix = append([]string{"from-" + last.side.String()}, prefix...)
		}
		fp.words = append(prefix, fp.words...)
	}
	k := slices.IndexFunc(actions, func(a *action) bool { return a.name == name })
	if k < 0 {
		var names []string
		for _, a := range actions {
			names = append(names, a.name)
		}
		return nil, fmt.Errorf("expected an action, got %q; the actions are %s", name, strings.Join(names, ", "))
	}
	f.action, fp.action = actions[k], actions[k]
	if f.action.do != nil {
		if err := fp.types(f); err != nil {
			return nil, err
		}
		if err := fp.endings(f); err != nil {
			return nil, err
		}
	}
	if f.action.parse != nil {
		if err := f.action.parse(fp, f); err != nil {
			return nil, err
		}
	}
	if len(fp.words) > 0 {
		return nil, fmt.Errorf("unexpected word %q; the notation is: %s %s", fp.words[0], f.action.name, f.action.args)
	}
	return f, nil
}

// splitWords splits a line at spaces that are not in braces or quotes. Single quotes count only in braces.
func splitWords(line string) ([]string, error) {
	var words []string
	depth, quote, from := 0, rune(0), -1
	escaped := false
	for i, r := range line + " " {
		switch {
		case escaped:
			escaped = false
		case quote != 0:
			escaped = r == '\\'
			if r == quote {
				quote = 0
			}
		case r == '"' || r == '\'' && depth > 0:
			quote = r
		case r == '{':
			depth++
		case r == '}':
			depth--
		case r == ' ' && depth <= 0:
			if from >= 0 {
				words = append(words, line[from:i])
			}
			from = -1
			continue
		}
		if from < 0 {
			from = i
		}
	}
	if quote != 0 || depth != 0 {
		return nil, errors.New("expected a closing quote or brace")
	}
	return words, nil
}

func (p *faultParser) next() (w string) {
	if len(p.words) > 0 {
		w, p.words = p.words[0], p.words[1:]
	}
	return w
}

// types parses the message types, and from-peer or from-server.
func (p *faultParser) types(f *fault) error {
	list, directed := p.next(), false
	if list == "from-peer" || list == "from-server" {
		directed = true
		if list == "from-peer" {
			f.side = codec.Peer
		}
		list = p.next()
	}
	if list == "" {
		return fmt.Errorf("expected a message type after %s; the notation is: %s %s", p.action.name, p.action.name,
			p.action.args)
	}
	f.types = strings.Split(list, ",")
	if slices.Contains(f.types, "") {
		return fmt.Errorf("expected message types separated by commas, got %q", list)
	}
	var matched []*codec.Type
	for _, pattern := range f.types {
		before := len(matched)
		for _, t := range p.protocol.Types {
			if ok, err := path.Match(pattern, t.Name); err != nil {
				return fmt.Errorf("message type %q: %w", pattern, err)
			} else if ok {
				matched = append(matched, t)
			}
		}
		switch known := len(matched) > before; {
		case pattern[0] == '(':
			if !slices.Contains([]string{Opened, Illegal, Ended, HalfClosed, Closed}, pattern) {
				return fmt.Errorf("unknown event %s: expected %s, %s, %s, %s or %s", pattern, Opened, Illegal, Ended, HalfClosed,
					Closed)
			}
			f.side, directed = codec.Peer, true
		case !known && p.protocol.Read != nil && !directed && pattern == strings.ToUpper(pattern): // a command
			f.side, directed = codec.Peer, true
		case !known && (p.protocol.Read == nil || pattern != strings.ToUpper(pattern)):
			return fmt.Errorf("%s has no message type %q; its types are %s", p.protocol.Title, pattern,
				typeNames(p.protocol.Protocol))
		}
	}
	for _, t := range matched {
		declare(p.env, t)
	}
	sends := func(side codec.Side) bool {
		return slices.ContainsFunc(matched, func(t *codec.Type) bool { return t.Sends(side) })
	}
	if !directed && !sends(codec.Server) {
		f.side = codec.Peer
	}
	if len(matched) > 0 && !sends(f.side) {
		return fmt.Errorf("the %s never sends %s", f.side, list)
	}
	maps.Copy(p.env, samples) // variables take precedence over fields of the same name
	if p.protocol.Read != nil {
		p.env["args"] = []string{}
	}
	return nil
}

var nthWord = regexp.MustCompile(`^nth=(.*)$`)

// endings parses and removes "for LIST", "to PEERS", "as PEERS", "when CONDITION", "after DURATION [if CONDITION]" and
// "nth=N" at the end of the line.
func (p *faultParser) endings(f *fault) (err error) {
	if n := len(p.words); n > 0 {
		if m := nthWord.FindStringSubmatch(p.words[n-1]); m != nil {
			if f.nth, err = strconv.Atoi(m[1]); err != nil || f.nth < 1 {
				return fmt.Errorf("expected a number of at least 1 after nth=, got %q", m[1])
			}
			p.words = p.words[:n-1]
		}
	}
	if k := slices.Index(p.words, "after"); k >= 0 {
		if !slices.Contains(laterActions, p.action.name) {
			return fmt.Errorf("%s cannot have \"after\"; these actions can: %s", p.action.name, strings.Join(laterActions, ", "))
		}
		if err := p.later(f, p.words[k+1:]); err != nil {
			return err
		}
		p.words = p.words[:k]
	}
	if k := slices.Index(p.words, "when"); k >= 0 {
		if f.when, err = p.compile(strings.Join(p.words[k+1:], " "), expr.AsBool()); err != nil {
			return err
		}
		p.words = p.words[:k]
	}
	for _, ending := range []struct {
		word string
		to   **vm.Program
	}{{"for", &f.each}, {"to", &f.peers}, {"as", &f.peers}} {
		n := len(p.words)
		if n < 2 || p.words[n-2] != ending.word || p.words[n-1][0] != '{' {
			continue
		}
		source := strings.TrimSuffix(p.words[n-1][1:], "}")
		p.words = p.words[:n-2]
		if *ending.to, err = p.compile(source); err != nil {
			return err
		}
		switch {
		case ending.word == "for":
			p.env["it"] = element(f.each.Node())
		case !slices.Contains(peerActions, p.action.name):
			return fmt.Errorf("%s cannot have %q; these actions can: %s", p.action.name, ending.word,
				strings.Join(peerActions, ", "))
		}
	}
	return nil
}

// Actions that can end in "after DURATION" and in "to {PEERS}" or "as {PEERS}".
var (
	laterActions = []string{"send", "give", "ask", "close", "mute", "resume", "crash"}
	peerActions  = []string{"follow", "send", "give", "ask", "close"}
)

// later parses the words after "after".
func (p *faultParser) later(f *fault, words []string) (err error) {
	if len(words) > 0 {
		f.after, err = time.ParseDuration(words[0])
	}
	if err != nil || f.after <= 0 {
		return errors.New("expected a duration after \"after\", such as 500ms")
	}
	if words = words[1:]; len(words) == 0 {
		return nil
	}
	if words[0] != "if" {
		return fmt.Errorf("expected \"if\" after the duration, got %q", words[0])
	}
	f.still, err = p.compile(strings.Join(words[1:], " "), expr.AsBool())
	return err
}

// element returns the zero value of the type that the elements of a list have.
func element(list ast.Node) any {
	for {
		f, ok := list.(*ast.BuiltinNode)
		if !ok || f.Name != "filter" {
			break
		}
		list = f.Arguments[0]
	}
	if t := list.Type(); t.Kind() == reflect.Slice {
		return reflect.Zero(t.Elem()).Interface()
	}
	return reflect.Zero(list.Type()).Interface()
}

// compile compiles an expression. Its error lists the variables that the expression may use.
func (p *faultParser) compile(source string, options ...expr.Option) (*vm.Program, error) {
	if source == "" {
		return nil, errors.New("expected an expression")
	}
	options = append(options, expr.Env(p.env), expr.DisableBuiltin("len"), expr.Patch(identity{}))
	program, err := expr.Compile(source, options...)
	if err != nil {
		return nil, fmt.Errorf("%w\nThe variables are: %s", err, strings.Join(p.variables(), ", "))
	}
	return program, nil
}

// identity makes == and != compare peers and jobs by identity. The expression language would compare the structs, which
// other goroutines may be changing.
type identity struct{}

// Visit replaces == and != between peers or jobs with calls of the functions same and different, which compare
// pointers.
func (identity) Visit(node *ast.Node) {
	n, ok := (*node).(*ast.BinaryNode)
	if !ok || !slices.ContainsFunc([]ast.Node{n.Left, n.Right}, isPeerOrJob) {
		return
	}
	name := map[string]string{"==": "same", "!=": "different"}[n.Operator]
	if name != "" {
		ast.Patch(node, &ast.CallNode{Callee: &ast.IdentifierNode{Value: name}, Arguments: []ast.Node{n.Left, n.Right}})
	}
}

// isPeerOrJob reports whether an expression has the type of a peer or a job.
func isPeerOrJob(n ast.Node) bool {
	t := n.Type()
	return t == reflect.TypeFor[*Peer]() || t == reflect.TypeFor[*Job]()
}

// variables returns the names of the variables in alphabetical order.
func (p *faultParser) variables() []string {
	var names []string
	for name := range p.env {
		if functions[name] == nil && p.protocol.Functions[name] == nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.DeleteFunc(names, func(n string) bool { return n == "of" || n == "by_id" || n == "ask" })
}

// template parses a text with expressions in braces. Quoted parts have the escapes of Go.
func (p *faultParser) template(text string) (*template, error) {
	t := &template{}
	for text != "" {
		var one part
		switch text[0] {
		case '{':
			end := closing(text)
			if end < 0 {
				return nil, fmt.Errorf("expected a closing brace in %s", text)
			}
			program, err := p.compile(text[1:end])
			if err != nil {
				return nil, err
			}
			one.expr, text = program, text[end+1:]
		case '"':
			quoted, err := strconv.QuotedPrefix(text)
			if err != nil {
				return nil, fmt.Errorf("expected a quoted text, got %s", text)
			}
			one.text, _ = strconv.Unquote(quoted)
			text = text[len(quoted):]
		default:
			end := strings.IndexAny(text, `{"`)
			if end < 0 {
				end = len(text)
			}
			one.text, text = text[:end], text[end:]
		}
		t.parts = append(t.parts, one)
	}
	return t, nil
}

// closing returns the index of the brace that closes the first brace of text, or -1.
func closing(text string) int {
	depth, quote := 0, byte(0)
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quote != 0 && c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '{':
			depth++
		case c == '}':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

func parseDelay(p *faultParser, f *fault) (err error) {
	if f.delay, err = time.ParseDuration(p.next()); err != nil || f.delay < 0 {
		return errors.New("expected a duration after the message type, such as 500ms")
	}
	return nil
}

// parseSplit parses the arguments of "split": a size in bytes and an optional pause.
func parseSplit(p *faultParser, f *fault) (err error) {
	if f.side == codec.Peer {
		return errors.New("split works only on messages that the server sends: remove from-peer")
	}
	if f.size, err = strconv.Atoi(p.next()); err != nil || f.size < 1 {
		return errors.New("expected a size in bytes after the message type, at least 1")
	}
	if w := p.next(); w != "" {
		if f.delay, err = time.ParseDuration(w); err != nil || f.delay < 0 || f.delay > maxPause {
			return fmt.Errorf("expected a pause of at most %s after the size, got %q", maxPause, w)
		}
	}
	return nil
}

// parseAlter parses the arguments of "alter": FIELD=VALUE, or [KEY]=VALUE for the argument after KEY. All remaining
// words of the line belong to it.
func parseAlter(p *faultParser, f *fault) error {
	field, value, ok := strings.Cut(strings.Join(p.words, " "), "=")
	if p.words = nil; !ok {
		return errors.New("expected FIELD=VALUE after the message type")
	}
	var err error
	if f.pair = len(field) > 2 && field[0] == '[' && field[len(field)-1] == ']'; f.pair {
		f.field = field[1 : len(field)-1]
		if f.each == nil {
			p.env["it"] = ""
		}
		f.value, err = p.template(value)
		return err
	}
	f.field = strings.ReplaceAll(field, "-", "_")
	if _, known := p.env[f.field]; !known || samples[f.field] != nil || functions[f.field] != nil {
		return fmt.Errorf("%s has no field %q; expected one of: %s", strings.Join(f.types, ","), field,
			strings.Join(p.variables(), ", "))
	}
	f.value, err = p.template(value)
	return err
}

func parseRemove(p *faultParser, f *fault) error {
	key, bracketed := strings.CutPrefix(p.next(), "[")
	f.field = strings.TrimSuffix(key, "]")
	if !bracketed || f.field == key {
		return errors.New("expected [KEY] after the message type")
	}
	return nil
}

func parseText(p *faultParser, f *fault) (err error) {
	f.value, err = p.template(strings.Join(p.words, " "))
	p.words = nil
	return err
}

// parseNote parses the arguments of "note": NAME=VALUE, or peer.NAME=VALUE for a note of the connection. An equals sign
// in an expression in braces does not end the name.
func parseNote(p *faultParser, f *fault) error {
	text := strings.Join(p.words, " ")
	p.words = nil
	text, f.own = strings.CutPrefix(text, "peer.")
	from := 0 // index at which the search for the end of the name continues
	for {
		open, equals := strings.IndexByte(text[from:], '{'), strings.IndexByte(text[from:], '=')
		if open < 0 || equals < open {
			break
		}
		end := closing(text[from+open:])
		if end < 0 {
			break
		}
		from += open + end + 1
	}
	end := strings.IndexByte(text[from:], '=')
	if end < 0 || from+end < 1 {
		return errors.New("expected NAME=VALUE after the message type")
	}
	var err error
	if f.name, err = p.template(text[:from+end]); err == nil {
		f.value, err = p.template(text[from+end+1:])
	}
	return err
}

// parseMisread parses the arguments of "misread" and "misread-segment": a regular expression and the text, perhaps in
// quotes, that replaces what it matches.
func parseMisread(p *faultParser, f *fault) error {
	pattern, text := p.next(), p.next()
	if text == "" {
		return fmt.Errorf("expected a pattern and a text after %s", p.action.name)
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return err
	}
	if text[0] == '"' {
		if text, err = strconv.Unquote(text); err != nil {
			return errors.New("expected a quoted text after the pattern")
		}
	}
	f.bytes = &substitution{re, text, p.action.name == "misread-segment"}
	return nil
}

func parseRetype(p *faultParser, f *fault) error {
	f.to = p.next()
	return p.sends(f.side, f.to)
}

// sends returns an error unless the side sends messages of the type. In a protocol with commands, peers may send any
// command.
func (p *faultParser) sends(side codec.Side, name string) error {
	t := p.protocol.TypeNamed(name)
	switch {
	case t == nil && side == codec.Peer && p.protocol.Read != nil: // a command
		return nil
	case t == nil:
		return fmt.Errorf("%s has no message type %q; its types are %s", p.protocol.Title, name,
			typeNames(p.protocol.Protocol))
	case !t.Sends(side):
		return fmt.Errorf("the %s never sends %s", side, name)
	}
	return nil
}

// parseMessage parses the type and the arguments of the message that an action sends or gives.
func parseMessage(p *faultParser, f *fault) error {
	f.to = p.next()
	side := codec.Server
	switch p.action.name {
	case "give", "ask":
		side = codec.Peer
	case "become":
		side = f.side
	}
	if p.action.name == "answer" && f.side != codec.Peer {
		return fmt.Errorf("answer works only on messages that the peer sends, and the server sends %s: use drop and follow, or retype", strings.Join(f.types, ","))
	}
	if err := p.sends(side, f.to); err != nil {
		return err
	}
	for len(p.words) > 0 {
		w := p.next()
		single, list := strings.CutSuffix(w, "...}")
		if list && w[0] == '{' {
			w = single + "}"
		}
		t, err := p.template(w)
		if err != nil {
			return err
		}
		t.list = list && len(t.parts) == 1
		f.args = append(f.args, t)
	}
	return nil
}

func typeNames(p *codec.Protocol) string {
	names := make([]string, len(p.Types))
	for i, t := range p.Types {
		names[i] = t.Name
	}
	return strings.Join(names, " ")
}
