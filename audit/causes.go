package audit

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"jobwire/internal/verdict"
)

// Cause is what makes a driver fail under one or several fault profiles: the same task with the same kind of answer and
// the same last message, or the same stack of a crash.
type Cause struct {
	Role     string          `json:"role"`
	Task     string          `json:"task"` // of the first profile
	Verdict  verdict.Verdict `json:"verdict"`
	Profiles []string        `json:"fault_profiles"`
	Smallest string          `json:"smallest"` // the profile that changes least
}

var (
	suffix     = regexp.MustCompile(`-[A-Z2-7]{6}\b`)                          // of names in a run; see [names.addSuffix]
	number     = regexp.MustCompile(`(\.[a-z]+:\d+|line \d+)|0x[0-9a-f]+|\d+`) // except lines of source
	repetition = regexp.MustCompile(`^repetition \d+: `)
	values     = regexp.MustCompile(`(?s)\b(ok) .*?(, got |: the first |$)`) // of an answer: a payload, for example
	given      = regexp.MustCompile(`(?s)(the task of the reference client was) .*?(: expected )`)
)

// task returns the task of a failure without its payload.
func (f *Failure) task() string {
	words := strings.Fields(suffix.ReplaceAllString(f.Task, ""))
	return strings.Join(words[:min(2, len(words))], " ")
}

// cause returns what failures with the same cause have in common. Payloads and numbers differ between profiles.
func (f *Failure) cause() string {
	if _, stack, ok := strings.Cut(f.Note, "\n"); ok && f.Verdict == verdict.Crashed {
		return number.ReplaceAllString(stack, "$1")
	}
	note := repetition.ReplaceAllString(suffix.ReplaceAllString(f.Note, ""), "")
	note = values.ReplaceAllString(given.ReplaceAllString(note, "$1$2"), "$1$2")
	last := ""
	if n := len(f.Recent); n > 0 {
		last = fmt.Sprint(f.Recent[n-1].Frame.From, typeName(f.Recent[n-1].Frame.Type))
	}
	return strings.Join([]string{string(f.Verdict), f.task(), number.ReplaceAllString(note, "$1"), last}, "\n")
}

// Causes groups the outcomes with a failed task by their causes, the worst first. The outcomes are in the order of
// [FaultProfiles], in which a profile changes less than most later ones.
func Causes(all []Outcome) []Cause {
	causes := []Cause{}
	at := map[[2]string]int{} // by role and cause
	for i := range all {
		o := &all[i]
		if o.completed() {
			continue
		}
		key := [2]string{o.Role, o.cause()}
		k, known := at[key]
		if !known {
			k, at[key] = len(causes), len(causes)
			causes = append(causes, Cause{Role: o.Role, Task: o.task(), Verdict: o.Verdict, Smallest: o.FaultProfile.Name})
		}
		causes[k].Profiles = append(causes[k].Profiles, o.FaultProfile.Name)
	}
	slices.SortStableFunc(causes, func(x, y Cause) int { return cmp.Compare(y.Verdict.Severity(), x.Verdict.Severity()) })
	return causes
}

// appendCauses appends the causes that several profiles show.
func appendCauses(dst []byte, all []Outcome) []byte {
	for _, c := range Causes(all) {
		if len(c.Profiles) > 1 {
			dst = fmt.Appendf(dst, "one cause under %d fault profiles: %s, %s: %s; the smallest is %s: %s\n",
				len(c.Profiles), c.Role, cmp.Or(c.Task, "after the last task"), c.Verdict, c.Smallest,
				strings.Join(c.Profiles, " "))
		}
	}
	return dst
}
