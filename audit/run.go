package audit

import (
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
	"jobwire/internal/transport"
	"jobwire/play"
)

// run is one run of a driver under a profile.
type run struct {
	opts        *StressOptions
	protoFaults *protocolFaults
	outcome     *Outcome // to which the run contributes
	role        string
	profile     *Profile
	point       point // where the profile takes effect

	proxy         *Proxy
	server        target.Target
	opportunities atomic.Int64           // messages at which the profile might have taken effect
	effects       atomic.Int64           // messages that the profile has changed
	fault         atomic.Pointer[string] // the fault at the point of the run; nil if the point was not reached
	ended         atomic.Bool            // the profile ended a connection
	hung          atomic.Bool            // the driver hung and is killed
	connectedOnce sync.Once
	connected     chan struct{}
	restarting    lock      // locked while the server restarts
	recording     Recording // nil if the run is not recorded

	counts   bool    // the run is for its census
	plain    *census // messages of a run without faults; nil if there was no such run
	census   census  // from this run
	censusMu sync.Mutex
	more     bool // the current step has the attribute Extra

	names       names
	tasks       int // performed tasks
	unsupported int // performed tasks that the driver does not support
	verdict     Verdict
	failures    []Failure
	failed      []*Step // the steps of these failures
	short       bool    // the driver hung within a reduced time limit
	late        bool    // the driver failed a task while the machine was late, so the failure proves nothing
	report      *Report
	took        time.Duration
	err         error
}

func newRun(o *StressOptions, d *protocolFaults, out *Outcome, at point) *run {
	return &run{
		opts: o, protoFaults: d, outcome: out, role: out.Role, profile: out.Profile, point: at,
		census: census{failed: map[*Step]bool{}}, verdict: Unsupported,
		connected: make(chan struct{}), restarting: newLock(),
	}
}

// severity orders runs by their verdicts. A higher value is worse.
func (r *run) severity() int {
	n := 2 * r.verdict.severity()
	if r.short {
		n--
	}
	return n
}

// observe records a message for the census.
func (r *run) observe(from codec.Side, t *codec.Type) {
	r.censusMu.Lock()
	defer r.censusMu.Unlock()
	r.census.seen = append(r.census.seen, occurrence{from, t, r.more})
}

// atPoint counts a message of the type, and reports whether it is the one at which the profile takes effect.
func (r *run) atPoint(t *codec.Type) bool {
	if r.point.of != nil && t != r.point.of {
		return false
	}
	return r.opportunities.Add(1)-1 == int64(r.point.message)
}

// reachedPoint reports whether the point of the run was reached.
func (r *run) reachedPoint() bool { return r.opportunities.Load() > int64(r.point.message) }

// mayFail reports whether a fault has happened after which a task may fail.
func (r *run) mayFail() bool { return r.profile.Fails && r.reachedPoint() }

func (r *run) expectEnd() { r.ended.Store(true) }

func (r *run) dial(ctx context.Context) (net.Conn, error) {
	r.restarting.wait()
	return target.Dial(ctx, r.server)
}

// restart restarts the server.
func (r *run) restart() {
	r.restarting.Lock()
	go func() {
		defer r.restarting.Unlock()
		r.server.Restart()
	}()
}

// record performs the run, and records it if the options require it.
func (r *run) record(ctx context.Context) {
	if r.opts.Record != nil {
		if r.recording, r.err = r.opts.Record(); r.err != nil {
			return
		}
	}
	r.perform(ctx)
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
	defer r.restarting.wait()
	r.proxy = &Proxy{Auditor: New(Options{Protocol: r.protoFaults.protocol, Codec: r.opts.Codec}), Dial: r.dial,
		forward: r.forward}
	r.proxy.Auditor.keep = true
	if r.recording != nil {
		r.proxy.Tap = r.recording.Add
	}
	ln, err := transport.Listen(transport.Local(r.server.Addr()), nil)
	if err != nil {
		r.err = err
		return
	}
	var conns sync.WaitGroup
	conns.Go(func() { r.proxy.Serve(ctx, ln) })
	defer conns.Wait()
	defer cancel()

	d := &driving{Driver: play.Drive(ctx, r.opts.Drivers[r.role], transport.Name(ln)), run: r}
	r.names = names{"{}": ""}
	r.names.addSuffix(scenarios[r.protoFaults.protocol], rand.Text()[:6])
	if r.profile.text { // reversed UTF-8 text is not valid text
		r.names["reverse"] = "echo"
	}
	steps := scenarios[r.protoFaults.protocol][r.role]
	done, last, previous := make([]bool, len(steps)), false, Completed
	for i := range steps {
		a := &steps[i]
		if r.omits(a) || r.point.of != nil && r.plain.failed[a] || a.Needs > 0 && (r.profile.Restarts || !done[a.Needs-1]) {
			continue
		}
		if last = r.point.of != nil && r.reachedPoint(); last && a.Needs > 0 && (r.ended.Load() || previous != Completed) {
			continue // the job or connection that this step needs may be lost
		}
		r.censusMu.Lock()
		r.more = a.Extra
		r.censusMu.Unlock()
		before := r.opts.lateness.Lost()
		r.setPayloads(r.names, a.Task, a.Answer, a.Again)
		v, note := r.step(ctx, d, a)
		if lost := r.opts.lateness.Lost() - before; lost > maxLateness &&
			(v == Failed && !r.profile.Fails || v == Unrecovered || v == Wrong) {
			r.late = true
			note += fmt.Sprintf("; this machine was busy: it lost %v during the task", lost.Round(time.Millisecond))
		}
		if r.tasks++; v == Unsupported {
			r.unsupported++
		}
		previous = v
		r.census.failed[a] = v != Completed
		done[i] = v == Completed || v == Failed && r.profile.Fails // a task that failed was repeated successfully
		task := ""
		if v.severity() > Completed.severity() {
			r.failed = append(r.failed, a)
			if task = r.names.task(a.Task); len(task) > maxPastMessage { // a large payload
				task = strings.Clone(shortened(task))
			}
		}
		r.fails(v, task, note)
		if v == Hung {
			r.hung.Store(true)
			r.outcome.hangs.note(a)
		}
		if v == Crashed || v == Hung || last {
			break
		}
	}
	switch err := d.finish(); {
	case err == nil || r.verdict == Crashed || r.verdict == Hung:
	case errors.Is(err, errNoExit):
		r.fails(Hung, "", err.Error())
	default:
		r.fails(Crashed, "", "the driver exited with an error: "+err.Error())
	}
	cancel()
	conns.Wait()
	r.report = r.proxy.Auditor.Report()
	if r.verdict == Completed && r.report.Messages[codec.Peer] == 0 {
		r.fails(Wrong, "", "the driver reported success, but sent no message")
	}
	r.took = time.Since(begun)
}

// setPayloads sets the payloads in tasks and answers. Others, which may be large, are not kept.
func (r *run) setPayloads(n names, lines ...string) {
	words := strings.Fields(strings.Join(lines, " "))
	for i, name := range []string{"A", "B", "C", "D"} {
		for _, kind := range []string{"", "'", "+" + name} {
			w := "{" + name + kind + "}"
			if !slices.Contains(words, w) {
				delete(n, w)
			} else if _, known := n[w]; !known {
				n[w] = r.payload(i, kind)
			}
		}
	}
}

// payload returns the payload of the i-th job, reversed if kind is ', or twice if it is + and the name of the job.
func (r *run) payload(i int, kind string) string {
	v := "job-" + string('a'+rune(i))
	if r.profile.payload != nil {
		v = r.profile.payload(r.protoFaults, i)
	}
	switch {
	case kind == "'" && !r.profile.text:
		return backward(v)
	case kind != "" && kind != "'":
		return v + v
	}
	return v
}

// backward returns a payload with its bytes in reverse order.
func backward(v string) string {
	var out strings.Builder // large payloads exist only once
	out.Grow(len(v))
	for v != "" {
		piece := []byte(v[max(0, len(v)-readSize):])
		v = v[:len(v)-len(piece)]
		slices.Reverse(piece)
		out.Write(piece)
	}
	return out.String()
}

// omits reports whether a step is omitted under the profile. A profile with several runs omits Extra steps, except in
// runs for a message type that occurs only in these steps.
func (r *run) omits(a *Step) bool {
	switch {
	case r.opts.omitted[a], r.profile.Restarts && a.Lasting:
		return true
	case r.profile.batch:
		return !a.Batch
	case r.profile.large():
		return a.Extra || a.Batch
	}
	return a.Extra && r.profile.points != nil && r.point.of == nil
}

// fails records the verdict on a task.
func (r *run) fails(v Verdict, task, note string) {
	if v.severity() > Completed.severity() {
		f := Failure{Verdict: v, Task: task, Note: note, Recent: r.proxy.Auditor.recent()}
		if fault := r.fault.Load(); fault != nil {
			f.Fault = *fault
		}
		r.failures = append(r.failures, f)
	}
	if v.severity() > r.verdict.severity() {
		r.verdict = v
	}
}

// A client that measures a timeout itself reports a time-out if the machine is so busy that a reply reaches it too
// late. Such a failure is not the client's. maxLateness is the time that may be lost during a task whose failure
// counts.
const maxLateness = 100 * time.Millisecond

// lastResult is how long the result of a worker may take to reach the partner after the worker has disconnected.
const lastResult = 2 * time.Second

// step makes the driver perform one step, with a partner if the step needs one.
func (r *run) step(ctx context.Context, d *driving, a *Step) (v Verdict, note string) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	limit := r.opts.Limit + a.Waits
	if r.outcome.hangs.known(a) { // the driver has already hung at this step
		limit /= 2
		defer func() { r.short = v == Hung }()
	} else {
		limit *= time.Duration(cmp.Or(r.profile.slower, 1))
	}
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
		partner.Go(func() { results <- r.runPartner(ctx, a, own) })
	}
	answer, err := d.ask(ctx, r.names.task(a.Task), limit)
	switch {
	case err != nil:
		return d.verdict(err, limit)
	case strings.HasPrefix(answer, "error unsupported"):
		return Unsupported, ""
	}
	said := strings.HasPrefix(answer, "error")
	if r.point.of != nil && a.Needs > 0 && r.reachedPoint() && (said || r.ended.Load()) {
		// Neither the correct answer nor the state of the job is known any more.
		return Failed, "the driver answered " + shortened(answer)
	}
	right := r.names.fits(a.Answer, answer)
	// there is no partner whose result could be compared
	alone := a.Partner == "" || r.mayFail() && r.protoFaults.protocol.Unowned
	if right && (alone || a.Serves != "") {
		return Completed, ""
	}
	if alone {
		others = nil
	}
	if right {
		wait := min(limit, lastResult*time.Duration(cmp.Or(r.profile.slower, 1)))
		if r.mayFail() {
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
		if !r.mayFail() {
			return Wrong, "the driver reported success, but no client received the result of the job"
		}
	}
	if !said && !right {
		return Wrong, fmt.Sprintf("expected the answer %s, got %s", shortened(r.names.task(a.Answer)), shortened(answer))
	}
	note = "the driver answered " + shortened(answer)
	if !r.mayFail() {
		return Failed, note
	}
	again := cmp.Or(a.Again, a.Task)
	for range 20 {
		if next, err := d.ask(ctx, r.names.task(again), limit); err != nil {
			v, why := d.verdict(err, limit)
			return v, note + "; the task was given again: " + why
		} else if strings.HasPrefix(next, "error unsupported") { // the result of the repetition is unknown
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

// runPartner makes the partner perform its tasks. It returns what was wrong, or "".
func (r *run) runPartner(ctx context.Context, a *Step, own names) string {
	ln, err := transport.Listen(transport.Local(r.server.Addr()), nil)
	if err != nil {
		return err.Error()
	}
	var conns sync.WaitGroup
	defer conns.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	dial := func(ctx context.Context) (net.Conn, error) { return target.Dial(ctx, r.server) }
	conns.Go(func() { new(transport.Relay).Serve(ctx, ln, dial, join) })
	for ctx.Err() == nil {
		d := &driving{Driver: play.Drive(ctx, r.opts.Partners[a.Partner], transport.Name(ln)), run: r}
		wrong := ""
		if a.Serves != "" {
			r.setPayloads(own, a.Serves)
			d.ask(ctx, own.task(a.Serves), time.Hour)
		}
		broken := false
		for i := 0; i < len(a.Others) && !broken; i++ {
			x := a.Others[i]
			r.setPayloads(own, x.Task, x.Answer)
			select { // so that the worker already sleeps when the job arrives
			case <-time.After(30 * time.Millisecond):
			case <-ctx.Done():
			}
			answer, err := d.ask(ctx, own.task(x.Task), time.Hour)
			switch {
			case err != nil:
				broken, wrong = true, err.Error()
			case own.fits(x.Answer, answer):
			case r.ended.Load() && strings.HasPrefix(answer, "error connection"): // caused by a restart
				broken = true
			case wrong == "": // the remaining tasks are still performed, because the worker waits for their jobs
				wrong = fmt.Sprintf("the task of the reference client was %s: expected the answer %s, got %s", own.task(x.Task),
					shortened(own.task(x.Answer)), shortened(answer))
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
