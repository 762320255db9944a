package audit

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"jobwire/audit/behavior"
	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/internal/lateness"
	"jobwire/internal/target"
	"jobwire/internal/verdict"
)

// StressOptions are the options of a stress test. Limit, StartupTimeout, Runs, Done, Progress, Record and
// Omit are optional.
type StressOptions struct {
	Protocol      *codec.Protocol
	FaultProfiles []*FaultProfile
	Drivers       map[string]Driver                            // drivers under test, by role
	Partners      map[string]Driver                            // correct drivers, which act as the other side
	Start         func(context.Context) (target.Target, error) // starts a separate server for each run
	Codec         codec.Options
	Levels        Levels // the levels whose violations fail; nil: DefaultLevels

	Limit          time.Duration  // per task; 0: 5 s
	StartupTimeout time.Duration  // until the first connection of a driver; 0: 10 s
	Runs           int            // concurrent runs; 0: 4
	Done           func(*Outcome) // called after each profile of a role, one at a time, in the order of the result
	Progress       *Progress      // shows what the test is doing

	Record func() (Recording, error) // creates a recording of a run; nil if runs are not recorded

	// Omit, if it is not nil, says that the server may be wrong: tasks that a partner of the role fails on this server are
	// not given to the driver. Omit is called for each such task.
	Omit func(role string, f *Failure)

	checkProfiles bool            // check what the profiles send to the server, too
	lateness      *lateness.Meter // of this machine, while the runs take place
	faults        *protocolFaults
	omitted       map[*Step]bool
}

// Recording stores the messages between a driver and the server. Add is called like [Proxy.Tap].
type Recording interface {
	Add(conn int, from codec.Side, b []byte, what transcript.Verb)
	Discard()
}

// Outcome is the result of the driver of a role under a profile: the result of its worst run.
type Outcome struct {
	Role         string
	FaultProfile *FaultProfile
	Failure                         // failure of the worst run; contains only the verdict if the driver did not fail
	Others       []Failure          // failures of other tasks in the worst run
	BrokenRules  []BrokenRule       // rules that the driver violated, in all runs
	Injected     []BrokenRule       // rules that the server violated, after the changes of the profile
	Behavior     []behavior.Finding // in all runs
	Levels       Levels             // the levels whose violations fail; nil: DefaultLevels
	Recording    Recording          // recording of the worst run; nil if runs are not recorded
	Runs         int                // repetitions
	SkippedHung  int                // repetitions that were skipped because the driver hung too often
	Tasks        int                // number of tasks, of the run with the most tasks
	Unsupported  int                // number of these tasks that the driver does not support
	Omitted      int                // number of tasks that the driver was not given, because a partner fails them
	Took         time.Duration      // sum of the durations of all repetitions; several may be concurrent
	Unfinished   bool               // the test was interrupted before all repetitions ended
	Command      string             // what repeats the run; reports show it. Done may set it

	reports []*Report // of the runs
	hangs   *hangs
}

// Failure is a task that a driver did not complete.
type Failure struct {
	Verdict verdict.Verdict
	Task    string   // the task as the driver received it; "" if the driver failed after the last task
	Note    string   // what happened
	Fault   string   // the fault that the profile injected before; "" if it does not inject a single fault
	Recent  []Recent // the last messages before it failed
}

// Passed reports whether the driver performed its tasks and violated no rule whose level fails. Failures under a
// profile that the protocol does not require a library to handle do not count.
func (o *Outcome) Passed() bool {
	return o.FaultProfile.Reported || !o.Levels.fail(o.BrokenRules, o.Behavior) && o.completed()
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

// Inconclusive reports whether something other than the driver kept it from its tasks, and it failed none.
func (o *Outcome) Inconclusive() bool { return o.Passed() && o.Verdict == verdict.Inconclusive }

// completed reports whether the driver performed the tasks as the profile requires.
func (o *Outcome) completed() bool {
	return !o.Verdict.FailsRun() || o.Verdict == verdict.FailedCleanly && o.FaultProfile.Fails
}

// maxTries limits how often a run takes place whose driver fails a task while the machine is late. The last run counts.
// More repetitions would make a busy machine busier.
const maxTries = 2

// stress is the state of one call of [Stress].
type stress struct {
	StressOptions
	plain map[string]*census // the messages of a run without faults, by role; only if a profile needs them
	all   []Outcome
	at    [][]point     // where the profile of each outcome takes effect: one run each
	slots chan struct{} // full if Runs runs take place
	large chan struct{} // full if a run has large payloads
	runs  sync.WaitGroup

	begun int // number of outcomes whose runs have begun

	mu       sync.Mutex // guards the fields below, and all
	finished [][]*run   // of each outcome
	ended    []bool
	reported int // number of outcomes that were passed to Done
	failed   error
}

// Stress makes each driver perform its scenario under each profile. If ctx ends, it returns the outcomes whose
// runs have begun and the error of ctx.
func Stress(ctx context.Context, o StressOptions) ([]Outcome, error) {
	if len(Roles(o.Protocol)) == 0 {
		return nil, fmt.Errorf("no stress scenarios for %s", o.Protocol.Title)
	}
	o.Limit, o.StartupTimeout, o.Runs = cmp.Or(o.Limit, 5*time.Second), cmp.Or(o.StartupTimeout, 10*time.Second),
		cmp.Or(o.Runs, 4)
	o.faults = newProtocolFaults(o.Protocol)
	if o.lateness == nil {
		measured, stop := context.WithCancel(ctx)
		defer stop()
		o.lateness = lateness.Measure(measured)
	}
	s := &stress{StressOptions: o, plain: map[string]*census{}, slots: make(chan struct{}, o.Runs),
		large: make(chan struct{}, 1)}
	if err := s.calibrate(ctx); err != nil {
		return nil, err
	}
	if err := s.prepare(ctx); err != nil {
		return nil, err
	}
	for i := range s.all {
		if ctx.Err() != nil {
			break
		}
		s.begun++
		s.start(ctx, i)
	}
	s.runs.Wait()
	if ctx.Err() == nil {
		return s.all, s.failed
	}
	for i := s.reported; i < s.begun; i++ {
		if !s.ended[i] {
			s.all[i].interrupted(s.finished[i])
		}
		if s.Done != nil {
			s.Done(&s.all[i])
		}
	}
	return s.all[:s.begun], ctx.Err()
}

// prepare lists the outcomes, one for each driver and profile that applies to the protocol, and counts the messages of
// each driver without faults if a profile takes effect at certain messages.
func (s *stress) prepare(ctx context.Context) error {
	counts := slices.ContainsFunc(s.FaultProfiles, func(p *FaultProfile) bool { return p.points != nil })
	for _, role := range Roles(s.Protocol) {
		if s.Drivers[role] == nil {
			continue
		}
		for _, p := range s.FaultProfiles {
			if p.needs == nil || p.needs(s.faults) {
				out := newOutcome(role, p)
				out.Levels = s.Levels
				s.all = append(s.all, out)
			}
		}
		if !counts {
			continue
		}
		r := newPlainRun(&s.StressOptions, role)
		r.counts = true
		if r.perform(ctx); cmp.Or(ctx.Err(), r.err) != nil {
			return cmp.Or(ctx.Err(), r.err)
		}
		s.plain[role] = &r.census
	}
	s.ended, s.finished = make([]bool, len(s.all)), make([][]*run, len(s.all))
	runs := 0
	for i := range s.all {
		points := []point{{}}
		if f := s.all[i].FaultProfile.points; f != nil {
			points = f(s.plain[s.all[i].Role])
		}
		s.at = append(s.at, points)
		runs += len(points)
	}
	s.Progress.plan(runs)
	return nil
}

// start starts the runs of an outcome. The last one that ends combines them.
func (s *stress) start(ctx context.Context, i int) {
	out := &s.all[i]
	out.Omitted = s.omittedOf(out.Role)
	for k := range s.at[i] {
		if out.FaultProfile.large() { // one run at a time has large payloads
			s.large <- struct{}{}
		}
		s.slots <- struct{}{}
		s.runs.Go(func() {
			r := s.perform(ctx, i, k)
			if <-s.slots; out.FaultProfile.large() {
				<-s.large
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if ctx.Err() != nil {
				r.discard() // it may have failed only because it was interrupted
				return
			}
			if r.err != nil {
				s.failed, r.verdict = r.err, verdict.Inconclusive
				r.failures = []Failure{{Verdict: verdict.Inconclusive, Note: r.err.Error()}}
			}
			s.Progress.done()
			if s.finished[i] = append(s.finished[i], r); len(s.finished[i]) == len(s.at[i]) {
				slices.SortFunc(s.finished[i], func(x, y *run) int {
					return cmp.Compare(x.activity.Repetition, y.activity.Repetition)
				})
				out.sum(s.finished[i])
				s.Progress.ended(out)
				s.end(i)
			}
		})
	}
}

// perform performs the k-th run of the i-th outcome, and repeats it if the driver fails a task while the machine is
// late. The run that it returns did not take place if the driver has hung too often or ctx has ended.
func (s *stress) perform(ctx context.Context, i, k int) *run {
	out := &s.all[i]
	for tries := 1; ; tries++ {
		r := newRun(&s.StressOptions, out, s.at[i][k])
		r.activity.Repetition, r.activity.Repetitions = k+1, len(s.at[i])
		r.plain = s.plain[out.Role]
		if out.hangs.tooMany() || ctx.Err() != nil {
			return r
		}
		if r.record(ctx); !r.late || tries == maxTries {
			return r
		}
		r.discard()
	}
}

// end passes the i-th outcome to Done after all previous ones.
func (s *stress) end(i int) {
	for s.ended[i] = true; s.reported < len(s.all) && s.ended[s.reported]; s.reported++ {
		if s.Done != nil {
			s.Done(&s.all[s.reported])
		}
	}
}

func newOutcome(role string, p *FaultProfile) Outcome {
	return Outcome{Role: role, FaultProfile: p, hangs: new(hangs)}
}

// newPlainRun returns a run of a role without faults.
func newPlainRun(o *StressOptions, role string) *run {
	out := newOutcome(role, FaultProfileNamed("plain"))
	return newRun(o, &out, point{})
}

// calibrate performs the tasks of each role with the partner of the role, without faults, and omits the tasks that the
// partner fails. It returns an error that matches [target.ErrUnreachable] if the partner fails all of them.
func (o *StressOptions) calibrate(ctx context.Context) error {
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
		failures, err := reference.failures(ctx, role)
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
func (o *StressOptions) failures(ctx context.Context, role string) (all []Failure, err error) {
	completed, late := 0, false
	for n := range maxHangs {
		r := newPlainRun(o, role)
		r.restarts = 0
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
		switch ended := len(r.failed) > 0 && r.verdict.Stops(); {
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
		o.behaves(r.report.Behavior)
		for _, b := range r.report.BrokenRules {
			if b.By == codec.Server {
				o.Injected = addRule(o.Injected, b)
			} else {
				o.BrokenRules = addRule(o.BrokenRules, b)
			}
		}
		for _, b := range r.broken { // requests that violate a rule only after the changes of the profile
			if b.By == codec.Server || !breaks(r.report.BrokenRules, b.Rule.ID) {
				o.Injected = addRule(o.Injected, b)
			}
		}
	}
	for i, r := range runs {
		if i != worst {
			r.discard()
		}
	}
	w := runs[worst]
	o.Failure, o.Recording = Failure{Verdict: w.verdict}, w.recording
	if reported(w.verdict) {
		k := slices.IndexFunc(w.failures, func(f Failure) bool { return f.Verdict == w.verdict })
		o.Failure, o.Others = w.failures[k], slices.Delete(slices.Clone(w.failures), k, k+1)
		if w.activity.Repetitions > 1 {
			o.Note = fmt.Sprintf("repetition %d: %s", w.activity.Repetition, o.Note)
		}
	}
	if o.FaultProfile.changesMessages() && effects == 0 && o.completed() {
		o.Verdict = verdict.NotApplicable
	}
}

// interrupted combines the runs that have finished before the test was interrupted.
func (o *Outcome) interrupted(finished []*run) {
	const note = "not finished (interrupted)"
	if len(finished) > 0 {
		o.sum(finished)
	}
	if o.Unfinished = true; o.Verdict == "" || o.completed() {
		o.Failure = Failure{Verdict: verdict.Inconclusive, Note: note}
	} else {
		o.Note += "; " + note
	}
}

// addRule adds a broken rule to a list that does not contain it.
func addRule(all []BrokenRule, b BrokenRule) []BrokenRule {
	if breaks(all, b.Rule.ID) {
		return all
	}
	return append(all, b)
}

// breaks reports whether a list contains a rule.
func breaks(all []BrokenRule, id codec.RuleID) bool {
	return slices.ContainsFunc(all, func(x BrokenRule) bool { return x.Rule.ID == id })
}

// hangs contains the steps at which a driver hung under a profile.
type hangs struct {
	at sync.Map     // the steps, as *Step
	n  atomic.Int32 // number of repetitions that hung
}

// maxHangs is the number of repetitions that may hang. After that no more are started, because each takes the whole
// time limit.
const maxHangs = 5

// note records that the driver hung.
func (h *hangs) note(s *Step) {
	h.at.Store(s, true)
	h.n.Add(1)
}

// tooMany reports whether the driver hung so often that no more repetitions are needed.
func (h *hangs) tooMany() bool { return h.n.Load() >= maxHangs }

// known reports whether the driver hung at the step before.
func (h *hangs) known(s *Step) bool { _, ok := h.at.Load(s); return ok }
