package audit

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"jobwire/codec"
	"jobwire/codec/transcript"
)

// Scenario is what the drivers of a protocol are asked to do under each fault profile, by their roles.
type Scenario map[string][]Step

// Step is a task of a driver, and what a partner does meanwhile. In tasks and answers {A} to {D} are payloads, {A'} is one of
// them reversed, {A+A} is one of them twice, {} is an empty one; $NAME is bound by the answer in which it occurs first; * is any word and ... any words; |
// stands between alternatives.
type Step struct {
	Task, Answer string
	Waits        time.Duration // for how long the server makes a correct driver wait, in addition to the time limit
	Again        string        // the task that is tried after a failure; "" is the same one
	Partner      string        // the role of a reference driver; "" is none
	Serves       string        // the task that the partner performs all the time
	Others       []Exchange    // the tasks that it performs one after the other
	Batch        bool          // it does several jobs at once
	Lasting      bool          // the driver cannot learn that a server has lost its jobs: the step is left out if it restarts
	Extra        bool          // it is left out under profiles that need many runs
	Needs        int           // the step, counted from 1, without which it is not possible; 0 is none
}

// Exchange is a task and the expected answer.
type Exchange struct{ Task, Answer string }

var scenarios = map[*codec.Protocol]Scenario{}

// Register sets the scenario of a protocol. A protocol without one has no stress tests.
func Register(p *codec.Protocol, s Scenario) { scenarios[p] = s }

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

// names are the values of words in a scenario.
type names map[string]string

// named matches the words of scenarios that name functions, tubes or jobs: a letter and a digit, and possibly more after a hyphen.
var named = regexp.MustCompile(`^(?:(?:unique=|key=)?[a-z][0-9](?:-[^,]*)?,?)+$`)

// distinguish gives the functions, tubes and jobs of a scenario names that other runs do not use.
func (n names) distinguish(s Scenario, suffix string) {
	for _, steps := range s {
		for i := range steps {
			for _, line := range slices.Concat([]string{steps[i].Task, steps[i].Answer, steps[i].Again, steps[i].Serves}, steps[i].lines()) {
				for w := range strings.FieldsSeq(line) {
					if named.MatchString(w) {
						n[w] = strings.ReplaceAll(w, ",", "-"+suffix+",") + "-" + suffix
					}
				}
			}
		}
	}
}

// lines returns the tasks and answers of the partner.
func (s *Step) lines() (all []string) {
	for _, x := range s.Others {
		all = append(all, x.Task, x.Answer)
	}
	return all
}

// expand replaces the words of a line that have a value.
func (n names) expand(line string) []string {
	words := strings.Fields(line)
	for i, w := range words {
		if v, ok := n[w]; ok {
			words[i] = v
		}
	}
	return words
}

// task is a line as a driver reads it.
func (n names) task(line string) string {
	words := n.expand(line)
	for i, w := range words {
		words[i] = transcript.Quote(w)
	}
	return strings.Join(words, " ")
}

// fits reports whether an answer is one of the expected ones, and notes the values of its names.
func (n names) fits(expected, line string) bool {
	got, err := transcript.ParseWords(line)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(strings.Split(expected, " | "), func(want string) bool { return n.equal(strings.Fields(want), got) })
}

// equal reports whether the words of an answer are the expected ones.
func (n names) equal(want, got []string) bool {
	for i, w := range want {
		if rest := want[i+1:]; w == "..." {
			return len(rest) == 0 || slices.ContainsFunc(suffixes(got[min(i, len(got)):]), func(words []string) bool { return n.equal(rest, words) })
		}
		if i >= len(got) {
			return false
		}
		known, ok := n[w]
		switch {
		case w == "*":
		case strings.HasPrefix(w, "$") && !ok:
			n[w] = got[i]
		case ok && known != got[i], !ok && w != got[i] && !sameShare(w, got[i]):
			return false
		}
	}
	return len(got) == len(want)
}

// suffixes returns the words without the first 0, 1, 2, ... of them.
func suffixes(words []string) [][]string {
	var all [][]string
	for i := range words {
		all = append(all, words[i:])
	}
	return append(all, nil)
}

// sameShare reports whether two words are progress of the same share, such as 1/2 and 50/100.
func sameShare(a, b string) bool {
	var n, m [2]uint32
	for i, w := range []string{a, b} {
		if k, err := fmt.Sscanf(w, "%d/%d", &n[i], &m[i]); k < 2 || err != nil || w != fmt.Sprintf("%d/%d", n[i], m[i]) {
			return false
		}
	}
	return uint64(n[0])*uint64(m[1]) == uint64(n[1])*uint64(m[0])
}
