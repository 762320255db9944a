package conform

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/corpus"
	"jobwire/internal/textfile"
	"jobwire/internal/watch"
	"jobwire/play"
)

//go:embed cases
var cases embed.FS

// Case is one test of a server, client or worker.
type Case struct {
	ID        string // unique ID: the family and, in brackets, the parameters of an instance
	Family    string // name of the case, which all its instances share
	Params    []transcript.Param
	About     string
	Section   string
	Level     codec.Level // level of the first rule, or INTERPRETATION if the case tests an interpretation
	Rules     []codec.RuleID
	OwnServer bool     // the case needs a server of its own
	Needs     []string // capabilities that a server may lack
	// role of the program under test, which connects to the server through a relay; "" if the case tests the server
	Program string
	Script  *transcript.Script

	Segments *play.Segmentation // the only way to divide messages into writes; nil: all ways of the run

	// Checks of the server's process:
	Watch       []watch.Check // checks that run after the steps
	Descriptors int           // file descriptors that the process may open beyond those that it needs; 0: no limit

	// Interpretation is the assumption of the case beyond the text of its first rule, or "".
	Interpretation string

	driver driverScript
}

// observed reports whether the case checks the server's process.
func (c *Case) observed() bool { return len(c.Watch) > 0 || c.Descriptors > 0 }

// compares reports whether the case compares processor times.
func (c *Case) compares() bool {
	return slices.ContainsFunc(c.Watch, func(w watch.Check) bool { return w.What == watch.Cost })
}

// InProcess returns the suite without the cases that check the server's process, for servers that run in the current
// process.
func (s *Suite) InProcess() *Suite {
	return s.Only(func(c *Case) bool { return !c.observed() })
}

// Suite contains the cases of one protocol, in the order of their files.
type Suite struct {
	Protocol *codec.Protocol
	Cases    []*Case
	Setups   *transcript.Setups // setups that the cases use; nil if there are none
}

// With returns a suite with other cases and the same setups.
func (s *Suite) With(cases ...*Case) *Suite {
	return &Suite{Protocol: s.Protocol, Setups: s.Setups, Cases: cases}
}

// suites has the results of load, func() (*Suite, error), by *codec.Protocol.
var suites sync.Map

// Load returns the built-in suite of a protocol, from the folder cases of this package or, if the protocol has none
// there, of its corpus. A suite may have no cases. Each suite is read once: callers share it and must not change it.
func Load(p *codec.Protocol) (*Suite, error) {
	once, _ := suites.LoadOrStore(p, sync.OnceValues(func() (*Suite, error) { return load(p, nil) }))
	return once.(func() (*Suite, error))()
}

// LoadSelected returns the part of the built-in suite that [Suite.Select] with the patterns in run would select. It
// does not parse the other cases, which takes most of the time of a short run. If a pattern is invalid, it returns the
// whole suite, and if nothing matches, one without cases.
func LoadSelected(p *codec.Protocol, run []string) (*Suite, error) {
	for _, glob := range run {
		if _, err := path.Match(strings.TrimPrefix(glob, caseOnly), ""); err != nil {
			return Load(p)
		}
	}
	return load(p, func(family string, rules []string) bool {
		return slices.ContainsFunc(run, func(pattern string) bool {
			glob, only := strings.CutPrefix(pattern, caseOnly)
			match := func(name string) bool { ok, _ := path.Match(glob, name); return ok }
			return match(family) || strings.HasPrefix(glob, family+"[") || !only && slices.ContainsFunc(rules, match)
		})
	})
}

// load returns the built-in suite, or the part of it with the cases for which keep returns true.
func load(p *codec.Protocol, keep func(family string, rules []string) bool) (*Suite, error) {
	for _, from := range []struct {
		fsys fs.FS
		dir  string
	}{{cases, path.Join("cases", p.Name)}, {corpus.Files(p.Name), "cases"}} {
		if _, err := fs.Stat(from.fsys, from.dir); err == nil {
			dir, err := fs.Sub(from.fsys, from.dir)
			if err != nil {
				return nil, err
			}
			return loadFS(p, dir, keep)
		}
	}
	return &Suite{Protocol: p}, nil
}

// selected returns the source of a file with empty lines in place of the cases for which keep returns false, or nil if
// there are no others.
func selected(p *codec.Protocol, src []byte, keep func(family string, rules []string) bool) []byte {
	const begin = "\n@case "
	parts := strings.Split("\n"+string(src), begin)
	var out strings.Builder
	out.WriteString(parts[0])
	found := false
	for _, part := range parts[1:] {
		name, _, _ := strings.Cut(part, "\n")
		var rules []string
		for line := range strings.Lines(part) {
			if ids, ok := strings.CutPrefix(line, "@rules "); ok {
				rules = append(rules, strings.Fields(ids)...)
			}
		}
		if keep(p.Name+"."+strings.TrimSpace(name), rules) {
			out.WriteString(begin + part)
			found = true
		} else {
			out.WriteString(strings.Repeat("\n", strings.Count(begin+part, "\n")))
		}
	}
	if !found {
		return nil
	}
	return []byte(out.String()[1:])
}

// setupFile is the name of the file with the setups of a suite.
const setupFile = "setup.wire"

// LoadFS reads the cases in all .wire files of fsys, except setup.wire, which contains the setups of the suite
// ([transcript.Setups]). Unknown keys, unknown rules and duplicate IDs are errors with file, line and column
// ([*transcript.Error]).
func LoadFS(p *codec.Protocol, fsys fs.FS) (*Suite, error) { return loadFS(p, fsys, nil) }

// loadFS is [LoadFS] for the cases that keep selects; a nil keep selects all. It parses the files in parallel, and
// reports the errors in the order of the files.
func loadFS(p *codec.Protocol, fsys fs.FS, keep func(family string, rules []string) bool) (*Suite, error) {
	files, err := fs.Glob(fsys, "*.wire")
	if err != nil {
		return nil, err
	}
	files = slices.DeleteFunc(files, func(name string) bool { return name == setupFile })
	if len(files) == 0 {
		return nil, fmt.Errorf("found no .wire files with test cases of %s", p.Title)
	}
	s := &Suite{Protocol: p}
	if src, err := fs.ReadFile(fsys, setupFile); err == nil {
		if src, err = textfile.Text(src, "a file with setups"); err != nil {
			return nil, fmt.Errorf("%s: %w", setupFile, err)
		}
		if s.Setups, err = transcript.ParseSetups(p, setupFile, src); err != nil {
			return nil, err
		}
	}
	parsed, errs := make([][]*transcript.Script, len(files)), make([]error, len(files))
	var group sync.WaitGroup
	for i, name := range files {
		group.Go(func() {
			src, err := fs.ReadFile(fsys, name)
			if err == nil {
				if src, err = textfile.Text(src, "a file with cases"); err != nil {
					err = fmt.Errorf("%s: %w", name, err)
				}
			}
			if keep != nil {
				src = selected(p, src, keep)
			}
			if err == nil && src != nil {
				parsed[i], err = s.Setups.Parse(p, name, src)
			}
			errs[i] = err
		})
	}
	group.Wait()
	seen := map[string]*Case{}
	for i, name := range files {
		if errs[i] != nil {
			return nil, errs[i]
		}
		for _, sc := range parsed[i] {
			c, err := newCase(p, sc)
			if err != nil {
				return nil, err
			}
			if other := seen[c.ID]; other != nil {
				return nil, &transcript.Error{File: name, Line: sc.Line, Col: 1,
					Msg: fmt.Sprintf("duplicate case name %s: %s:%d has a case of this name", c.ID, other.Script.File,
						other.Script.Line)}
			}
			seen[c.ID] = c
			s.Cases = append(s.Cases, c)
		}
	}
	for i, n := 0, 0; i < len(s.Cases); i += n {
		for n = 1; i+n < len(s.Cases) && s.Cases[i+n].Family == s.Cases[i].Family; n++ {
		}
		if err := checkTests(s.Cases[i : i+n]); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Keys returns the keys that describe a case, sorted.
func Keys() []string { return slices.Sorted(maps.Keys(keys)) }

// keys maps the keys that describe a case to the functions that set them.
var keys = map[string]func(c *Case, p *codec.Protocol, m transcript.Meta) error{
	"case": func(c *Case, p *codec.Protocol, m transcript.Meta) error {
		if m.Value == "" || strings.ContainsAny(m.Value, " \t*?[") {
			return fmt.Errorf("invalid case name %q: expected one word without the characters * ? [", m.Value)
		}
		c.Family = p.Name + "." + m.Value
		if c.ID = c.Family; len(c.Params) > 0 {
			c.ID += "[" + c.Values() + "]"
		}
		return nil
	},
	"about":   func(c *Case, _ *codec.Protocol, m transcript.Meta) error { c.About = m.Value; return nil },
	"section": func(c *Case, _ *codec.Protocol, m transcript.Meta) error { c.Section = m.Value; return nil },
	"rules": func(c *Case, p *codec.Protocol, m transcript.Meta) error {
		for _, id := range strings.Fields(m.Value) {
			r := p.Rule(codec.RuleID(id))
			if r == nil {
				return fmt.Errorf("unknown rule %s", id)
			}
			if len(c.Rules) == 0 {
				c.Level = r.Level
			}
			c.Rules = append(c.Rules, r.ID)
		}
		return nil
	},
	"interpretation": func(c *Case, _ *codec.Protocol, m transcript.Meta) error {
		if c.Interpretation = m.Value; m.Value == "" {
			return fmt.Errorf("@interpretation needs a sentence: what the case assumes beyond the words of its rules")
		}
		return nil
	},
	"needs": func(c *Case, _ *codec.Protocol, m transcript.Meta) error {
		if c.Needs = strings.Fields(m.Value); len(c.Needs) == 0 {
			return fmt.Errorf("@needs must name at least one capability")
		}
		return nil
	},
	"alone": func(c *Case, _ *codec.Protocol, m transcript.Meta) error {
		if m.Value != "" {
			return fmt.Errorf("@alone takes no value")
		}
		c.OwnServer = true
		return nil
	},
	"watch": func(c *Case, _ *codec.Protocol, m transcript.Meta) error {
		check, err := watch.ParseCheck(m.Value)
		c.Watch = append(c.Watch, check)
		return err
	},
	"descriptors": func(c *Case, _ *codec.Protocol, m transcript.Meta) error {
		n, err := strconv.ParseUint(m.Value, 10, 16)
		if c.Descriptors = int(n); err != nil || n == 0 {
			return fmt.Errorf("@descriptors %s: expected the number of file descriptors that the server may open", m.Value)
		}
		return nil
	},
	"segments": func(c *Case, _ *codec.Protocol, m transcript.Meta) error {
		how, err := play.SegmentationNamed(m.Value)
		c.Segments = &how
		return err
	},
	"protocol": func(_ *Case, p *codec.Protocol, m transcript.Meta) error {
		if m.Value != p.Name {
			return fmt.Errorf("expected a transcript of %[2]s, got one of %[1]s", m.Value, p.Name)
		}
		return nil
	},
	"program": func(c *Case, _ *codec.Protocol, m transcript.Meta) error { c.Program = m.Value; return nil },
	"task":    func(c *Case, _ *codec.Protocol, m transcript.Meta) error { return addArgs(&c.driver.tasks, c, m) },
	"answer":  func(c *Case, _ *codec.Protocol, m transcript.Meta) error { return addArgs(&c.driver.answers, c, m) },
}

// addArgs parses the value of a key as arguments and appends them to a list.
func addArgs(to *[][]transcript.Arg, c *Case, m transcript.Meta) error {
	args, err := transcript.ParseArgs(c.Script.File, m.Line, m.Col+len(m.Key)+1, m.Value)
	if err == nil && len(args) == 0 {
		err = fmt.Errorf("@%s is empty", m.Key)
	}
	*to = append(*to, args)
	return err
}

// newCase returns the case that a script and its keys describe.
func newCase(p *codec.Protocol, sc *transcript.Script) (*Case, error) {
	c := &Case{Script: sc, Params: sc.Params}
	for _, m := range sc.Meta {
		set := keys[m.Key]
		if set == nil {
			return nil, &transcript.Error{File: sc.File, Line: m.Line, Col: m.Col,
				Msg: fmt.Sprintf("unknown key @%s: expected %s", m.Key, strings.Join(Keys(), ", "))}
		}
		var located *transcript.Error
		switch err := set(c, p, m); {
		case errors.As(err, &located):
			return nil, located
		case err != nil:
			return nil, &transcript.Error{File: sc.File, Line: m.Line, Col: m.Col, Msg: err.Error()}
		}
	}
	if c.Interpretation != "" {
		c.Level = codec.Interpretation
	}
	if err := c.driver.check(p, c.Program); err != nil {
		return nil, &transcript.Error{File: sc.File, Line: sc.Line, Col: 1, Msg: err.Error()}
	}
	for _, required := range []struct {
		key    string
		absent bool
	}{{"case", c.ID == ""}, {"about", c.About == ""}, {"section", c.Section == ""}, {"rules", len(c.Rules) == 0}} {
		if required.absent {
			return nil, &transcript.Error{File: sc.File, Line: sc.Line, Col: 1,
				Msg: fmt.Sprintf("the case has no @%s", required.key)}
		}
	}
	return c, nil
}

// checkTests checks the @tests lines of all instances of a case: each names rules of @rules and, if there are any, each
// rule of @rules is the first one or in one of them.
func checkTests(instances []*Case) error {
	tested := map[codec.RuleID]bool{}
	for _, c := range instances {
		for _, t := range c.Script.Tests {
			for _, id := range t.Rules {
				if tested[id] = true; !slices.Contains(c.Rules, id) {
					return &transcript.Error{File: c.Script.File, Line: t.Line, Col: t.Col,
						Msg: fmt.Sprintf("expected rules of @rules after @tests, got %s", id)}
				}
			}
		}
	}
	if len(tested) == 0 {
		return nil
	}
	script := instances[0].Script
	for _, id := range instances[0].Rules[1:] {
		if !tested[id] {
			m := script.Meta[slices.IndexFunc(script.Meta, func(m transcript.Meta) bool { return m.Key == "rules" })]
			return &transcript.Error{File: script.File, Line: m.Line, Col: m.Col,
				Msg: fmt.Sprintf("expected an @tests line with each rule after the first one, got none with %s", id)}
		}
	}
	return nil
}

// Capabilities returns the capabilities that cases need and that a server may lack, sorted.
func (s *Suite) Capabilities() []string {
	var all []string
	for _, c := range s.Cases {
		all = append(all, c.Needs...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// caseOnly begins a pattern that applies only to names of cases.
const caseOnly = "case:"

// Select returns the suite with the selected cases. A case is selected if its name or one of its rules matches a
// pattern in run, or if run is empty, and if none matches a pattern in skip. A pattern is a path.Match glob; with the
// prefix "case:" it applies only to names of cases. A pattern that matches nothing is an error, so that a run with a
// misspelled pattern does not pass with no cases.
func (s *Suite) Select(run, skip []string) (*Suite, error) {
	hit := map[string]bool{}
	matches := func(c *Case, patterns []string) (any bool, err error) {
		for _, p := range patterns {
			glob, only := strings.CutPrefix(p, caseOnly)
			ok, err := c.matches(glob)
			if err != nil {
				return false, fmt.Errorf("pattern %q: %v", p, err)
			}
			for _, r := range c.Rules {
				m, _ := path.Match(glob, string(r))
				ok = ok || m && !only
			}
			if ok {
				hit[p], any = true, true
			}
		}
		return any, nil
	}
	out := s.With()
	for _, c := range s.Cases {
		in, err := matches(c, run)
		if err != nil {
			return nil, err
		}
		no, err := matches(c, skip)
		if err != nil {
			return nil, err
		}
		if (in || len(run) == 0) && !no {
			out.Cases = append(out.Cases, c)
		}
	}
	for _, p := range append(append([]string(nil), run...), skip...) {
		if !hit[p] {
			return nil, fmt.Errorf("%[2]q matches no case and no rule of %[1]s: to list the cases, run 'jobwire conform cases %[3]s'", s.Protocol.Title, p, s.Protocol.Name)
		}
	}
	return out, nil
}

// Only returns the suite with the cases for which keep returns true.
func (s *Suite) Only(keep func(*Case) bool) *Suite {
	out := s.With()
	for _, c := range s.Cases {
		if keep(c) {
			out.Cases = append(out.Cases, c)
		}
	}
	return out
}

// matches reports whether a glob matches the name of the case or is the ID of the instance.
func (c *Case) matches(glob string) (bool, error) {
	if glob == c.ID {
		return true, nil
	}
	return path.Match(glob, c.Family)
}

// selector returns a pattern for Select that selects only this case. Some cases have the same names as rules.
func (c *Case) selector() string {
	switch {
	case len(c.Params) > 0:
		return "'" + c.ID + "'"
	case c.Script.Protocol.Rule(codec.RuleID(c.ID)) != nil:
		return caseOnly + c.ID
	}
	return c.ID
}

// About returns the suite with the cases that test programs of the given roles, where "" means the server. A role
// without cases is an error.
func (s *Suite) About(roles ...string) (*Suite, error) {
	out := s.Only(func(c *Case) bool { return slices.Contains(roles, c.Program) })
	for _, role := range roles {
		if !slices.ContainsFunc(out.Cases, func(c *Case) bool { return c.Program == role }) {
			return nil, fmt.Errorf("no case of %s tests a program with the role %q", s.Protocol.Title, role)
		}
	}
	return out, nil
}

// AtLevels returns the suite with the cases of the given levels. If levels is empty, it returns s.
func (s *Suite) AtLevels(levels []string) (*Suite, error) {
	if len(levels) == 0 {
		return s, nil
	}
	for _, l := range levels {
		if !slices.Contains(codec.Levels, codec.Level(l)) {
			return nil, fmt.Errorf("unknown level %q: expected one of %s", l, strings.Trim(fmt.Sprint(codec.Levels), "[]"))
		}
	}
	return s.Only(func(c *Case) bool { return slices.Contains(levels, string(c.Level)) }), nil
}

// First returns the suite with only the first instance of each case.
func (s *Suite) First() *Suite {
	last := ""
	return s.Only(func(c *Case) bool {
		first := c.Family != last
		last = c.Family
		return first
	})
}

// Names returns the names of the cases, without parameters, each once.
func (s *Suite) Names() (all []string) {
	for _, c := range s.First().Cases {
		all = append(all, c.Family)
	}
	return all
}

// Values returns the parameters of the instance, such as "n=64,body=nul", or "".
func (c *Case) Values() string {
	var all []string
	for _, p := range c.Params {
		all = append(all, p.Name+"="+p.Label)
	}
	return strings.Join(all, ",")
}
