package conform

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

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
type Profile struct {
	Name  string         `yaml:"name"`
	Exec  string         `yaml:"exec"`
	Lacks []string       `yaml:"lacks"`
	Waive []codec.RuleID `yaml:"waive"`
	Known []Exception    `yaml:"known"`
	Flaky []Exception    `yaml:"flaky"`
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
		return nil, fmt.Errorf("there is no profile %q: there are %s, and files", name, strings.Join(Profiles(s.Protocol), ", "))
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
	// What the reader cannot see is found again by its text, to name its line.
	line := func(text string) int {
		before, _, _ := strings.Cut(string(src), text)
		return 1 + strings.Count(before, "\n")
	}
	if p.Name == "" {
		return nil, fmt.Errorf("%s:1: the profile has no name", file)
	}
	for _, c := range p.Lacks {
		if !slices.Contains(s.Capabilities(), c) {
			return nil, fmt.Errorf("%s:%d: no case needs the capability %q: they are %s", file, line(c), c, strings.Join(s.Capabilities(), ", "))
		}
	}
	for _, id := range p.Waive {
		if s.Protocol.Rule(id) == nil {
			return nil, fmt.Errorf("%s:%d: there is no rule %q", file, line(string(id)), id)
		}
	}
	for _, e := range slices.Concat(p.Known, p.Flaky) {
		if e.Why == "" {
			return nil, fmt.Errorf("%s:%d: %q has no why", file, line(e.Cases), e.Cases)
		}
		if !slices.ContainsFunc(s.Cases, func(c *Case) bool { return e.matches(c) }) {
			return nil, fmt.Errorf("%s:%d: %q matches no case", file, line(e.Cases), e.Cases)
		}
	}
	return p, nil
}

func (e Exception) matches(c *Case) bool {
	ok, _ := path.Match(e.Cases, c.ID)
	return ok
}

// lacks says why a case cannot be put to the target, or nothing.
func (p *Profile) lacks(c *Case) string {
	if p == nil {
		return ""
	}
	for _, need := range c.Needs {
		if slices.Contains(p.Lacks, need) {
			return fmt.Sprintf("%s does not offer %q", p.Name, need)
		}
	}
	return ""
}

// apply turns a verdict into what it means where the target is known.
func (p *Profile) apply(r Result) Result {
	if p == nil || r.Verdict == Skipped || r.Verdict == Unreachable || r.Verdict == Inconclusive {
		return r
	}
	for _, e := range p.Flaky {
		if e.matches(r.Case) && r.Verdict.FallsShort() {
			r.Verdict, r.Note = Flaky, e.Why+": "+r.Note
			return r
		}
	}
	for _, e := range p.Known {
		switch {
		case !e.matches(r.Case):
		case r.Verdict.FallsShort():
			r.Verdict, r.Note = Known, e.Why+": "+r.Note
			return r
		default:
			r.Verdict, r.Note = Unexpected, "its profile says that it falls short: "+e.Why
			return r
		}
	}
	return r
}
