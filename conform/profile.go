package conform

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/parser"

	"jobwire/codec"
	"jobwire/internal/target"
	"jobwire/internal/textfile"
	"jobwire/internal/verdict"
)

// Profile describes an implementation: how to start it, which features it lacks, and which cases it fails. It is a YAML
// file:
//
//	name: gearmand
//	exec: /usr/sbin/gearmand -L 127.0.0.1 -p {port}
//	version: /usr/sbin/gearmand --version  # command that prints the version of the server
//	lacks: [SUBMIT_JOB_SCHED]   # message types, and capabilities that cases name in @needs
//	waive: []                   # rules that its messages may break
//	known:                      # these must fail: a pass breaks the run
//	  - cases: gearman.sched.*
//	    why: it does not run jobs by schedule
//	    quote: run job at given time     # words of the specification; may be left out
//	    finding: gearmand-sched          # a finding about it: a name, or a URL; may be left out
//	  - cases: gearman.packet.type-large
//	    crash: true             # without this line, a crash breaks the run although the case is listed
//	    why: it reads beyond its table of types
//	flaky:                      # these may fail
//	  - cases: gearman.retry.race
//	    why: it depends on which of two threads is quicker
//	rare-crash:                 # the target may crash in a way that no case causes alone
//	  why: it crashed in one of eight runs
//	fuzz:                       # settings that prevent fuzz from reporting known failures
//	  avoid: [gearman.packet.type-known]
type Profile struct {
	Name    string         `yaml:"name"`
	Exec    string         `yaml:"exec"`
	Version string         `yaml:"version"`
	Lacks   []string       `yaml:"lacks"`
	Waive   []codec.RuleID `yaml:"waive"`
	Known   []Exception    `yaml:"known"`
	Flaky   []Exception    `yaml:"flaky"`
	Rare    *Exception     `yaml:"rare-crash"` // lists no cases
	Fuzz    Fuzzing        `yaml:"fuzz"`

	instances map[string]int // number of instances of each case, by its family; nil if the profile was not parsed
}

// Fuzzing are settings that prevent the fuzzer from reporting known failures of an implementation.
type Fuzzing struct {
	Avoid  []codec.RuleID `yaml:"avoid"`  // messages that break these rules are not sent
	Never  *regexp.Regexp `yaml:"never"`  // bytes that match are not sent
	Limits map[string]int `yaml:"limits"` // longer values are not sent: the limit in bytes, by the name of the field
	Waive  []codec.RuleID `yaml:"waive"`  // rules that the server may break
	After  []string       `yaml:"after"`  // message types that are sent only after the replies to all messages before them
	Quirks []string       `yaml:"quirks"` // deviations that the model of the queue accepts
}

// Exception lists cases that an implementation fails, by a glob pattern of their IDs, with the reason.
type Exception struct {
	Cases   string `yaml:"cases"`
	Crash   bool   `yaml:"crash"` // the case may also crash or hang the server
	Why     string `yaml:"why"`
	Quote   string `yaml:"quote"`   // words of the specification that the implementation does not follow, or ""
	Finding string `yaml:"finding"` // name or URL of a finding that explains the failure, or ""
}

//go:embed profiles
var profiles embed.FS

// Profiles returns the names of the built-in profiles of a protocol.
func Profiles(p *codec.Protocol) []string {
	files, _ := fs.Glob(profiles, path.Join("profiles", p.Name, "*.yaml"))
	for i, f := range files {
		files[i] = strings.TrimSuffix(path.Base(f), ".yaml")
	}
	return files
}

// LoadProfile reads a profile and checks it against the suite. name is the name of a built-in profile or of a file. An
// unknown key, rule or capability, and a pattern that matches no case, are errors with file and line.
func LoadProfile(name string, s *Suite) (*Profile, error) {
	if slices.Contains(Profiles(s.Protocol), name) {
		file := path.Join("profiles", s.Protocol.Name, name+".yaml")
		src, err := fs.ReadFile(profiles, file)
		if err != nil {
			return nil, err
		}
		return ParseProfile(file, src, s)
	}
	src, err := textfile.Read(name, "a profile")
	if errors.Is(err, fs.ErrNotExist) && !strings.ContainsAny(name, "./") {
		return nil, fmt.Errorf("unknown profile %q: expected %s, or a file", name, strings.Join(Profiles(s.Protocol), ", "))
	}
	if err != nil {
		return nil, err
	}
	return ParseProfile(name, src, s)
}

// ParseProfile parses the text of a profile and checks it against the suite. file is the name for error messages.
func ParseProfile(file string, src []byte, s *Suite) (*Profile, error) {
	p := &Profile{instances: map[string]int{}}
	for _, c := range s.Cases {
		p.instances[c.Family]++
	}
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
	// wrong returns an error about the value at a YAML path such as "$.known[2].cases".
	wrong := func(at, format string, args ...any) error {
		line := 1
		if path, err := yaml.PathString(at); err == nil {
			if node, err := path.FilterFile(parsed); err == nil {
				line = node.GetToken().Position.Line
			}
		}
		return fmt.Errorf("%s:%d: %s", file, line, fmt.Sprintf(format, args...))
	}
	if p.Name == "" {
		return nil, fmt.Errorf("%s:1: the profile has no name: add a line such as \"name: my-server 1.0\"", file)
	}
	for i, c := range p.Lacks {
		if !slices.Contains(s.Capabilities(), c) && s.Protocol.TypeNamed(c) == nil {
			return nil, wrong(fmt.Sprintf("$.lacks[%d]", i), "unknown capability %q: expected a message type%s", c,
				orList(s.Capabilities()))
		}
	}
	for _, list := range []struct {
		key   string
		rules []codec.RuleID
	}{{"waive", p.Waive}, {"fuzz.avoid", p.Fuzz.Avoid}, {"fuzz.waive", p.Fuzz.Waive}} {
		for i, id := range list.rules {
			if s.Protocol.Rule(id) == nil {
				return nil, wrong(fmt.Sprintf("$.%s[%d]", list.key, i), "unknown rule %q", id)
			}
		}
	}
	for i, name := range p.Fuzz.After {
		if s.Protocol.TypeNamed(name) == nil {
			return nil, wrong(fmt.Sprintf("$.fuzz.after[%d]", i), "unknown message type %q", name)
		}
	}
	for i, e := range slices.Concat(p.Known, p.Flaky) {
		at := fmt.Sprintf("$.known[%d].cases", i)
		if k := i - len(p.Known); k >= 0 {
			at = fmt.Sprintf("$.flaky[%d].cases", k)
		}
		if e.Why == "" {
			return nil, wrong(at, "the entry %q has no reason: add a line \"why: REASON\"", e.Cases)
		}
		if !slices.ContainsFunc(s.Cases, e.matches) {
			return nil, wrong(at, "the pattern %q matches no test case", e.Cases)
		}
	}
	if p.Rare != nil && (p.Rare.Why == "" || p.Rare.Cases != "" || p.Rare.Crash) {
		return nil, wrong("$.rare-crash", "expected a line \"why: REASON\" in rare-crash, and no cases")
	}
	return p, nil
}

// versionTimeout is the time limit of a command that prints the version of a server.
const versionTimeout = 10 * time.Second

var versionNumber = regexp.MustCompile(`[0-9]+(\.[0-9]+)+(-[0-9A-Za-z.-]+)?`)

// ServerVersion runs the command of Version, and returns the first version number in its output, such as 1.2.3 or
// 1.2.3-rc1. It returns "" if the profile has no command. The error says why the version is not known: the command did
// not run or did not end within 10 s, or it printed no version number.
func (p *Profile) ServerVersion(ctx context.Context) (string, error) {
	if p.Version == "" {
		return "", nil
	}
	words, err := target.Split(p.Version)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if found := versionNumber.Find(out); found != nil {
		return string(found), nil
	}
	if err == nil {
		err = errors.New("expected a version number such as 1.2.3 in the output")
	}
	return "", fmt.Errorf("%s: %w", p.Version, err)
}

func (e Exception) matches(c *Case) bool {
	ok, _ := c.matches(e.Cases)
	return ok
}

// orList returns the names in the form " or a, b", to append to a list of expected values.
func orList(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return " or " + strings.Join(names, ", ")
}

// lacks returns the reason why a case cannot run against the target, or "". It ignores the messages of setups, because
// another way to a setup may work.
func (p *Profile) lacks(c *Case) string {
	if p == nil {
		return ""
	}
	for _, need := range c.Needs {
		if slices.Contains(p.Lacks, need) {
			return fmt.Sprintf("%s does not have the feature %q", p.Name, need)
		}
	}
	return p.lacksMessage(c, false)
}

// lacksMessage returns a sentence about a message that the target lacks, in the setups of the case or in its other
// steps, or "".
func (p *Profile) lacksMessage(c *Case, inSetup bool) string {
	if p == nil {
		return ""
	}
	for i := range c.Script.Steps {
		st := &c.Script.Steps[i]
		if t := st.Choices[0].Type; (st.Setup != "") == inSetup && st.From == codec.Peer && t != nil &&
			slices.Contains(p.Lacks, t.Name) {
			return fmt.Sprintf("%s does not have the message %s", p.Name, t.Name)
		}
	}
	return ""
}

// apply returns the result with the verdict that the entries of the profile imply.
func (p *Profile) apply(r Result) Result {
	if p == nil || !r.Verdict.Row().Decided {
		return r
	}
	if p.Rare != nil && r.Crash != nil && r.Crash.elusive {
		r.Verdict, r.Note, r.Finding = verdict.Flaky, p.Rare.Why+": "+r.Note, p.Rare.Finding
		return r
	}
	listed := false
	for _, list := range []struct {
		exceptions []Exception
		verdict    verdict.Verdict
	}{{p.Flaky, verdict.Flaky}, {p.Known, verdict.Known}} {
		for _, e := range list.exceptions {
			switch {
			case !e.matches(r.Case) || !r.Verdict.FailsRun():
			case !e.Crash && r.Verdict.Stops():
				listed = true
			default:
				r.Verdict, r.Note, r.Quote, r.Finding = list.verdict, e.Why+": "+r.Note, e.Quote, e.Finding
				return r
			}
		}
	}
	if listed {
		r.Note = "the profile lists the case as failing, but not as crashing (\"crash: true\"): " + r.Note
	}
	return r
}

// mayCrash reports whether the profile lists the case as one that may crash the target.
func (p *Profile) mayCrash(c *Case) bool {
	listed := func(e Exception) bool { return e.Crash && e.matches(c) }
	return p != nil && (slices.ContainsFunc(p.Flaky, listed) || slices.ContainsFunc(p.Known, listed))
}

// unexpected changes the verdict of passed cases to Unexpected if the profile lists them as failing. If an entry
// matches a case with parameters, all its instances must have run and passed; if an entry names one instance, that
// instance must have passed. unexpected calls changed with the index of each changed result.
func (p *Profile) unexpected(results []Result, changed func(i int)) {
	if p == nil {
		return
	}
	for i := 0; i < len(results); {
		from, all := i, true
		for ; i < len(results) && results[i].Case.Family == results[from].Case.Family; i++ {
			all = all && results[i].Verdict.Passes()
		}
		all = all && i-from >= p.instances[results[from].Case.Family]
		for n := from; n < i; n++ {
			c := results[n].Case
			k := slices.IndexFunc(p.Known, func(e Exception) bool {
				return e.matches(c) && (all && e.Cases != c.ID || results[n].Verdict.Passes() && e.Cases == c.ID)
			})
			if k < 0 || slices.ContainsFunc(p.Flaky, func(e Exception) bool { return e.matches(c) }) {
				continue
			}
			results[n].Verdict, results[n].Note = verdict.Unexpected,
				"the case passed, but the profile lists it as failing: "+p.Known[k].Why
			changed(n)
		}
	}
}
