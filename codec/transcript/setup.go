package transcript

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"jobwire/codec"
)

// Setups are the named setups of a protocol: steps that bring a server and its peers into a state that cases
// need. A setup has one or more ways to reach that state, because a server may not support every message. A
// case uses a setup by a line such as
//
//	Worker 2 -> Job Server: setup grab-job $job $function
//
// With "check" in place of "setup", the line stands for the same steps, but the steps are part of what the
// case tests: a failed step fails the case. A setup that is checked can itself check other setups.
//
// The file that defines setups has one section per setup:
//
//	@setup grab-job job function data=test modifiers...
//	@about The worker has a job.
//	@probe
//	Client -> Job Server: setup submit $job $fn
//	Worker -> Job Server: CAN_DO $fn
//	Worker -> Job Server: setup grab-job $job $fn
//	@way GRAB_JOB
//	{peer} -> Job Server: GRAB_JOB
//	Job Server -> {peer}: JOB_ASSIGN {job} {function} {data} {modifiers}
//	@way GRAB_JOB_UNIQ
//	{peer} -> Job Server: GRAB_JOB_UNIQ
//	Job Server -> {peer}: JOB_ASSIGN_UNIQ {job} {function} * {data} {modifiers}
//
// The line @setup has the setup's name and its parameters. A parameter without a default is required. Its argument is
// given by position, or by name. A parameter with a default is optional, and its argument is given by name only:
//
//	Worker -> Job Server: setup grab-job $job $fn data=x
//
// An argument that begins like a named one, as a=b does, must be quoted. A last parameter that ends in "..." stands for
// the rest of the line, after the other arguments. {peer} is the actor of the line that uses the setup. The probe is a
// transcript that passes on a server that supports the chosen way. If it does not show that the state was reached, but
// only that the replies have the expected form, a section @proof may follow it: a transcript that passes only in that
// state.
type Setups struct {
	proto *codec.Protocol
	file  string
	all   []*Setup
	texts *sharedTexts // of the scripts that use the setups
}

// Setup is one named setup.
type Setup struct {
	Name  string
	About string   // a sentence that describes the resulting state
	Ways  []string // names of the ways, the preferred one first

	signature string  // the parameters as in the line @setup
	params    []Param // with the default as the value, which is empty if there is none
	rest      bool    // the last parameter stands for the rest of the line
	probe     section
	proof     section
	ways      []section
}

// Ways maps the name of each setup to the way that a script uses. 0 is the first way.
type Ways map[string]int

// All returns the setups in the order of the file.
func (s *Setups) All() []*Setup {
	if s == nil {
		return nil
	}
	return s.all
}

// Named returns the setup with the name, or nil.
func (s *Setups) Named(name string) *Setup {
	for _, one := range s.All() {
		if one.Name == name {
			return one
		}
	}
	return nil
}

// ParseSetups parses a file of setups, and checks each way of each setup by parsing its probe.
func ParseSetups(p *codec.Protocol, file string, src []byte) (*Setups, error) {
	s := &Setups{proto: p, file: file, texts: newSharedTexts()}
	var to *section // the section of the next lines
	for _, l := range splitLines(src) {
		pos := position{file, l.number, 1}
		text, _ := trim(l.text)
		key, value, ok := metaLine(l.text)
		switch {
		case text == "" || text[0] == '#':
			continue
		case ok && key == "setup":
			one, err := s.declared(pos, value)
			if err != nil {
				return nil, err
			}
			s.all = append(s.all, one)
			to = nil
			continue
		case len(s.all) == 0:
			return nil, pos.errorf("expected @setup NAME before %q", text)
		}
		last := s.all[len(s.all)-1]
		switch {
		case ok && key == "about":
			last.About = value
		case ok && key == "probe":
			to = &last.probe
		case ok && key == "proof":
			to = &last.proof
		case ok && key == "way" && value != "":
			last.Ways, last.ways = append(last.Ways, value), append(last.ways, nil)
			to = &last.ways[len(last.ways)-1]
		case ok || to == nil:
			return nil, pos.errorf("expected @setup, @about, @probe, @proof or @way, got %q", text)
		default:
			*to = append(*to, l)
		}
	}
	for _, one := range s.all {
		if len(one.ways) == 0 || len(one.probe) == 0 || one.About == "" {
			return nil, position{file, 1, 1}.errorf("the setup %s needs @about, @probe and at least one @way", one.Name)
		}
	}
	for _, one := range s.all {
		for way := range one.ways {
			if _, err := s.Probe(one.Name, Ways{one.Name: way}); err != nil {
				return nil, err
			}
			if _, err := s.Proof(one.Name, Ways{one.Name: way}); err != nil {
				return nil, err
			}
		}
	}
	return s, nil
}

// declared returns the setup that a line @setup with the value declares, without its steps.
func (s *Setups) declared(pos position, value string) (*Setup, *Error) {
	words := items(value)
	if len(words) == 0 || s.Named(words[0]) != nil {
		return nil, pos.errorf("expected a name of its own after @setup, got %q", value)
	}
	one := &Setup{Name: words[0], signature: strings.Join(words[1:], " ")}
	for _, word := range words[1:] {
		m := parameter.FindStringSubmatch(word)
		if m == nil || one.rest || m[1] == "peer" || slices.ContainsFunc(one.params, named(m[1])) {
			return nil, pos.errorf("expected parameters with different names, such as job, data=test and, at the end, "+
				"rest..., got %q", word)
		}
		one.params, one.rest = append(one.params, Param{Name: m[1], value: m[2]}), m[3] != ""
	}
	return one, nil
}

// Probe returns the transcript that tests whether a server supports the chosen way of a setup.
func (s *Setups) Probe(name string, choice Ways) (*Script, error) {
	return s.script(s.Named(name).probe, choice)
}

// Proof returns a transcript that tests whether the chosen way of a setup leads to the state, whatever the replies look
// like. It is nil if the setup has none; the probe is the proof if it expects something after the setup.
func (s *Setups) Proof(name string, choice Ways) (*Script, error) {
	one := s.Named(name)
	if len(one.proof) > 0 {
		return s.script(one.proof, choice)
	}
	probe, err := s.Probe(name, choice)
	if err != nil || probe.Steps[len(probe.Steps)-1].Setup == name {
		return nil, err
	}
	return probe, nil
}

// script parses the lines of a setup file as one script that uses the chosen ways of the setups.
func (s *Setups) script(lines section, choice Ways) (*Script, error) {
	r := &parser{proto: s.proto, setups: s, ways: choice, pos: position{file: s.file}, strict: true,
		quotes: quotes{room: maxText, sharedTexts: s.texts}}
	if err := r.read(lines); err != nil {
		return nil, err
	}
	if err := r.finish(); err != nil {
		return nil, err
	}
	return r.scripts[0], nil
}

// Parse parses a source of transcripts, as the function [Parse] does. The steps may use the setups.
func (s *Setups) Parse(p *codec.Protocol, file string, src []byte) ([]*Script, error) {
	texts := newSharedTexts()
	if s != nil {
		texts = s.texts
	}
	r := &parser{proto: p, setups: s, pos: position{file: file}, lines: splitLines(src),
		quotes: quotes{room: maxText, sharedTexts: texts}}
	return r.parse()
}

// With returns the script with other ways of its setups. The steps of the script itself stay unchanged.
func (s *Script) With(choice Ways) (*Script, error) {
	other := false // than the first ways, which Parse uses
	for _, way := range choice {
		other = other || way != 0
	}
	if s.again == nil || !other {
		return s, nil
	}
	return s.again(choice)
}

var setupLine = regexp.MustCompile(`^\s*(.+?)\s*->\s*(.+?):\s+(setup|check)\s+(\S+)\s*(.*)$`)

// maxSetupDepth limits the nesting of setups that use setups.
const maxSetupDepth = 8

// withSetups replaces the lines that use a setup by the lines of its chosen way.
func (ps *parser) withSetups(lines section, depth int) (section, *Error) {
	if ps.setups == nil {
		return lines, nil
	}
	out := make(section, 0, len(lines))
	for _, l := range lines {
		var m []string
		if strings.Contains(l.text, "setup") || strings.Contains(l.text, "check") { // the expression is slow on long lines
			m = setupLine.FindStringSubmatch(l.text)
		}
		if m == nil {
			out = append(out, l)
			continue
		}
		pos := position{ps.pos.file, l.number, 1}
		one := ps.setups.Named(m[4])
		switch {
		case one == nil:
			var names []string
			for _, known := range ps.setups.all {
				names = append(names, known.Name)
			}
			return nil, pos.errorf("expected the name of a setup, got %q%s", m[4], nearest(m[4], names))
		case m[2] != ps.proto.ServerName:
			return nil, pos.errorf("expected a line from a client or worker to the %s", ps.proto.ServerName)
		case depth == maxSetupDepth:
			return nil, pos.errorf("setup %s uses itself", one.Name)
		}
		params, err := one.arguments(pos, m[1], m[5])
		if err != nil {
			return nil, err
		}
		list := &ps.used
		if m[3] == "check" && l.setup == "" {
			list = &ps.checked
		}
		if !slices.Contains(*list, one.Name) {
			*list = append(*list, one.Name)
		}
		way := ps.ways[one.Name]
		if way < 0 || way >= len(one.ways) {
			way = 0
		}
		var body section
		for _, b := range one.ways[way] {
			text, err := ps.substitute(b, params, false)
			if err != nil {
				return nil, err
			}
			outer := l.setup
			if outer == "" && m[3] == "setup" {
				outer = one.Name
			}
			if err := ps.grow(pos, text); err != nil {
				return nil, err
			}
			body = append(body, sourceLine{number: l.number, text: text, setup: outer, sample: l.sample})
		}
		if body, err = ps.withSetups(body, depth+1); err != nil {
			return nil, err
		}
		out = append(out, body...)
	}
	return out, nil
}

var (
	parameter     = regexp.MustCompile(`^([a-z][a-z0-9]*)(?:=(.+)|(\.\.\.))?$`)
	namedArgument = regexp.MustCompile(`^([a-z][a-z0-9]*)=(.*)$`)
)

// named returns a function that reports whether a parameter has the name.
func named(name string) func(Param) bool { return func(p Param) bool { return p.Name == name } }

// arguments returns the values of a setup's parameters for a line that uses the setup.
func (one *Setup) arguments(pos position, peer, text string) ([]Param, *Error) {
	args, params, given := items(text), slices.Clone(one.params), make([]bool, len(one.params))
	if k := slices.IndexFunc(args, func(s string) bool { return s[0] == '#' }); k >= 0 {
		args = args[:k]
	}
	wrong := func(got string) *Error {
		return pos.errorf("setup %s: expected %s, got %s", one.Name, cmp.Or(one.signature, "no arguments"), got)
	}
	missing := func(p Param) bool { return p.value == "" }
	for k, value := range args {
		i := slices.IndexFunc(params, missing)
		rest := one.rest && i == len(params)-1
		if m := namedArgument.FindStringSubmatch(value); m != nil {
			i, value = slices.IndexFunc(params, named(m[1])), m[2]
			rest = false
		}
		switch {
		case i < 0 || value == "":
			return nil, wrong(args[k])
		case given[i]:
			return nil, wrong(params[i].Name + " twice")
		}
		if params[i].value, given[i] = value, true; rest {
			params[i].value = strings.Join(args[k:], " ")
			break
		}
	}
	if i := slices.IndexFunc(params, missing); i >= 0 && !(one.rest && i == len(params)-1) {
		return nil, wrong("no " + params[i].Name)
	}
	return append(params, Param{Name: "peer", value: peer}), nil
}
