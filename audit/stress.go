package audit

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"jobwire/codec"
	"jobwire/internal/target"
)

// Verdict is the result of a driver under a profile.
type Verdict string

// The verdicts, the best first.
const (
	Completed   Verdict = "completed"
	Failed      Verdict = "failed cleanly" // the driver has reported an error, and did the same task afterwards
	Unsupported Verdict = "unsupported"    // the driver has no way to do it, which is not an error
	Unrecovered Verdict = "not recovered"  // the driver has reported an error, and later tasks failed, too
	Wrong       Verdict = "wrong result"
	Hung        Verdict = "hung"
	Crashed     Verdict = "crashed"
)

var verdicts = []Verdict{Unsupported, Completed, Failed, Unrecovered, Wrong, Hung, Crashed}

// StressOptions are a stress test's settings. Limit and Runs may be left out.
type StressOptions struct {
	Protocol *codec.Protocol
	Profiles []*Profile
	Drivers  map[string]Driver                            // those under test, by their roles
	Partners map[string]Driver                            // faultless ones, for the other side
	Start    func(context.Context) (target.Target, error) // a server of its own for each run
	Codec    codec.Options

	Limit time.Duration  // for a task; 0 is 5 s
	Boot  time.Duration  // for a driver to connect for the first time; 0 is 10 s
	Runs  int            // at a time; 0 is 4
	Done  func(*Outcome) // called for each profile of a role, one at a time, in the order of the result
}

// Outcome is the result of a role's driver under a profile: the worst of its runs.
type Outcome struct {
	Role     string
	Profile  *Profile
	Verdict  Verdict
	Task     string   // the task that decided the verdict, as the driver got it; "" if none did
	Note     string   // what happened, if it failed
	Recent   []Recent // the last messages before it failed
	Breaches []Breach // rules that it violated, in all runs
	Runs     int
	Took     time.Duration

	reports []*Report // of the runs
}

// Passed reports whether the driver did its tasks, and violated no rule that it must follow.
// A violation of a SHOULD rule is reported, but does not count: a library may connect again in the middle of its work
// for many reasons. Nor does a violation of what is only an interpretation, or a failure under a profile that the protocol
// does not require a library to handle.
func (o *Outcome) Passed() bool {
	binding := func(b Breach) bool {
		return b.Rule.Level != codec.Should && b.Rule.Level != codec.May && b.Rule.Level != codec.Interpretation
	}
	return o.Profile.Reported || !slices.ContainsFunc(o.Breaches, binding) && (o.Verdict == Completed || o.Verdict == Unsupported || o.Verdict == Failed && o.Profile.Fails)
}

// Stress has each driver perform its scenario under each profile.
func Stress(ctx context.Context, o StressOptions) ([]Outcome, error) {
	if len(Roles(o.Protocol)) == 0 {
		return nil, fmt.Errorf("no stress scenarios for %s", o.Protocol.Title)
	}
	d := newDialect(o.Protocol)
	o.Limit, o.Boot, o.Runs = cmp.Or(o.Limit, 5*time.Second), cmp.Or(o.Boot, 10*time.Second), cmp.Or(o.Runs, 4)
	var all []Outcome
	for _, role := range Roles(o.Protocol) {
		if o.Drivers[role] == nil {
			continue
		}
		for _, c := range o.Profiles {
			if c.needs != nil && !c.needs(d) {
				continue
			}
			all = append(all, Outcome{Role: role, Profile: c})
		}
	}
	slots := make(chan struct{}, o.Runs)
	messages := map[string]int{}
	for _, role := range Roles(o.Protocol) {
		if o.Drivers[role] != nil && slices.ContainsFunc(o.Profiles, func(c *Profile) bool { return c.points != nil }) {
			r := newRun(&o, d, role, ProfileNamed("plain"), 0)
			r.brief = true
			if r.perform(ctx); r.err != nil {
				return nil, r.err
			}
			messages[role] = int(r.messages.Load())
		}
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	var failed error
	ended, reported := make([]bool, len(all)), 0
	for i := range all {
		out := &all[i]
		points := 1
		if out.Profile.points != nil {
			points = out.Profile.points(messages[out.Role])
		}
		runs := make([]*run, points)
		left := points
		for k := range runs {
			runs[k] = newRun(&o, d, out.Role, out.Profile, k)
			slots <- struct{}{}
			wg.Go(func() {
				runs[k].perform(ctx)
				<-slots
				mu.Lock()
				defer mu.Unlock()
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
	return all, cmp.Or(ctx.Err(), failed)
}

// sum makes one outcome of runs.
func (o *Outcome) sum(runs []*run) {
	rank := func(r *run) int { return slices.Index(verdicts, r.verdict) }
	worst := slices.MaxFunc(runs, func(a, b *run) int { return cmp.Compare(rank(a), rank(b)) })
	o.Verdict, o.Task, o.Note, o.Runs, o.Recent = worst.verdict, worst.task, worst.note, len(runs), worst.recent
	if len(runs) > 1 && o.Note != "" {
		o.Note = fmt.Sprintf("repetition %d: %s", worst.point, o.Note)
	}
	for _, r := range runs {
		o.Took += r.took
		if r.report == nil {
			continue
		}
		o.reports = append(o.reports, r.report)
		for _, b := range r.report.Breaches {
			if !slices.ContainsFunc(o.Breaches, func(x Breach) bool { return x.Rule.ID == b.Rule.ID }) {
				o.Breaches = append(o.Breaches, b)
			}
		}
	}
}

// run is one run of a driver under a profile.
type run struct {
	opts    *StressOptions
	dialect *dialect
	role    string
	profile *Profile
	point   int  // where the profile happens, in messages
	brief   bool // it is done to count messages

	auditor   *Auditor
	server    target.Target
	messages  atomic.Int64
	chances   atomic.Int64 // messages at which the profile might have happened
	ended     atomic.Bool  // a connection was ended by the profile
	hung      atomic.Bool  // the driver is killed
	met       sync.Once
	connected chan struct{}
	restarts  sync.WaitGroup

	names   names
	verdict Verdict
	task    string
	note    string
	recent  []Recent
	report  *Report
	took    time.Duration
	err     error
}

func newRun(o *StressOptions, d *dialect, role string, c *Profile, point int) *run {
	return &run{opts: o, dialect: d, role: role, profile: c, point: point, verdict: Unsupported, connected: make(chan struct{})}
}

// happens reports whether the profile's point is reached, which it is once.
func (r *run) happens() bool { return r.chances.Add(1)-1 == int64(r.point) }

func (r *run) expectEnd() { r.ended.Store(true) }

func (r *run) dial(ctx context.Context) (net.Conn, error) {
	r.restarts.Wait()
	return target.Dial(ctx, r.server)
}

// restart ends the server and starts it again.
func (r *run) restart() {
	r.restarts.Add(1)
	go func() {
		defer r.restarts.Done()
		r.server.Restart()
	}()
}

// perform performs the run.
func (r *run) perform(ctx context.Context) {
	begun := time.Now()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if r.server, r.err = r.opts.Start(ctx); r.err != nil {
		return
	}
	defer r.server.Stop()
	r.auditor = New(Options{Protocol: r.dialect.protocol, Codec: r.opts.Codec})
	r.auditor.keep = true
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		r.err = err
		return
	}
	var relay sync.WaitGroup
	relay.Go(func() { r.relay(ctx, ln) })
	defer relay.Wait()
	defer ln.Close()
	defer cancel()

	d := r.drive(ctx, r.opts.Drivers[r.role], ln.Addr().String())
	r.names = names{"{}": ""}
	r.names.distinguish(scenarios[r.dialect.protocol], rand.Text()[:6])
	for i, name := range []string{"{A}", "{B}", "{C}", "{D}"} {
		v := []byte("job-" + string('a'+rune(i)))
		if r.profile.payload != nil {
			v = r.profile.payload(r.dialect, i)
		}
		r.names[name] = string(v)
		back := bytes.Clone(v)
		slices.Reverse(back)
		r.names[strings.TrimSuffix(name, "}")+"'}"] = string(back)
	}
	if r.profile.text { // bytes of text in reverse order are not text
		r.names["reverse"] = "echo"
		for _, name := range []string{"{A", "{B", "{C", "{D"} {
			r.names[name+"'}"] = r.names[name+"}"]
		}
	}
	steps := scenarios[r.dialect.protocol][r.role]
	done := make([]bool, len(steps))
	for i := range steps {
		a := &steps[i]
		if (a.Extra || a.Batch) && r.profile.Name == "large" || a.Extra && (r.profile.points != nil || r.brief) || r.profile.batch && !a.Batch || a.Needs > 0 && (r.profile.Restarts || !done[a.Needs-1]) {
			continue
		}
		v, note := r.step(ctx, d, a)
		done[i] = v == Completed || v == Failed && r.profile.Fails // then it was done again
		if slices.Index(verdicts, v) > slices.Index(verdicts, r.verdict) {
			r.verdict, r.task, r.note, r.recent = v, r.names.task(a.Task), note, r.auditor.recent()
		}
		if v == Crashed || v == Hung {
			r.hung.Store(v == Hung)
			break
		}
	}
	if err := d.finish(); err != nil && r.verdict != Crashed && r.verdict != Hung {
		r.recent = r.auditor.recent()
		r.verdict, r.task, r.note = Crashed, "", "the driver exited with an error: "+err.Error()
		if errors.Is(err, errStays) {
			r.verdict, r.note = Hung, err.Error()
		}
	}
	cancel()
	relay.Wait()
	r.report = r.auditor.Report()
	r.took = time.Since(begun)
}

// step has the driver do one step, with a partner if it needs one.
func (r *run) step(ctx context.Context, d *driving, a *Step) (Verdict, string) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	limit := r.opts.Limit + a.Waits
	limit *= time.Duration(cmp.Or(r.profile.slower, 1))
	results := make(chan string, 1)
	others := (<-chan string)(results)
	var partner sync.WaitGroup
	defer partner.Wait()
	defer cancel()
	if a.Partner != "" && r.opts.Partners[a.Partner] == nil {
		return Unsupported, "this task needs a built-in reference " + a.Partner + ", and jobwire has none for this protocol"
	}
	if a.Partner != "" {
		own := maps.Clone(r.names)
		partner.Go(func() { results <- r.attend(ctx, a, own) })
	}
	answer, err := d.ask(ctx, r.names.task(a.Task), limit)
	switch {
	case err != nil:
		return d.verdict(err, limit)
	case strings.HasPrefix(answer, "error unsupported"):
		return Unsupported, ""
	}
	said := strings.HasPrefix(answer, "error")
	right := r.names.fits(a.Answer, answer)
	alone := a.Partner == "" || r.profile.Fails && r.dialect.protocol.Unowned // there is no partner to compare with
	if right && (alone || a.Serves != "") {
		return Completed, ""
	}
	if alone {
		others = nil
	}
	if right {
		wait := limit
		if r.profile.Fails {
			wait = 300 * time.Millisecond
		}
		left := newStallTimer(wait)
		defer left.Stop()
		for over := false; !over; {
			select {
			case wrong := <-others:
				if wrong == "" {
					return Completed, ""
				}
				return Wrong, wrong
			case <-left.C:
				over = left.over()
			}
		}
		if !r.profile.Fails {
			return Wrong, "the driver reported success, but no client received the result of the job"
		}
	}
	if !said && !right {
		return Wrong, fmt.Sprintf("expected the answer %s, got %s", shortened(r.names.task(a.Answer)), shortened(answer))
	}
	note := "the driver answered " + shortened(answer)
	if !r.profile.Fails {
		return Failed, note
	}
	again := cmp.Or(a.Again, a.Task)
	for range 20 {
		if next, err := d.ask(ctx, r.names.task(again), limit); err != nil {
			return d.verdict(err, limit)
		} else if strings.HasPrefix(next, "error unsupported") { // so that it is not known
			return Failed, note
		} else if a.Again == "" && r.names.fits(a.Answer, next) {
			return Failed, note
		} else if a.Again != "" && alone && strings.HasPrefix(next, "ok") {
			return Failed, note
		}
		select {
		case wrong := <-others:
			if a.Serves == "" && wrong == "" {
				return Failed, note
			}
			return Wrong, wrong
		case <-time.After(50 * time.Millisecond):
		}
	}
	return Unrecovered, note + "; the driver tried the task again, and it failed again"
}

func shortened(s string) string {
	if len(s) > 120 {
		return s[:120] + "..."
	}
	return s
}

// attend has the partner do its part. It returns what was wrong.
func (r *run) attend(ctx context.Context, a *Step, own names) string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err.Error()
	}
	var relay sync.WaitGroup
	defer relay.Wait()
	defer ln.Close()
	plain := &run{opts: r.opts, dialect: r.dialect, profile: ProfileNamed("plain"), auditor: New(Options{Protocol: r.dialect.protocol}), server: r.server, connected: make(chan struct{})}
	defer context.AfterFunc(ctx, func() { ln.Close() })()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	relay.Go(func() { plain.relay(ctx, ln) })
	for ctx.Err() == nil {
		d := r.drive(ctx, r.opts.Partners[a.Partner], ln.Addr().String())
		wrong := ""
		if a.Serves != "" {
			d.ask(ctx, own.task(a.Serves), time.Hour)
		}
		broken := false
		for i := 0; i < len(a.Others) && !broken; i++ {
			x := a.Others[i]
			select { // so that the worker sleeps when the job comes
			case <-time.After(30 * time.Millisecond):
			case <-ctx.Done():
			}
			answer, err := d.ask(ctx, own.task(x.Task), time.Hour)
			switch {
			case err != nil:
				broken, wrong = true, err.Error()
			case own.fits(x.Answer, answer):
			case r.ended.Load() && strings.HasPrefix(answer, "error connection"): // of a restart
				broken = true
			case wrong == "": // what is left is done all the same: the worker waits for it
				wrong = fmt.Sprintf("the task of the reference client was %s: expected the answer %s, got %s", own.task(x.Task), shortened(own.task(x.Answer)), shortened(answer))
			}
		}
		d.finish()
		if broken && wrong == "" || a.Serves != "" {
			continue
		}
		return wrong
	}
	return ""
}
