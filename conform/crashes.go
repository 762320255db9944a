package conform

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"jobwire/internal/crash"
	"jobwire/internal/target"
	"jobwire/internal/verdict"
)

// maxElusive is the number of equal crashes that no case alone has caused again after which no case is searched for
// further ones.
const maxElusive = 3

// crashKind are the crashes of a run that are equal, or its hangs.
type crashKind struct {
	elusive atomic.Int64 // how often no case alone has caused such a crash again
	causes  sync.Map     // the cases, without parameters, that have caused one again alone
}

// crashKind returns the kind of a crash, or that of hangs if end is nil.
func (ru *run) crashKind(end *Crash) *crashKind {
	key := "hung"
	if end != nil {
		key = cmp.Or(end.key(), end.title())
	}
	kind, _ := ru.crashes.LoadOrStore(key, new(crashKind))
	return kind.(*crashKind)
}

// isElusive reports whether the cases that notice a crash run again on the restarted server, without a search for its
// cause.
func (ru *run) isElusive(end *Crash) bool { return ru.crashKind(end).elusive.Load() >= maxElusive }

// findCause finds the case that made the server of a worker crash or hang, and restarts the server. index is the
// case that noticed it, or -1 if the server crashed after a case had ended. end is nil if the server hung. Cases are
// run again, each alone on a new server: first the one that noticed it, then those that ended shortly before, the
// last one first. The crash may be why one of them failed, so it gets the result of its second run. If none of them
// is the cause, the report names the likeliest case, and says that it is not certain. It does so for maxElusive
// equal crashes. There is no search if the case crashes a new server, or another instance of it has caused such a
// crash.
func (ru *run) findCause(w *worker, index int, end *Crash) {
	var suspects []int
	for _, c := range slices.Backward(w.recent) {
		if c.index != index {
			suspects = append(suspects, c.index)
		}
	}
	kind := ru.crashKind(end)
	w.restart()
	switch {
	case index >= 0:
		_, known := kind.causes.Load(ru.suite.Cases[index].Family)
		if ru.attempts[index].alone || known && kind.elusive.Load() == 0 {
			return
		}
		suspects = slices.Insert(suspects, 0, index)
	case kind.elusive.Load() >= maxElusive:
		return
	}
	alone := &worker{session: new(ru.session), ctx: ru.ctx}
	alone.NewServerPerCase, alone.checkTarget = true, true
	interrupted := func() bool { return ru.ctx.Err() != nil || ru.overtime() }
	for _, i := range suspects {
		if interrupted() {
			break
		}
		again := alone.runCase(ru.suite.Cases[i])
		if v := again.Verdict; v == verdict.Unreachable || v == verdict.NotRun { // no server can be started, or the run ends
			continue
		}
		cause := again.Verdict.Stops()
		if cause || i == index || ru.attempts[i].Verdict.FailsRun() { // the crash may be the reason for the failure
			again.shared = true
			ru.replace(i, index, again)
		}
		if cause {
			ru.crashKind(again.Crash).causes.Store(again.Case.Family, true)
			return
		}
	}
	if end == nil || len(suspects) == 0 || kind.elusive.Load() >= maxElusive && !interrupted() {
		return
	}
	kind.elusive.Add(1)
	i := suspects[0]
	if k := slices.IndexFunc(suspects, func(i int) bool { return ru.Profile.mayCrash(ru.suite.Cases[i]) }); k >= 0 {
		i = suspects[k]
	}
	a := ru.attempts[i]
	crash := *end
	crash.elusive = !interrupted()
	a.Verdict, a.Crash, a.late = verdict.Crashed, &crash, false
	a.Note = "the target crashed during this case or shortly after it"
	if !crash.elusive {
		a.Note += "; this was not confirmed, because the run ended: " + end.String()
	} else {
		a.Note += ", but the case does not make the target crash when it runs alone: " + end.String()
	}
	ru.replace(i, index, a)
}

// replace stores another attempt of a case. Unless it is the case that runs, its result was reported before.
func (ru *run) replace(i, running int, a attempt) {
	if ru.attempts[i] = a; i != running {
		ru.order.end(i, ru.conclude(a.Result))
	}
}

// Crash describes the end of the target's process during a case.
type Crash struct {
	Exit   string // text such as "signal: aborted" or "exit status 1"; "" if the target is not a process
	Fault  string // text of the panic, the failed assertion or the report of a sanitizer in the output; or ""
	Where  string // first function of the program on the stack in the output, with its position; or ""
	Output string // beginning of the crash report in the output or, if there is none, the last lines of the output

	bucket  string // equal for all crashes at the same place, if the output has a report
	elusive bool   // no case causes the crash when it runs alone
}

// newCrash returns the description of a crash from the error of the target.
func newCrash(err error) *Crash {
	c := &Crash{}
	var e *target.Error
	switch {
	case errors.As(err, &e):
		r := crash.Ended(e.Exit, e.Output)
		c.Exit, c.Fault, c.Where = e.Exit, r.Fault(), r.Where()
		_, c.Output = target.Excerpt(e.Output)
		if e.Err != nil {
			c.Fault, c.Where = e.Err.Error(), ""
		} else if c.Fault+c.Where != "" {
			c.bucket = r.Bucket()
		}
	case err != nil:
		c.Fault = err.Error()
	}
	return c
}

// key returns a text that is equal for crashes that probably have the same cause, or "" if only the exit is known.
func (c *Crash) key() string {
	switch {
	case c.bucket != "":
		return c.bucket
	case c.Fault != "":
		return c.Exit + ": " + crash.Normalize(c.Fault)
	}
	return ""
}

// title returns the description on one line.
func (c *Crash) title() string {
	s := "the target crashed"
	switch {
	case c.Fault != "":
		s += ": " + c.Fault
		if c.Where != "" && !strings.Contains(c.Fault, c.Where) {
			s += ", in " + c.Where
		}
	case c.Where != "":
		s += " in " + c.Where
	}
	if c.Exit != "" {
		s += " (" + c.Exit + ")"
	}
	return s
}

// String returns the description with a part of the target's output.
func (c *Crash) String() string {
	if c.Output == "" || strings.TrimSpace(c.Output) == c.Fault {
		return c.title()
	}
	return c.title() + "; output:\n" + c.Output
}
