package conform

import (
	"fmt"
	"slices"
	"sync"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/internal/verdict"
)

// inference decides which case runs next, and which cases need not run. An instance that fails because the target sends
// nothing, hangs or crashes takes long, and a server that ignores a message fails all instances with this message in
// the same way. A server that does not implement a message fails all cases about it.
type inference struct {
	after int // number of instances that must fail in the same way; 0: nothing is inferred
	mu    sync.Mutex
	left  []int // indices of the cases that were not started, the most informative ones first
	suite *Suite
	cases map[string]*sameFailures // by family
	// number of cases, without parameters, of which enough instances have failed, by key
	known    map[string]int
	messages map[*codec.Type]*reactions // what the target does when it receives a message
}

// sameFailures are the instances of a case that have failed in the same way.
type sameFailures struct {
	key     string // the kind of failure and the last message to the target
	sent    string // the type of that message, or ""
	text    string
	number  int
	running int  // number of instances that run now
	ends    bool // they crash the target or make it hang, so that the rest is inferred although other is true
	other   bool // an instance has passed, or failed in another way
}

// may reports whether the other instances may be inferred.
func (s *sameFailures) may() bool { return s.ends || !s.other }

// newInference returns the order in which the cases of a suite start. If after is greater than 0, the most informative
// cases are first, and the other instances of a case can be inferred once after of them failed in the same way.
func newInference(s *Suite, after int) *inference {
	f := &inference{
		after: after, suite: s, cases: map[string]*sameFailures{}, known: map[string]int{},
		messages: map[*codec.Type]*reactions{},
	}
	for i, c := range s.Cases {
		f.left = append(f.left, i)
		f.cases[c.Family] = &sameFailures{}
	}
	if after > 0 {
		rank := informative(s)
		slices.SortStableFunc(f.left, func(a, b int) int { return rank[a] - rank[b] })
	}
	return f
}

// next returns the index of the next case, or -1 if none is left. If the case need not run, why is the reason. next
// keeps back instances of a case until it is known whether the first ones fail slowly, unless no other case is left.
func (f *inference) next() (i int, why string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.left) == 0 {
		return -1, ""
	}
	k := max(0, slices.IndexFunc(f.left, func(i int) bool {
		one := f.cases[f.suite.Cases[i].Family]
		return f.after == 0 || !one.may() || one.running+one.number < f.enough(one) || one.number >= f.enough(one)
	}))
	i = f.left[k]
	f.left = slices.Delete(f.left, k, k+1)
	c := f.suite.Cases[i]
	one := f.cases[c.Family]
	if f.after > 0 && len(c.Params) > 0 && one.may() && one.number >= f.enough(one) && sends(c.Script, one.sent) {
		return i, fmt.Sprintf("%s of this case with the same message failed in the same way: %s", countInstances(one.number),
			one.text)
	}
	one.running++
	return i, ""
}

// enough returns the number of instances after which the others are inferred. One is sufficient if three other cases
// have failed in the same way.
func (f *inference) enough(one *sameFailures) int {
	if f.known[one.key] >= 3 {
		return 1
	}
	return f.after
}

// ended adds an instance that has run.
func (f *inference) ended(a *attempt) {
	f.mu.Lock()
	defer f.mu.Unlock()
	one := f.cases[a.Case.Family]
	one.running--
	if f.after > 0 {
		f.observe(a)
	}
	if f.after == 0 ||
		slices.Contains([]verdict.Verdict{verdict.NotRun, verdict.Inconclusive, verdict.Inferred}, a.Verdict) {
		return
	}
	now := a.slowFailure()
	switch {
	case now.key == "":
		one.other = true
		return
	case now.key == one.key:
		one.number++
	default:
		one.key, one.sent, one.text, one.ends, one.number = now.key, now.sent, now.text, now.ends, 1
	}
	if one.number == f.after || one.number == 1 && len(a.Case.Params) == 0 {
		f.known[one.key]++
	}
}

func countInstances(n int) string {
	if n == 1 {
		return "an instance"
	}
	return fmt.Sprintf("%d instances", n)
}

// slowFailure describes a failure at the end of a time limit, a crash or a hang. The key is "" if the case did not fail
// in this way, or does not crash the target when it runs alone.
func (a *attempt) slowFailure() (s sameFailures) {
	waited := a.Play != nil && a.Play.Failure != nil && a.Play.Failure.Waited > 0
	s.ends = a.Verdict == verdict.Hung || a.Verdict == verdict.Crashed && (a.Crash == nil || !a.Crash.elusive)
	if !s.ends && !(a.Verdict == verdict.Failed && waited) {
		return s
	}
	all := a.symptoms()
	if len(all) == 0 {
		return s
	}
	if t := lastRequest(a.Case, a.Play).legal(); t != nil {
		s.sent = t.Name
	}
	s.text = all[0].text
	s.key = fmt.Sprint(all[0].kind, " ", s.sent, " ", all[0].key)
	return s
}

// sends reports whether a client or worker sends a message of the named type in a script. Every script sends "".
func sends(sc *transcript.Script, name string) bool {
	return name == "" || slices.ContainsFunc(sc.Steps, func(st transcript.Step) bool {
		return st.From == codec.Peer && st.Choices[0].Type != nil && st.Choices[0].Type.Name == name
	})
}
