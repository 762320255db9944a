package audit

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/internal/lateness"
	"jobwire/internal/target"
)

// Verdict is the result of a driver under a profile.
type Verdict string

// The verdicts. A higher index in verdicts is worse.
const (
	Completed   Verdict = "completed"
	Failed      Verdict = "failed cleanly" // the driver reported an error, and completed the task when it was repeated
	Unsupported Verdict = "unsupported"    // the driver cannot perform the task, which is not an error
	Unrecovered Verdict = "not recovered"  // the driver reported an error, and later tasks failed, too
	Wrong       Verdict = "wrong result"
	Hung        Verdict = "hung"
	Crashed     Verdict = "crashed"

	// NotApplicable is the verdict if the profile changed nothing that a correct driver receives.
	NotApplicable Verdict = "not applicable"
)

var verdicts = []Verdict{NotApplicable, Unsupported, Completed, Failed, Unrecovered, Wrong, Hung, Crashed}

// StressOptions are the options of a stress test. Limit, StartupTimeout, Runs, Done, Record and Omit are optional.
type StressOptions struct {
	Protocol *codec.Protocol
	Profiles []*Profile
	Drivers  map[string]Driver                            // drivers under test, by role
	Partners map[string]Driver                            // correct drivers, which act as the other side
	Start    func(context.Context) (target.Target, error) // starts a separate server for each run
	Codec    codec.Options

	Limit          time.Duration  // per task; 0: 5 s
	StartupTimeout time.Duration  // until the first connection of a driver; 0: 10 s
	Runs           int            // concurrent runs; 0: 4
	Done           func(*Outcome) // called after each profile of a role, one at a time, in the order of the result

	Record func() (Recording, error) // creates a recording of a run; nil if runs are not recorded

	// Omit, if it is not nil, says that the server may be wrong: tasks that a partner of the role fails on this server are
	// not given to the driver. Omit is called for each such task.
	Omit func(role string, f *Failure)

	lateness *lateness.Meter // of this machine, while the runs take place
	omitted  map[*Step]bool
}

// Recording stores the messages between a driver and the server. Add is called like [Proxy.Tap].
type Recording interface {
	Add(conn int, from codec.Side, b []byte, what transcript.Verb)
	Discard()
}

// Outcome is the result of the driver of a role under a profile: the result of its worst run.
type Outcome struct {
	Role        string
	Profile     *Profile
	Failure                   // failure of the worst run; contains only the verdict if the driver did not fail
	Others      []Failure     // failures of other tasks in the worst run
	Breaches    []BrokenRule  // rules that the driver violated, in all runs
	Recording   Recording     // recording of the worst run; nil if runs are not recorded
	Runs        int           // repetitions
	SkippedHung int           // repetitions that were skipped because the driver hung too often
	Tasks       int           // number of tasks, of the run with the most tasks
	Unsupported int           // number of these tasks that the driver does not support
	Omitted     int           // number of tasks that the driver was not given, because a partner fails them
	Took        time.Duration // sum of the durations of all repetitions; several may be concurrent

	reports []*Report // of the runs
	hangs   *hangs
}

// Failure is a task that a driver did not complete.
type Failure struct {
	Verdict Verdict
	Task    string   // the task as the driver received it; "" if the driver failed after the last task
	Note    string   // what happened
	Fault   string   // the fault that the profile injected before; "" if it does not inject a single fault
	Recent  []Recent // the last messages before it failed
}

// Passed reports whether the driver performed its tasks and violated no mandatory rule. Violations of SHOULD and MAY
// rules do not count: for example, a library may have many reasons to connect again in the middle of its work. Neither
// do violations of interpretations, or failures under a profile that the protocol does not require a library to handle.
func (o *Outcome) Passed() bool {
	binding := func(b BrokenRule) bool {
		return b.Rule.Level != codec.Should && b.Rule.Level != codec.May && b.Rule.Level != codec.Interpretation
	}
	return o.Profile.Reported || !slices.ContainsFunc(o.Breaches, binding) && o.completed()
}

// Untested reports whether the driver sent no message, so that nothing was checked.
func (o *Outcome) Untested() bool {
	return !slices.ContainsFunc(o.reports, func(r *Report) bool { return r.Messages[codec.Peer] > 0 })
}

// UntestedRoles returns the roles whose drivers sent no message in any run, in the order of the outcomes.
func UntestedRoles(all []Outcome) (roles []string) {
	for i := range all {
		role := all[i].Role
		tested := slices.ContainsFunc(all, func(o Outcome) bool { return o.Role == role && !o.Untested() })
		if !tested && !slices.Contains(roles, role) {
			roles = append(roles, role)
		}
	}
	return roles
}

// completed reports whether the driver performed the tasks as the profile requires.
func (o *Outcome) completed() bool {
	switch o.Verdict {
	case NotApplicable, Unsupported, Completed:
		return true
	}
	return o.Verdict == Failed && o.Profile.Fails
}

// maxTries limits how often a run takes place whose driver fails a task while the machine is late. The last run counts.
// More repetitions would make a busy machine busier.
const maxTries = 2

// Stress makes each driver perform its scenario under each profile. If ctx ends, it returns the outcomes that are
// complete and the error of ctx.
func Stress(ctx context.Context, o StressOptions) ([]Outcome, error) {
	if len(Roles(o.Protocol)) == 0 {
		return nil, fmt.Errorf("no stress scenarios for %s", o.Protocol.Title)
	}
	d := newProtocolFaults(o.Protocol)
	o.Limit, o.StartupTimeout, o.Runs = cmp.Or(o.Limit, 5*time.Second), cmp.Or(o.StartupTimeout, 10*time.Second),
		cmp.Or(o.Runs, 4)
	var all []Outcome
	for _, role := range Roles(o.Protocol) {
		if o.Drivers[role] == nil {
			continue
		}
		for _, c := range o.Profiles {
			if c.needs != nil && !c.needs(d) {
				continue
			}
			all = append(all, Outcome{Role: role, Profile: c, hangs: &hangs{at: map[*Step]bool{}}})
		}
	}
	if o.lateness == nil {
		measured, stop := context.WithCancel(ctx)
		defer stop()
		o.lateness = lateness.Measure(measured)
	}
	if err := o.calibrate(ctx, d); err != nil {
		return nil, err
	}
	slots, large := make(chan struct{}, o.Runs), make(chan struct{}, 1)
	counted := map[string]*census{}
	for _, role := range Roles(o.Protocol) {
		if o.Drivers[role] != nil && slices.ContainsFunc(o.Profiles, func(c *Profile) bool { return c.points != nil }) {
			r := newPlainRun(&o, d, role)
			r.counts = true
			if r.perform(ctx); cmp.Or(ctx.Err(), r.err) != nil {
				return nil, cmp.Or(ctx.Err(), r.err)
			}
			counted[role] = &r.census
		}
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	var failed error
	ended, reported := make([]bool, len(all)), 0
	for i := range all {
		if ctx.Err() != nil {
			break
		}
		out := &all[i]
		out.Omitted = o.omittedOf(out.Role)
		points := []point{{}}
		if out.Profile.points != nil {
			points = out.Profile.points(counted[out.Role])
		}
		runs := make([]*run, len(points))
		left := len(points)
		for k := range runs {
			runs[k] = newRun(&o, d, out, points[k])
			runs[k].plain = counted[out.Role]
			if out.Profile.large() { // one run at a time has large payloads
				large <- struct{}{}
			}
			slots <- struct{}{}
			wg.Go(func() {
				for tries := 1; !out.hangs.tooMany() && ctx.Err() == nil; tries++ {
					runs[k].record(ctx)
					if !runs[k].late || tries == maxTries {
						break
					}
					if runs[k].recording != nil {
						runs[k].recording.Discard()
					}
					runs[k] = newRun(&o, d, out, points[k])
					runs[k].plain = counted[out.Role]
				}
				if <-slots; out.Profile.large() {
					<-large
				}
				mu.Lock()
				defer mu.Unlock()
				if ctx.Err() != nil {
					if runs[k].recording != nil {
						runs[k].recording.Discard()
					}
					return // the run may have failed only because it was interrupted
				}
				if runs[k].err != nil {
					failed = runs[k].err
				}
				if left--; left > 0 {
					return
				}
				out.sum(runs)
				for ended[i] = true; reported < len(all) && ended[reported]; reported++ {
					if o.Done != nil {
						o.Done(&all[reported])
					}
				}
			})
		}
	}
	wg.Wait()
	if ctx.Err() != nil {
		complete := all[:reported:reported]
		for i := reported; i < len(all); i++ {
			if ended[i] {
				if complete = append(complete, all[i]); o.Done != nil {
					o.Done(&all[i])
				}
			}
		}
		return complete, ctx.Err()
	}
	return all, failed
}

// newPlainRun returns a run of a role without faults.
func newPlainRun(o *StressOptions, d *protocolFaults, role string) *run {
	out := &Outcome{Role: role, Profile: ProfileNamed("plain"), hangs: &hangs{at: map[*Step]bool{}}}
	return newRun(o, d, out, point{})
}

// calibrate performs the tasks of each role with the partner of the role, without faults, and omits the tasks that the
// partner fails. It returns an error that matches [target.ErrUnreachable] if the partner fails all of them.
func (o *StressOptions) calibrate(ctx context.Context, d *protocolFaults) error {
	o.omitted = map[*Step]bool{}
	if o.Omit == nil {
		return nil
	}
	reference := *o
	reference.Drivers, reference.Record = o.Partners, nil
	for _, role := range Roles(o.Protocol) {
		if o.Drivers[role] == nil || o.Partners[role] == nil {
			continue
		}
		failures, err := reference.failures(ctx, d, role)
		if err != nil {
			return err
		}
		for i := range failures {
			o.Omit(role, &failures[i])
		}
	}
	return nil
}

// failures performs the tasks of a role without faults, omits those that the driver fails, and returns the failures. A
// task at which the driver hangs or crashes ends its run, so the other tasks are performed again. If that happens
// maxHangs times, all tasks are omitted. A run during which the machine was late proves nothing the first time.
func (o *StressOptions) failures(ctx context.Context, d *protocolFaults, role string) (all []Failure, err error) {
	completed, late := 0, false
	for n := range maxHangs {
		r := newPlainRun(o, d, role)
		if r.perform(ctx); cmp.Or(ctx.Err(), r.err) != nil {
			return nil, cmp.Or(ctx.Err(), r.err)
		}
		if r.late && !late {
			late = true
			continue
		}
		completed += r.tasks - r.unsupported - len(r.failed)
		for i, a := range r.failed {
			o.omitted[a] = true
			all = append(all, r.failures[i])
		}
		switch ended := len(r.failed) > 0 && (r.verdict == Hung || r.verdict == Crashed); {
		case ended && n < maxHangs-1:
			continue
		case completed == 0 && len(all) > 0:
			return nil, &target.Error{Target: r.server.String(),
				Reason: fmt.Sprintf("cannot be used as a server of %s: the reference %s fails every task, such as %s: %s",
					o.Protocol.Title, role, all[0].Task, all[0].Note)}
		case ended:
			all = append(all, Failure{Task: "all others", Note: fmt.Sprintf("it has hung or crashed %d times", maxHangs)})
			steps := scenarios[o.Protocol][role]
			for i := range steps {
				o.omitted[&steps[i]] = true
			}
		}
		break
	}
	return all, nil
}

// omittedOf returns the number of omitted tasks of a role.
func (o *StressOptions) omittedOf(role string) (n int) {
	steps := scenarios[o.Protocol][role]
	for i := range steps {
		if o.omitted[&steps[i]] {
			n++
		}
	}
	return n
}

// sum combines runs into one outcome.
func (o *Outcome) sum(runs []*run) {
	worst, effects := 0, int64(0)
	for i, r := range runs {
		if r.severity() > runs[worst].severity() {
			worst = i
		}
		if o.Runs++; r.took == 0 {
			o.Runs--
			o.SkippedHung++
		}
		if r.tasks > o.Tasks {
			o.Tasks, o.Unsupported = r.tasks, r.unsupported
		}
		effects += r.effects.Load()
		o.Took += r.took
		if r.report == nil {
			continue
		}
		o.reports = append(o.reports, r.report)
		for _, b := range r.report.BrokenRules {
			if !slices.ContainsFunc(o.Breaches, func(x BrokenRule) bool { return x.Rule.ID == b.Rule.ID }) {
				o.Breaches = append(o.Breaches, b)
			}
		}
	}
	for i, r := range runs {
		if r.recording != nil && i != worst {
			r.recording.Discard()
		}
	}
	w := runs[worst]
	o.Failure, o.Recording = Failure{Verdict: w.verdict}, w.recording
	if w.verdict.severity() > Completed.severity() {
		k := slices.IndexFunc(w.failures, func(f Failure) bool { return f.Verdict == w.verdict })
		o.Failure, o.Others = w.failures[k], slices.Delete(slices.Clone(w.failures), k, k+1)
		if len(runs) > 1 {
			o.Note = fmt.Sprintf("repetition %d: %s", worst+1, o.Note)
		}
	}
	if o.Profile.changesMessages() && effects == 0 && o.completed() {
		o.Verdict = NotApplicable
	}
}

// severity orders verdicts. A higher value is worse.
func (v Verdict) severity() int { return slices.Index(verdicts, v) }

// hangs contains the steps at which a driver hung under a profile.
type hangs struct {
	mu sync.Mutex
	at map[*Step]bool
	n  int
}

// maxHangs is the number of repetitions that may hang. After that no more are started, because each takes the whole
// time limit.
const maxHangs = 5

// note records that the driver hung.
func (h *hangs) note(s *Step) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.at[s] = true
	h.n++
}

// tooMany reports whether the driver hung so often that no more repetitions are needed.
func (h *hangs) tooMany() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.n >= maxHangs
}

// known reports whether the driver hung at the step before.
func (h *hangs) known(s *Step) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.at[s]
}
