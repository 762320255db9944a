package conform

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/parser"

	"jobwire/codec"
)

// Profile is what is known of an implementation: how to start it, what it
// does not offer, and where it is known to fall short. It is a YAML file:
//
//	name: gearmand 1.1.20
//	exec: /usr/sbin/gearmand -L 127.0.0.1 -p {port}
//	lacks: [sched]              # capabilities, as cases name them in @needs
//	waive: []                   # rules that its messages are not held to
//	known:                      # these must fail: a pass breaks the run
//	  - cases: gearman.sched.*
//	    why: it does not run jobs by schedule
//	flaky:                      # these may fail
//	  - cases: gearman.retry.race
//	    why: it depends on which of two threads is quicker
//	fuzz:                       # how to keep fuzz from reporting what is known
//	  avoid: [gearman.packet.type-known]
type Profile struct {
	Name  string         `yaml:"name"`
	Exec  string         `yaml:"exec"`
	Lacks []string       `yaml:"lacks"`
	Waive []codec.RuleID `yaml:"waive"`
	Known []Exception    `yaml:"known"`
	Flaky []Exception    `yaml:"flaky"`
	Fuzz  Fuzzing        `yaml:"fuzz"`
}

// Fuzzing keeps the fuzzer from reporting what is known of an implementation.
type Fuzzing struct {
	Avoid  []codec.RuleID `yaml:"avoid"`  // messages that break these rules are not sent
	Never  *regexp.Regexp `yaml:"never"`  // nor bytes that match
	Limits map[string]int `yaml:"limits"` // nor values of more bytes, by the name of the field
	Waive  []codec.RuleID `yaml:"waive"`  // rules that the server may break
	After  []string       `yaml:"after"`  // message types that are sent only after the replies to all messages before them
	Quirks []string       `yaml:"quirks"` // deviations that the model of the queue accepts
}

// Exception is a glob over case IDs and the reason for it.
type Exception struct {
	Cases string `yaml:"cases"`
	Why   string `yaml:"why"`
}

//go:embed profiles
var profiles embed.FS

// Profiles lists the names of the profiles that come with jobwire for a
// protocol.
func Profiles(p *codec.Protocol) []string {
	files, _ := fs.Glob(profiles, path.Join("profiles", p.Name, "*.yaml"))
	for i, f := range files {
		files[i] = strings.TrimSuffix(path.Base(f), ".yaml")
	}
	return files
}

// LoadProfile reads a profile, by the name of one that comes with jobwire or by
// its file, and holds it against the suite: an unknown key, rule or capability, or a
// glob that matches no case, is an error that names file and line.
func LoadProfile(name string, s *Suite) (*Profile, error) {
	if slices.Contains(Profiles(s.Protocol), name) {
		file := path.Join("profiles", s.Protocol.Name, name+".yaml")
		src, err := fs.ReadFile(profiles, file)
		if err != nil {
			return nil, err
		}
		return ParseProfile(file, src, s)
	}
	src, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) && !strings.ContainsAny(name, "./") {
		return nil, fmt.Errorf("unknown profile %q: expected %s, or a file", name, strings.Join(Profiles(s.Protocol), ", "))
	}
	if err != nil {
		return nil, err
	}
	return ParseProfile(name, src, s)
}

// ParseProfile reads a profile's text. file is its name in errors.
func ParseProfile(file string, src []byte, s *Suite) (*Profile, error) {
	p := &Profile{}
	if err := yaml.NewDecoder(bytes.NewReader(src), yaml.Strict()).Decode(p); err != nil {
		var at yaml.Error
		if errors.As(err, &at) && at.GetToken() != nil {
			pos := at.GetToken().Position
			return nil, fmt.Errorf("%s:%d:%d: %s", file, pos.Line, pos.Column, at.GetMessage())
		}
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	parsed, err := parser.ParseBytes(src, 0)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	// line returns the line of a value, by its path such as "$.known[2].cases".
	line := func(format string, args ...any) int {
		path, err := yaml.PathString(fmt.Sprintf(format, args...))
		if err != nil {
			return 1
		}
		node, err := path.FilterFile(parsed)
		if err != nil {
			return 1
		}
		return node.GetToken().Position.Line
	}
	if p.Name == "" {
		return nil, fmt.Errorf("%s:1: the profile has no name: add a line such as \"name: my-server 1.0\"", file)
	}
	for i, c := range p.Lacks {
		if !slices.Contains(s.Capabilities(), c) {
			return nil, fmt.Errorf("%s:%d: unknown capability %q: expected %s", file, line("$.lacks[%d]", i), c, strings.Join(s.Capabilities(), ", "))
		}
	}
	for _, list := range []struct {
		key   string
		rules []codec.RuleID
	}{{"waive", p.Waive}, {"fuzz.avoid", p.Fuzz.Avoid}, {"fuzz.waive", p.Fuzz.Waive}} {
		for i, id := range list.rules {
			if s.Protocol.Rule(id) == nil {
				return nil, fmt.Errorf("%s:%d: unknown rule %q", file, line("$.%s[%d]", list.key, i), id)
			}
		}
	}
	for i, name := range p.Fuzz.After {
		if s.Protocol.TypeNamed(name) == nil {
			return nil, fmt.Errorf("%s:%d: unknown message type %q", file, line("$.fuzz.after[%d]", i), name)
		}
	}
	for _, list := range []struct {
		key        string
		exceptions []Exception
	}{{"known", p.Known}, {"flaky", p.Flaky}} {
		for i, e := range list.exceptions {
			at := line("$.%s[%d].cases", list.key, i)
			if e.Why == "" {
				return nil, fmt.Errorf("%s:%d: the entry %q has no reason: add a line \"why: REASON\"", file, at, e.Cases)
			}
			if !slices.ContainsFunc(s.Cases, e.matches) {
				return nil, fmt.Errorf("%s:%d: the pattern %q matches no test case", file, at, e.Cases)
			}
		}
	}
	return p, nil
}

func (e Exception) matches(c *Case) bool {
	ok, _ := c.matches(e.Cases)
	return ok
}

// lacks says why a case cannot be put to the target, or nothing.
func (p *Profile) lacks(c *Case) string {
	if p == nil {
		return ""
	}
	for _, need := range c.Needs {
		if slices.Contains(p.Lacks, need) {
			return fmt.Sprintf("%s does not have the feature %q", p.Name, need)
		}
	}
	return ""
}

// apply turns a verdict into what it means where the target is known.
func (p *Profile) apply(r Result) Result {
	if p == nil || slices.Contains([]Verdict{Skipped, NotRun, Unreachable, Inconclusive}, r.Verdict) {
		return r
	}
	for _, e := range p.Flaky {
		if e.matches(r.Case) && r.Verdict.FallsShort() {
			r.Verdict, r.Note = Flaky, e.Why+": "+r.Note
			return r
		}
	}
	for _, e := range p.Known {
		if e.matches(r.Case) && r.Verdict.FallsShort() {
			r.Verdict, r.Note = Known, e.Why+": "+r.Note
			return r
		}
	}
	return r
}

// unexpected changes the verdicts of the cases that the profile lists as failing and that passed: of a case with
// parameters, if all its instances did. It calls changed with the index of each.
func (p *Profile) unexpected(results []Result, changed func(i int)) {
	if p == nil {
		return
	}
	for i := 0; i < len(results); {
		from, passed := i, true
		for ; i < len(results) && results[i].Case.Family == results[from].Case.Family; i++ {
			passed = passed && slices.Contains([]Verdict{Passed, Lax}, results[i].Verdict)
		}
		k := slices.IndexFunc(p.Known, func(e Exception) bool { return e.matches(results[from].Case) })
		if !passed || k < 0 || slices.ContainsFunc(p.Flaky, func(e Exception) bool { return e.matches(results[from].Case) }) {
			continue
		}
		for n := from; n < i; n++ {
			results[n].Verdict, results[n].Note = Unexpected, "the case passed, but the profile lists it as failing: "+p.Known[k].Why
			changed(n)
		}
	}
}
