package audit

import (
	"bytes"
	"cmp"
	"context"
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

// Verdict is what became of a driver's work under a condition.
type Verdict string

// The verdicts, the best first.
const (
	Completed   Verdict = "completed"
	Failed      Verdict = "failed cleanly" // it has said so, and did the same well afterwards
	Unsupported Verdict = "unsupported"    // the driver has no way to do it: nothing is held against it
	Unrecovered Verdict = "not recovered"  // it has said so, and could do nothing any more
	Wrong       Verdict = "wrong result"
	Hung        Verdict = "hung"
	Crashed     Verdict = "crashed"
)

var verdicts = []Verdict{Unsupported, Completed, Failed, Unrecovered, Wrong, Hung, Crashed}

// StressOptions are a stress test's settings. Limit and Runs may be left out.
type StressOptions struct {
	Protocol   *codec.Protocol
	Conditions []*Condition
	Drivers    map[string]Driver                            // those under test, by their roles
	Partners   map[string]Driver                            // faultless ones, for the other side
	Start      func(context.Context) (target.Target, error) // a server of its own for each run
	Codec      codec.Options

	Limit time.Duration  // for a task; 0 is 5 s
	Boot  time.Duration  // for a driver to connect for the first time; 0 is 10 s
	Runs  int            // at a time; 0 is 4
	Done  func(*Outcome) // called for each condition of a role, one at a time
}

// Outcome is what became of a role's driver under a condition: the worst of its runs.
type Outcome struct {
	Role      string
	Condition *Condition
	Verdict   Verdict
	Note      string   // what happened, of a verdict that falls short
	Breaches  []Breach // what it said that broke a rule, in all runs
	Runs      int
	Took      time.Duration
}

// Held reports whether the driver did what may be asked of it, and broke no rule that binds it.
// What it only should do is told, and not held against it: a connection that is made anew in the middle
// of a library's work has many reasons.
func (o *Outcome) Held() bool {
	binding := func(b Breach) bool { return b.Rule.Level != codec.Should && b.Rule.Level != codec.May }
	return !slices.ContainsFunc(o.Breaches, binding) && (o.Verdict == Completed || o.Verdict == Unsupported || o.Verdict == Failed && o.Condition.Fails)
}

// Stress has each driver do its work under each condition.
func Stress(ctx context.Context, o StressOptions) ([]Outcome, error) {
	d := dialectOf(o.Protocol)
	if d == nil {
		return nil, fmt.Errorf("there are no scenarios of %s", o.Protocol.Title)
	}
	o.Limit, o.Boot, o.Runs = cmp.Or(o.Limit, 5*time.Second), cmp.Or(o.Boot, 10*time.Second), cmp.Or(o.Runs, 4)
	var all []Outcome
	for _, role := range Roles(o.Protocol) {
		if o.Drivers[role] == nil {
			continue
		}
		for _, c := range o.Conditions {
			if c.needs != nil && !c.needs(d) {
				continue
			}
			all = append(all, Outcome{Role: role, Condition: c})
		}
	}
	slots := make(chan struct{}, o.Runs)
	messages := map[string]int{}
	for _, role := range Roles(o.Protocol) {
		if o.Drivers[role] != nil && slices.ContainsFunc(o.Conditions, func(c *Condition) bool { return c.points != nil }) {
			r := newRun(&o, d, role, ConditionNamed("plain"), 0)
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
	for i := range all {
		out := &all[i]
		points := 1
		if out.Condition.points != nil {
			points = out.Condition.points(messages[out.Role])
		}
		runs := make([]*run, points)
		left := points
		for k := range runs {
			runs[k] = newRun(&o, d, out.Role, out.Condition, k)
			wg.Go(func() {
				slots <- struct{}{}
				runs[k].perform(ctx)
				<-slots
				mu.Lock()
				defer mu.Unlock()
				if runs[k].err != nil {
					failed = runs[k].err
				}
				if left--; left == 0 {
					out.sum(runs)
					if o.Done != nil {
						o.Done(out)
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
	o.Verdict, o.Note, o.Runs = worst.verdict, worst.note, len(runs)
	if len(runs) > 1 && o.Note != "" {
		o.Note = fmt.Sprintf("at point %d: %s", worst.point, o.Note)
	}
	for _, r := range runs {
		o.Took += r.took
		for _, b := range r.breaches {
			if !slices.ContainsFunc(o.Breaches, func(x Breach) bool { return x.Rule.ID == b.Rule.ID }) {
				o.Breaches = append(o.Breaches, b)
			}
		}
	}
}

// run is one life of a driver, under a condition.
type run struct {
	opts      *StressOptions
	dialect   *dialect
	role      string
	condition *Condition
	point     int  // where the condition happens, in messages
	brief     bool // it only counts messages

	auditor   *Auditor
	server    target.Target
	messages  atomic.Int64
	chances   atomic.Int64 // messages at which the condition might have happened
	ended     atomic.Bool  // a connection was ended by the condition
	met       sync.Once
	connected chan struct{}
	restarts  sync.WaitGroup

	names    names
	verdict  Verdict
	note     string
	breaches []Breach
	took     time.Duration
	err      error
}

func newRun(o *StressOptions, d *dialect, role string, c *Condition, point int) *run {
	return &run{opts: o, dialect: d, role: role, condition: c, point: point, verdict: Unsupported, connected: make(chan struct{})}
}

// happens reports whether the condition's point is reached, which it is once.
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

// perform lives the life.
func (r *run) perform(ctx context.Context) {
	begun := time.Now()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if r.server, r.err = r.opts.Start(ctx); r.err != nil {
		return
	}
	defer r.server.Stop()
	r.auditor = New(Options{Protocol: r.dialect.protocol, Codec: r.opts.Codec})
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
	for i, name := range []string{"{A}", "{B}", "{C}", "{D}"} {
		v := []byte("job-" + string('a'+rune(i)))
		if r.condition.payload != nil {
			v = r.condition.payload(r.dialect, i)
		}
		r.names[name] = string(v)
		back := bytes.Clone(v)
		slices.Reverse(back)
		r.names[strings.TrimSuffix(name, "}")+"'}"] = string(back)
	}
	acts := scenarios[r.dialect.protocol][r.role]
	done := make([]bool, len(acts))
	for i := range acts {
		a := &acts[i]
		if (a.extra || a.batch) && r.condition.Name == "large" || a.extra && (r.condition.points != nil || r.brief) || r.condition.batch && !a.batch || a.needs > 0 && (r.condition.forgets || !done[a.needs-1]) {
			continue
		}
		v, note := r.act(ctx, d, a)
		done[i] = v == Completed || v == Failed && r.condition.Fails // then it was done again
		if slices.Index(verdicts, v) > slices.Index(verdicts, r.verdict) {
			r.verdict, r.note = v, note
		}
		if v == Crashed || v == Hung {
			break
		}
	}
	if err := d.finish(); err != nil && r.verdict != Crashed && r.verdict != Hung {
		r.verdict, r.note = Crashed, "it ended badly: "+err.Error()
		if errors.Is(err, errStays) {
			r.verdict, r.note = Hung, err.Error()
		}
	}
	cancel()
	relay.Wait()
	r.breaches = r.auditor.Report().Breaches
	r.took = time.Since(begun)
}

// act has the driver do one thing, with whoever it takes to do it with.
func (r *run) act(ctx context.Context, d *driving, a *act) (Verdict, string) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	limit := r.opts.Limit
	limit *= time.Duration(cmp.Or(r.condition.patience, 1))
	told := make(chan string, 1)
	others := (<-chan string)(told)
	var partner sync.WaitGroup
	defer partner.Wait()
	defer cancel()
	if a.partner != "" && r.opts.Partners[a.partner] == nil {
		return Unsupported, "there is no " + a.partner + " to do it with"
	}
	if a.partner != "" {
		own := maps.Clone(r.names)
		partner.Go(func() { told <- r.attend(ctx, a, own) })
	}
	answer, err := d.ask(ctx, r.names.task(a.does.task), limit)
	switch {
	case err != nil:
		return d.verdict(err)
	case strings.HasPrefix(answer, "error unsupported"):
		return Unsupported, ""
	}
	said := strings.HasPrefix(answer, "error")
	right := r.names.fits(a.does.answer, answer)
	alone := a.partner == "" || r.condition.Fails && r.dialect.loses // nobody else can tell
	if right && (alone || a.serves != "") {
		return Completed, ""
	}
	if alone {
		others = nil
	}
	if right {
		wait := limit
		if r.condition.Fails {
			wait = 300 * time.Millisecond
		}
		left := newPatience(wait)
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
		if !r.condition.Fails {
			return Wrong, "it says that it has done its work, and nobody has got the result"
		}
	}
	if !said && !right {
		return Wrong, fmt.Sprintf("it answers %q by %q; due is %q", a.does.task, shortened(answer), a.does.answer)
	}
	note := fmt.Sprintf("it answers %q by %q", a.does.task, shortened(answer))
	if !r.condition.Fails {
		return Failed, note
	}
	again := cmp.Or(a.again, a.does.task)
	for range 20 {
		if next, err := d.ask(ctx, r.names.task(again), limit); err != nil {
			return d.verdict(err)
		} else if strings.HasPrefix(next, "error unsupported") { // so that it cannot be told
			return Failed, note
		} else if a.again == "" && r.names.fits(a.does.answer, next) {
			return Failed, note
		} else if a.again != "" && alone && strings.HasPrefix(next, "ok") {
			return Failed, note
		}
		select {
		case wrong := <-others:
			if a.serves == "" && wrong == "" {
				return Failed, note
			}
			return Wrong, wrong
		case <-time.After(50 * time.Millisecond):
		}
	}
	return Unrecovered, note + ", and nothing comes of trying again"
}

func shortened(s string) string {
	if len(s) > 120 {
		return s[:120] + "..."
	}
	return s
}

// attend is what the partner does meanwhile. It returns what was wrong.
func (r *run) attend(ctx context.Context, a *act, own names) string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err.Error()
	}
	var relay sync.WaitGroup
	defer relay.Wait()
	defer ln.Close()
	plain := &run{opts: r.opts, dialect: r.dialect, condition: ConditionNamed("plain"), auditor: New(Options{Protocol: r.dialect.protocol}), server: r.server, connected: make(chan struct{})}
	defer context.AfterFunc(ctx, func() { ln.Close() })()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	relay.Go(func() { plain.relay(ctx, ln) })
	for ctx.Err() == nil {
		d := r.drive(ctx, r.opts.Partners[a.partner], ln.Addr().String())
		wrong := ""
		if a.serves != "" {
			d.ask(ctx, own.task(a.serves), time.Hour)
		}
		broken := false
		for i := 0; i < len(a.others) && !broken; i++ {
			x := a.others[i]
			select { // so that the worker sleeps when the job comes
			case <-time.After(30 * time.Millisecond):
			case <-ctx.Done():
			}
			answer, err := d.ask(ctx, own.task(x.task), time.Hour)
			switch {
			case err != nil:
				broken, wrong = true, err.Error()
			case own.fits(x.answer, answer):
			case r.ended.Load() && strings.HasPrefix(answer, "error connection"): // of a restart
				broken = true
			case wrong == "": // what is left is done all the same: the worker waits for it
				wrong = fmt.Sprintf("whoever asked for %q got %q; due was %q", x.task, shortened(answer), x.answer)
			}
		}
		d.finish()
		if broken && wrong == "" || a.serves != "" {
			continue
		}
		return wrong
	}
	return ""
}
