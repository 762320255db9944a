package audit

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"jobwire/codec"
	"jobwire/codec/transcript"
)

// Scenario contains the steps for the drivers of a protocol under each fault profile, by role.
type Scenario map[string][]Step

// Step is a task of a driver, with the tasks of a partner at the same time. In tasks and answers, {A} to {D} are
// payloads, {A'} is the payload reversed, {A+A} is the payload twice, and {} is an empty payload. {LF}, {CRLF} and
// {NUL} are payloads that begin with these bytes and end with other ones of them, under all profiles. {9} is a name of
// nine digits. $NAME gets its value from the answer in which it first occurs; * is any word, ... is any number of
// words, and | separates alternatives.
type Step struct {
	Task, Answer string
	Waits        time.Duration // how long the server makes a correct driver wait, in addition to the time limit
	Again        string        // the task that is performed after a failure; "": the same task
	Partner      string        // the role of a reference driver; "": none
	Serves       string        // the task that the partner performs during the whole step
	Others       []Exchange    // the tasks that the partner performs, one after the other
	Batch        bool          // the driver performs several jobs concurrently
	Lasting      bool          // omitted if the server restarts, because the driver cannot notice that its jobs are lost
	Extra        bool          // the step is omitted under profiles that need many runs
	MayRefuse    bool          // a library may refuse a value of the task, which is then unsupported
	Needs        int           // the number, from 1, of the step on which this step depends; 0: none
}

// Exchange is a task with its expected answer.
type Exchange struct{ Task, Answer string }

// Effects are what the fault profiles do to a protocol, beyond its definition.
type Effects struct {
	// by the name of a profile: the rules that the server breaks, as a driver sees it. The profiles that are not listed
	// stay within the protocol.
	Breaks map[string][]codec.RuleID
	JobKey string // the key of the job's ID in the statistics of a job; "": there are none
}

var (
	scenarios = map[*codec.Protocol]Scenario{}
	effects   = map[*codec.Protocol]Effects{}
)

// Register sets the scenario of a protocol, and what fault profiles do to it. A protocol without a scenario has no
// stress tests.
func Register(p *codec.Protocol, s Scenario, e Effects) { scenarios[p], effects[p] = s, e }

// Breaks returns the rules of a protocol that the server breaks under the profile, as a driver sees it.
func (p *FaultProfile) Breaks(protocol *codec.Protocol) []codec.RuleID {
	rules := slices.Clone(effects[protocol].Breaks[p.Name])
	if p.cuts {
		rules = append(rules, protocol.Complete)
	}
	return rules
}

// Roles returns the roles of the drivers in a protocol's scenario.
func Roles(p *codec.Protocol) []string {
	var all []string
	for _, name := range p.Roles {
		if scenarios[p][name] != nil {
			all = append(all, name)
		}
	}
	return all
}

// names contains the values of words in a scenario.
type names map[string]string

// newNames returns the values of the words that are the same for all steps and profiles, but for {9}.
func newNames() names {
	n := names{"{}": "", "{LF}": "\nx\r\n", "{CRLF}": "\r\nx\x00", "{NUL}": "\x00x\n",
		"{9}": strconv.Itoa(1e8 + rand.IntN(9e8))}
	n["unique={9}"], n["key={9}"] = "unique="+n["{9}"], "key="+n["{9}"]
	return n
}

// ownRefusal matches the answer of a driver whose library refuses a value, without asking the server.
var ownRefusal = regexp.MustCompile(`^error (usage|other)\b`)

// suffixed matches the words of scenarios that name functions, tubes or jobs: a letter and a digit, and possibly more
// text after a hyphen.
var suffixed = regexp.MustCompile(`^(?:(?:unique=|key=)?[a-z][0-9](?:-[^,]*)?,?)+$`)

// addSuffix gives the functions, tubes and jobs of a scenario names that other runs do not use.
func (n names) addSuffix(s Scenario, suffix string) {
	for _, steps := range s {
		for i := range steps {
			for _, line := range steps[i].lines() {
				for w := range strings.FieldsSeq(line) {
					if suffixed.MatchString(w) {
						n[w] = strings.ReplaceAll(w, ",", "-"+suffix+",") + "-" + suffix
					}
				}
			}
		}
	}
}

// lines returns the tasks and answers of a step and its partner.
func (s *Step) lines() []string {
	all := []string{s.Task, s.Answer, s.Again, s.Serves}
	for _, x := range s.Others {
		all = append(all, x.Task, x.Answer)
	}
	return all
}

// expand splits a line into words and replaces those that have a value.
func (n names) expand(line string) []string {
	words := strings.Fields(line)
	for i, w := range words {
		if v, ok := n[w]; ok {
			words[i] = v
		}
	}
	return words
}

// task returns a line as it is sent to a driver.
func (n names) task(line string) string {
	words := n.expand(line)
	for i, w := range words {
		words[i] = transcript.Quote(w)
	}
	return strings.Join(words, " ")
}

// fits reports whether an answer is one of the expected ones, and stores the values of the names in it.
func (n names) fits(expected, line string) bool {
	got, err := transcript.ParseWords(line)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(strings.Split(expected, " | "), func(words string) bool {
		var want []transcript.Arg
		for w := range strings.FieldsSeq(words) {
			want = append(want, n.arg(w))
		}
		return transcript.MatchWords(want, got, n, sameShare)
	})
}

// arg returns what a word of an expected answer stands for.
func (n names) arg(w string) transcript.Arg {
	_, known := n[w]
	switch {
	case w == "*":
		return transcript.Arg{Kind: transcript.Any}
	case w == "...":
		return transcript.Arg{Kind: transcript.Rest}
	case known || strings.HasPrefix(w, "$"):
		return transcript.Arg{Kind: transcript.Name, Name: w}
	}
	return transcript.Arg{Value: []byte(w)}
}

// sameShare reports whether two words are progress reports of the same fraction, such as 1/2 and 50/100.
func sameShare(a, b string) bool {
	var n, m [2]uint32
	for i, w := range []string{a, b} {
		if k, err := fmt.Sscanf(w, "%d/%d", &n[i], &m[i]); k < 2 || err != nil || w != fmt.Sprintf("%d/%d", n[i], m[i]) {
			return false
		}
	}
	return uint64(n[0])*uint64(m[1]) == uint64(n[1])*uint64(m[0])
}
