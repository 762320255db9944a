package transcript

import (
	"bytes"
	"slices"
	"strings"

	"jobwire/codec"
)

// Parse parses a source of transcripts. It returns one script, or one for each @case line. The @-lines before
// the first @case apply to the whole file: each script gets a copy of them before its own.
//
// A case with parameters (@for) produces a script for each combination of parameter values to test.
//
// Parse checks everything in a step that does not depend on which end will be performed: words, actors,
// roles, argument counts and literal values. It returns the first error, an [*Error].
func Parse(p *codec.Protocol, file string, src []byte) ([]*Script, error) {
	return (*Setups)(nil).Parse(p, file, src)
}

// parse parses all lines of the source: it expands each section to its instances, one for each combination of parameter
// values, and reads them in order. It returns the first error.
func (ps *parser) parse() ([]*Script, error) {
	for _, l := range ps.lines {
		ps.strict = ps.strict || isDirectiveOnly(l.text)
		ps.expanded -= l.size()
	}
	for _, s := range sections(ps.lines) {
		instances, err := ps.instances(s)
		if err != nil {
			return nil, err
		}
		for k, inst := range instances {
			ps.params, ps.again = inst.params, k > 0
			if err := ps.read(inst.lines); err != nil {
				return nil, err
			}
		}
	}
	if err := ps.finish(); err != nil {
		return nil, err
	}
	return ps.scripts, nil
}

// read parses the lines of one script, or the lines before the first script.
func (ps *parser) read(lines section) error {
	ps.used, ps.checked = nil, nil
	expanded, err := ps.withSetups(lines, 0)
	if err != nil {
		return err
	}
	ps.lines = expanded
	for i := 0; i < len(ps.lines); {
		next, err := ps.line(i)
		if err != nil {
			return err
		}
		i = next
	}
	if ps.script != nil && len(ps.used)+len(ps.checked) > 0 {
		ps.script.Setups = ps.used
		ps.script.Checks = slices.DeleteFunc(ps.checked, func(name string) bool { return slices.Contains(ps.used, name) })
		texts := ps.quotes.sharedTexts
		again := parser{proto: ps.proto, setups: ps.setups, pos: ps.pos, strict: ps.strict, params: ps.params,
			fileMeta: ps.fileMeta}
		ps.script.again = func(choice Ways) (*Script, error) {
			other := again
			other.ways, other.quotes = choice, quotes{room: maxText, sharedTexts: texts}
			if err := other.read(lines); err != nil {
				return nil, err
			}
			if err := other.finish(); err != nil {
				return nil, err
			}
			return other.scripts[0], nil
		}
	}
	return nil
}

// parser is the state of parsing one source.
type parser struct {
	proto   *codec.Protocol
	pos     position // only the file is set
	lines   section
	params  []Param
	again   bool // this is not the first instance of the case
	setups  *Setups
	ways    Ways
	used    []string // the setups that the current script uses
	checked []string // the setups that it uses with "check"
	strict  bool     // prose is an error
	quotes  quotes

	samples  int // number of samples
	expanded int // size of the lines that grow has counted, without that of the source
	scripts  []*Script
	fileMeta []Meta  // @-lines of the whole file, set at the first @case
	cases    bool    // a @case line has been read
	script   *Script // the current script, or nil
	wires    map[string]*wire
	actors   map[string]*Actor // by their text; nil for the server
	encoded  []byte            // set by encode
}

func splitLines(src []byte) section {
	var lines section
	for l := range bytes.Lines(src) {
		lines = append(lines, sourceLine{number: len(lines) + 1,
			text: strings.TrimSuffix(strings.TrimSuffix(string(l), "\n"), "\r")})
	}
	return lines
}

// trim removes leading and trailing spaces and tabs. It returns the rest and its column.
func trim(s string) (string, int) {
	left := strings.TrimLeft(s, " \t")
	return strings.TrimRight(left, " \t"), len(s) - len(left) + 1
}

// isDirectiveOnly reports whether a line is a step in line form or an @-line. A file with such a line cannot
// contain prose.
func isDirectiveOnly(line string) bool {
	s, _ := trim(line)
	if s == "" || s[0] == '#' || isByteLine(s) {
		return false
	}
	_, after, arrow := strings.Cut(s, "->")
	k := strings.IndexAny(after, ":#")
	return s[0] == '@' || arrow && k >= 0 && after[k] == ':'
}

// line parses what begins at the i-th line and returns the index of the next line to parse.
func (ps *parser) line(i int) (int, error) {
	s, col := trim(ps.lines[i].text)
	pos := ps.position(i, col)
	switch {
	case s == "" || s[0] == '#':
	case s[0] == '@':
		if err := ps.meta(pos, s); err != nil {
			return 0, err
		}
	case isOr(s) && ps.strict:
		if ps.script == nil || len(ps.script.Steps) == 0 {
			return 0, pos.errorf("expected a message or action in the line above \"or\", got none")
		}
		if err := ps.alternative(pos, &ps.script.Steps[len(ps.script.Steps)-1], s); err != nil {
			return 0, err
		}
	case isByteLine(s) && (ps.strict || strings.HasSuffix(s, ")")):
		return 0, pos.errorf("expected a line that names the direction above the bytes, got none")
	case strings.Contains(s, "->"):
		return ps.step(i, pos, s)
	case ps.strict:
		return 0, pos.errorf("expected a message or action, such as \"%s -> %s: ...\"", ps.proto.Roles[0], ps.proto.ServerName)
	}
	return i + 1, nil
}

func (ps *parser) position(i, col int) position {
	return position{file: ps.pos.file, line: ps.lines[i].number, col: col}
}

// begin returns the current script. It creates the script if necessary.
func (ps *parser) begin(line int) *Script {
	if ps.script == nil {
		ps.script = &Script{Protocol: ps.proto, File: ps.pos.file, Line: line, Params: ps.params,
			Meta: append([]Meta(nil), ps.fileMeta...), Steps: make([]Step, 0, min(len(ps.lines), 16))}
		ps.wires = map[string]*wire{}
	}
	return ps.script
}

// finish adds the current script to the result.
func (ps *parser) finish() error {
	s := ps.begin(1)
	if len(s.Steps) == 0 {
		return position{ps.pos.file, s.Line, 1}.errorf("expected at least one message or action in the transcript, got none")
	}
	ps.scripts = append(ps.scripts, s)
	ps.script = nil
	return nil
}

// meta parses an @-line.
func (ps *parser) meta(pos position, s string) error {
	key, value, _ := strings.Cut(strings.ReplaceAll(s[1:], "\t", " "), " ")
	value = strings.TrimSpace(value)
	pos.col++
	if key == "" || strings.IndexFunc(key, notInKey) >= 0 {
		return pos.errorf("expected a key of letters, digits and hyphens after @")
	}
	if key == "tests" {
		return ps.tests(pos, value)
	}
	if key == "case" {
		if err := ps.nextCase(pos, value); err != nil {
			return err
		}
	}
	script := ps.begin(pos.line)
	if len(script.Steps) > 0 {
		return pos.errorf("expected @%s before the first message, got @%[1]s after it", key)
	}
	script.Meta = append(script.Meta, Meta{Key: key, Value: value, Line: pos.line, Col: pos.col})
	return nil
}

// tests parses the value of an @tests line. pos is the position of the key.
func (ps *parser) tests(pos position, value string) error {
	rules := strings.Fields(value)
	if len(rules) == 0 {
		return pos.errorf("expected the ID of a rule after @tests, got none")
	}
	t := Tests{Line: pos.line, Col: pos.col + len("tests ")}
	for _, id := range rules {
		t.Rules = append(t.Rules, codec.RuleID(id))
	}
	script := ps.begin(pos.line)
	script.Tests = append(script.Tests, t)
	return nil
}

func notInKey(c rune) bool {
	return (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-'
}

// nextCase ends the script before a @case line.
func (ps *parser) nextCase(pos position, name string) error {
	if name == "" {
		return pos.errorf("expected a name after @case, got none")
	}
	for _, s := range append(ps.scripts, ps.script) {
		if s != nil && s.Value("case") == name && !ps.again {
			return pos.errorf("expected a different name for each @case, got %s twice", name)
		}
	}
	if ps.cases {
		if err := ps.finish(); err != nil {
			return err
		}
	} else if s := ps.script; s != nil {
		if len(s.Steps) > 0 {
			return pos.errorf("expected @case before the first message, got a message before @case")
		}
		ps.fileMeta = s.Meta
		ps.script = nil
	}
	ps.cases = true
	ps.begin(pos.line)
	return nil
}

// step parses a step that begins at the i-th line.
func (ps *parser) step(i int, pos position, s string) (int, error) {
	arrow, colon := strings.Index(s, "->"), len(s)
	if k := strings.IndexAny(s[arrow+2:], ":#"); k >= 0 {
		colon = arrow + 2 + k
	}
	script := ps.begin(pos.line)
	st := Step{Line: pos.line}
	if n := len(script.Tests); n > 0 {
		st.Tests = script.Tests[n-1].Rules
	}
	if err := ps.ends(&st, pos, s[:arrow], pos.atColumn(pos.col+arrow+2), s[arrow+2:colon]); err != nil {
		return 0, err
	}
	if colon == len(s) || s[colon] == '#' {
		next, err := ps.block(i, pos, &st)
		if err != nil {
			return 0, err
		}
		script.Steps = append(script.Steps, st)
		return next, nil
	}
	st.Source = s
	toks, err := lex(pos.atColumn(pos.col+colon+1), s[colon+1:], &ps.quotes)
	if err != nil {
		return 0, err
	}
	c, err := ps.choice(pos, &st, toks, s[colon+1:], true)
	if err != nil {
		return 0, err
	}
	if c.Verb == Opens && script.acted(st.Peer) {
		return 0, pos.errorf("expected one connection for each name, got a second connection for %s: use another name",
			st.Peer.Name)
	}
	st.Choices, st.Setup, st.Sample = []Choice{*c}, ps.lines[i].setup, ps.lines[i].sample
	script.Steps = append(script.Steps, st)
	return i + 1, nil
}

// acted reports whether the script already has a step of the actor.
func (s *Script) acted(a Actor) bool {
	for i := range s.Steps {
		if s.Steps[i].Peer.Name == a.Name {
			return true
		}
	}
	return false
}

// isOr reports whether a line is an alternative of the step above it.
func isOr(s string) bool {
	return strings.HasPrefix(s, "or") && (len(s) == 2 || isBlank(s[2]))
}

// alternative parses an "or" line below a step.
func (ps *parser) alternative(pos position, st *Step, s string) *Error {
	if st.Choices[0].Verb == Opens {
		return pos.errorf("\"or\" is not allowed after \"opens\"")
	}
	toks, err := lex(pos.atColumn(pos.col+2), s[2:], &ps.quotes)
	if err != nil {
		return err
	}
	grade := Strict
	if len(toks) > 0 && toks[0].is("non-strict") {
		grade, toks = NonStrict, toks[1:]
	}
	c, err := ps.choice(pos, st, toks, s[2:], false)
	if err != nil {
		return err
	}
	c.Grade = grade
	st.Choices = append(st.Choices, *c)
	return nil
}

// ends parses both actors of a step. One of them must be the server.
func (ps *parser) ends(st *Step, posA position, a string, posB position, b string) *Error {
	from, errA := ps.actorOnce(posA, a)
	if errA != nil {
		return errA
	}
	to, errB := ps.actorOnce(posB, b)
	if errB != nil {
		return errB
	}
	switch {
	case from == nil && to == nil:
		return posB.errorf("expected a client or worker at one end and the server at the other, got the %s at both ends",
			ps.proto.ServerName)
	case from != nil && to != nil:
		return posA.errorf("expected the %s as the sender or the receiver", ps.proto.ServerName)
	case from == nil:
		st.From, st.Peer = codec.Server, *to
	default:
		st.From, st.Peer = codec.Peer, *from
	}
	return nil
}

// actorOnce returns the result of actor, which it calls once for equal texts.
func (ps *parser) actorOnce(pos position, s string) (*Actor, *Error) {
	if a, ok := ps.actors[s]; ok {
		return a, nil
	}
	a, err := ps.actor(pos, s)
	if err == nil {
		if ps.actors == nil {
			ps.actors = map[string]*Actor{}
		}
		ps.actors[s] = a
	}
	return a, err
}

// actor parses one end of a step. It returns nil for the server.
func (ps *parser) actor(pos position, s string) (*Actor, *Error) {
	pos.col += len(s) - len(strings.TrimLeft(s, " \t"))
	words := strings.Fields(s)
	name := strings.Join(words, " ")
	if name == ps.proto.ServerName {
		return nil, nil
	}
	role := ps.proto.RoleNamed(name)
	if n := len(words) - 1; role == 0 && n > 0 && strings.IndexFunc(words[n], notInName) < 0 {
		role = ps.proto.RoleNamed(strings.Join(words[:n], " "))
	}
	if role == 0 {
		known := append([]string{ps.proto.ServerName}, ps.proto.Roles...)
		hint := nearest(name, known)
		if hint == "" {
			hint = ": there are " + strings.Join(known, ", ")
		}
		return nil, pos.errorf("expected a client, worker or server name, got %q%s", name, hint)
	}
	return &Actor{Name: name, Role: role}, nil
}

func notInName(c rune) bool {
	return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9')
}
