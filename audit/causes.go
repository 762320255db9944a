package audit

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"jobwire/internal/verdict"
)

// Cause is what makes a driver fail under one or several fault profiles: the same task, or the same stack of a crash.
type Cause struct {
	Role     string          `json:"role"`
	Task     string          `json:"task"`    // of the first profile
	Verdict  verdict.Verdict `json:"verdict"` // the worst one
	Profiles []string        `json:"fault_profiles"`
	Smallest string          `json:"smallest"` // the profile that changes least
}

var (
	suffix = regexp.MustCompile(`-[A-Z2-7]{6}\b`) // of names in a run; see [names.addSuffix]
	number = regexp.MustCompile(`0x[0-9a-f]+|\d+`)
)

// keys returns what failures with the same cause have in common: the task without its payload, and the note of a crash
// without its numbers.
func (f *Failure) keys() (task, crash string) {
	words := strings.Fields(suffix.ReplaceAllString(f.Task, ""))
	task = strings.Join(words[:min(2, len(words))], " ")
	if _, stack, ok := strings.Cut(f.Note, "\n"); ok && f.Verdict == verdict.Crashed {
		crash = number.ReplaceAllString(stack, "")
	}
	return task, crash
}

// Causes groups the outcomes with a failed task by their causes, the worst first. The outcomes are in the order of
// [FaultProfiles], in which a profile changes less than most later ones.
func Causes(all []Outcome) []Cause {
	causes := []Cause{}
	at := map[[2]string]int{} // by role and key
	for i := range all {
		o := &all[i]
		if o.completed() {
			continue
		}
		task, crash := o.keys()
		k, known := at[[2]string{o.Role, task}]
		if !known && crash != "" {
			k, known = at[[2]string{o.Role, crash}]
		}
		if !known {
			k = len(causes)
			causes = append(causes, Cause{Role: o.Role, Task: task, Verdict: o.Verdict, Smallest: o.FaultProfile.Name})
		}
		at[[2]string{o.Role, task}] = k
		if crash != "" {
			at[[2]string{o.Role, crash}] = k
		}
		c := &causes[k]
		c.Profiles = append(c.Profiles, o.FaultProfile.Name)
		if o.Verdict.Severity() > c.Verdict.Severity() {
			c.Verdict = o.Verdict
		}
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
