package audit

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/internal/target"
	"jobwire/internal/transport"
	"jobwire/internal/verdict"
	"jobwire/play"
)

// run is one run of a driver under a fault profile.
type run struct {
	opts    *StressOptions
	outcome *Outcome // to which the run contributes
	injection
	result

	proxy         *Proxy
	beyond        *Auditor // checks what reaches the server, and what it sends; nil: not checked
	server        target.Target
	hung          atomic.Bool // the driver hung and is killed
	connectedOnce sync.Once
	connected     chan struct{}
	restarting    lock      // locked while the server restarts
	recording     Recording // nil if the run is not recorded

	restarts int     // how often a driver that has ended or hangs may be started again
	counts   bool    // the run is for its census
	plain    *census // messages of a run without faults; nil if there was no such run
	census   census  // from this run
	names    names
	activity Activity
}

// injection is what a fault profile does in a run.
type injection struct {
	protoFaults   *protocolFaults
	profile       *FaultProfile
	point         point                  // where the profile takes effect
	opportunities atomic.Int64           // messages at which the profile might have taken effect
	effects       atomic.Int64           // messages that the profile has changed
	fault         atomic.Pointer[string] // the fault at the point of the run; nil if the point was not reached
	ended         atomic.Bool            // the profile ended a connection
	down          atomic.Int64           // the server cannot be reached until then, in nanoseconds since 1970
}

// result is what a run shows about the driver.
type result struct {
	tasks       int // performed tasks
	unsupported int // performed tasks that the driver does not support
	verdict     verdict.Verdict
	failures    []Failure
	failed      []*Step      // the steps of these failures
	short       bool         // the driver hung within a reduced time limit
	late        bool         // the driver failed a task while the machine was late, so the failure proves nothing
	stops       atomic.Int64 // see [target.WithStops]
	report      *Report
	broken      []BrokenRule // rules that messages between the profile and the server violate
	took        time.Duration
	err         error
}

// newRun returns a run of the fault profile of out, whose fault takes effect at a point.
func newRun(o *StressOptions, out *Outcome, at point) *run {
	return &run{
		opts: o, outcome: out, injection: injection{protoFaults: o.faults, profile: out.FaultProfile, point: at},
		result: result{verdict: verdict.Unsupported}, census: census{failed: map[*Step]bool{}},
		connected: make(chan struct{}), restarting: newLock(), restarts: maxHangs,
		activity: Activity{Role: out.Role, Profile: out.FaultProfile, Repetition: 1, Repetitions: 1},
	}
}

// severity orders results by their verdicts. A higher value is worse.
func (r *result) severity() int {
	n := 2 * r.verdict.Severity()
	if r.short {
		n--
	}
	return n
}

// atPoint counts a message of the type, and reports whether it is the one at which the profile takes effect.
func (i *injection) atPoint(t *codec.Type) bool {
	if i.point.of != nil && t != i.point.of {
		return false
	}
	return i.opportunities.Add(1)-1 == int64(i.point.message)
}

// reachedPoint reports whether the point of the run was reached.
func (i *injection) reachedPoint() bool { return i.opportunities.Load() > int64(i.point.message) }

// reachedType reports whether the profile has taken effect at a message of the type that the run is for.
func (i *injection) reachedType() bool { return i.point.of != nil && i.reachedPoint() }

// mayFail reports whether a fault has happened after which a task may fail.
func (i *injection) mayFail() bool { return i.profile.Fails && i.reachedPoint() }

func (r *run) dial(ctx context.Context) (net.Conn, error) {
	r.restarting.wait()
	if time.Now().UnixNano() < r.down.Load() {
		return nil, errOutage
	}
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

// discard discards the recording of the run, if there is one.
func (r *run) discard() {
	if r.recording != nil {
		r.recording.Discard()
	}
}

// perform performs the run.
func (r *run) perform(ctx context.Context) {
	begun := time.Now()
	defer r.opts.Progress.begins(&r.activity)()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if r.server, r.err = r.opts.Start(ctx); r.err != nil {
		return
	}
	defer r.server.Stop()
	defer r.restarting.wait()
	checks := Options{Protocol: r.protoFaults.protocol, Codec: r.opts.Codec, Server: true}
	r.proxy = &Proxy{Auditor: New(checks), Dial: r.dial, forward: r.forward}
	r.proxy.Auditor.keep = true
	if r.opts.checkProfiles {
		r.beyond = New(checks)
	}
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

	driven := target.WithStops(r.proxy.Auditor.Watching(ctx), &r.stops)
	start := func() *driving {
		return &driving{Driver: play.Drive(driven, r.opts.Drivers[r.outcome.Role], transport.Name(ln)), run: r}
	}
	r.names = newNames()
	r.names.addSuffix(scenarios[r.protoFaults.protocol], rand.Text()[:6])
	if r.profile.text { // reversed UTF-8 text is not valid text
		r.names["reverse"] = "echo"
	}
	d, gone := r.performSteps(driven, start)
	switch err := d.finish(); {
	case err == nil || gone:
	case errors.Is(err, errNoExit):
		r.fails(verdict.Inconclusive, "", err.Error())
	default:
		v, note := crash(err)
		r.fails(v, "", note)
	}
	cancel()
	conns.Wait()
	r.report = r.proxy.Auditor.Report()
	r.excuse()
	if r.beyond != nil {
		r.broken = r.beyond.Report().BrokenRules
	}
	if r.verdict == verdict.Completed && r.report.Messages[codec.Peer] == 0 {
		r.fails(verdict.WrongResult, "", "the driver reported success, but sent no message")
	}
	if text := r.report.Incomplete(); text != "" {
		r.fails(verdict.Inconclusive, "", text)
	}
	r.took = time.Since(begun)
}

// performSteps makes the driver perform the steps of its role, to the step that reaches the message type that the run
// is for. A driver that has ended or hangs is started again for the next step, without those that need an earlier one.
// performSteps returns the last driver, and whether it has ended or hangs.
func (r *run) performSteps(ctx context.Context, start func() *driving) (d *driving, gone bool) {
	d = start()
	first := 0 // the first step of this driver
	steps := scenarios[r.protoFaults.protocol][r.outcome.Role]
	done, previous := make([]bool, len(steps)), verdict.Completed
	for i := range steps {
		step := &steps[i]
		if r.omits(step) || step.Needs > 0 && (r.profile.Restarts || step.Needs-1 < first || !done[step.Needs-1]) {
			continue
		}
		if gone {
			if r.restarts == 0 || r.outcome.hangs.tooMany() || ctx.Err() != nil {
				break
			}
			r.restarts--
			d.end()
			r.proxy.Drain(lastResult)
			r.hung.Store(false)
			d, first, gone = start(), i, false
			d.again = true
		}
		last := r.reachedType()
		if last && step.Needs > 0 && (r.ended.Load() || r.profile.misleading || previous != verdict.Completed) {
			continue // the job or connection that this step needs may be lost, or not be as the step expects
		}
		r.census.begin(step)
		before, stops := r.opts.lateness.Lost(), r.stops.Load()
		r.setPayloads(r.names, step.Task, step.Answer, step.Again)
		r.opts.Progress.task(&r.activity, step.Task)
		v, note := r.step(ctx, d, step)
		failedCleanly := v == verdict.FailedCleanly && r.profile.Fails // and was repeated successfully
		switch lost := r.opts.lateness.Lost() - before; {
		case !v.FailsRun() || failedCleanly:
		case lost > maxLateness && !v.Stops():
			v, r.late = verdict.Inconclusive, true
			note += fmt.Sprintf("; this machine was busy: it lost %v during the task", lost.Round(time.Millisecond))
		case r.stops.Load() > stops && v != verdict.Crashed:
			v, r.late = verdict.Inconclusive, true
			note += "; a signal had stopped the process of the driver during the task"
		}
		r.add(step, v, note)
		previous, done[i] = v, v == verdict.Completed || failedCleanly
		if gone = v.Stops() || d.exited(); last {
			break
		}
	}
	return d, gone
}

// add adds the result of a step.
func (r *run) add(step *Step, v verdict.Verdict, note string) {
	if r.tasks++; v == verdict.Unsupported {
		r.unsupported++
	}
	r.census.failed[step] = v != verdict.Completed
	r.rate(step, v, note)
	if v == verdict.Hung {
		r.hung.Store(true)
		r.outcome.hangs.note(step)
	}
}

// rate records a verdict on a step.
func (r *run) rate(step *Step, v verdict.Verdict, note string) {
	task := ""
	if reported(v) {
		r.failed = append(r.failed, step)
		if task = r.names.task(step.Task); len(task) > maxPastMessage { // a large payload
			task = strings.Clone(shortened(task))
		}
	}
	r.fails(v, task, note)
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
func (r *run) omits(s *Step) bool {
	switch {
	case r.opts.omitted[s], r.point.of != nil && r.plain.failed[s], r.profile.Restarts && s.Lasting:
		return true
	case r.profile.batch:
		return !s.Batch
	case r.profile.large():
		return s.Extra || s.Batch
	}
	return s.Extra && r.profile.points != nil && r.point.of == nil
}

// fails records the verdict on a task.
func (r *run) fails(v verdict.Verdict, task, note string) {
	if reported(v) {
		f := Failure{Verdict: v, Task: task, Note: note, Recent: r.proxy.Auditor.recent()}
		if fault := r.fault.Load(); fault != nil {
			f.Fault = *fault
		}
		r.failures = append(r.failures, f)
	}
	if v.Severity() > r.verdict.Severity() {
		r.verdict = v
	}
}

// reported reports whether a verdict has an explanation in the report.
func reported(v verdict.Verdict) bool { return v.FailsRun() || v == verdict.Inconclusive }

// A client that measures a timeout itself reports a time-out if the machine is so busy that a reply reaches it too
// late. Such a failure is not the client's. maxLateness is the time that may be lost during a task whose failure
// counts.
const maxLateness = 100 * time.Millisecond

// lastResult is how long the result of a worker may take to reach the partner after the worker has disconnected.
const lastResult = 2 * time.Second

// step makes the driver perform one step, with a partner if the step needs one.
func (r *run) step(ctx context.Context, d *driving, s *Step) (v verdict.Verdict, note string) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	limit := r.opts.Limit + s.Waits
	if r.outcome.hangs.known(s) { // the driver has already hung at this step
		limit /= 2
		defer func() { r.short = v == verdict.Hung }()
	} else {
		limit *= r.slower()
	}
	results := make(chan string, 1)
	var partner sync.WaitGroup
	defer partner.Wait()
	defer cancel()
	if s.Partner != "" && r.opts.Partners[s.Partner] == nil {
		return verdict.Unsupported, "this task needs a built-in reference " + s.Partner +
			", and jobwire has none for this protocol"
	}
	if s.Partner != "" {
		own := maps.Clone(r.names)
		partner.Go(func() { results <- r.runPartner(ctx, s, own) })
	}
	r.proxy.Auditor.task(s)
	sent := r.proxy.Auditor.sent()
	answer, err := d.ask(ctx, r.names.task(s.Task), limit)
	switch {
	case err != nil:
		return d.verdict(err, limit)
	case strings.HasPrefix(answer, "error unsupported"):
		return verdict.Unsupported, ""
	}
	refused := strings.HasPrefix(answer, "error")
	if s.MayRefuse && refused && (ownRefusal.MatchString(answer) || r.proxy.Auditor.sent() == sent) {
		return verdict.Unsupported, ""
	}
	return r.assess(ctx, d, s, answer, results, limit)
}

// assess returns the verdict on an answer of the driver. If the task may be performed again after a fault, it makes the
// driver do so. results is the result of the partner.
func (r *run) assess(ctx context.Context, d *driving, s *Step, answer string, results <-chan string,
	limit time.Duration) (v verdict.Verdict, note string) {
	refused := strings.HasPrefix(answer, "error")
	note = "the driver answered " + shortened(answer)
	if strings.HasPrefix(s.Answer, "error") { // another error
		note = difference(r.names.task(s.Answer), answer)
	}
	right := r.names.fits(s.Answer, answer)
	switch reached := r.reachedType() && s.Needs > 0; {
	case reached && refused && !right:
		return verdict.FailedCleanly, note
	case reached && r.ended.Load(): // neither the correct answer nor the state of the job is known any more
		return verdict.Completed, ""
	}
	if id := r.proxy.Auditor.newJob(); right && !answersID(s.Answer, answer, id) {
		// The tasks about this job are performed with the wrong ID.
		r.rate(s, verdict.WrongResult, fmt.Sprintf("the server created job %s; the driver answered %s", id,
			shortened(answer)))
	}
	if wrong := r.proxy.Auditor.strayed(); wrong != "" && !r.mayFail() {
		return verdict.WrongResult, wrong
	}
	// there is no partner whose result could be compared
	alone := s.Partner == "" || r.mayFail() && r.protoFaults.protocol.Unowned
	if right && (alone || s.Serves != "") {
		return verdict.Completed, ""
	}
	if right {
		switch wrong, ended := r.awaitPartner(results, limit); {
		case ended && wrong == "":
			return verdict.Completed, ""
		case ended:
			return verdict.WrongResult, wrong
		case !r.mayFail():
			return verdict.WrongResult, "the driver reported success, but no client received the result of the job"
		}
	}
	switch {
	case !refused && !right:
		return verdict.WrongResult, difference(r.names.task(s.Answer), answer)
	case !r.mayFail():
		return verdict.FailedCleanly, note
	case alone:
		return r.repeat(ctx, d, s, nil, limit, note)
	}
	return r.repeat(ctx, d, s, results, limit, note)
}

// answersID reports whether an answer has the ID of a new job, if its only word is an ID. A driver whose library does
// not return the ID answers with an empty word; a library may put the address of the server before a name.
func answersID(expected, answer, id string) bool {
	words, err := transcript.ParseWords(answer)
	if err != nil || id == "" || len(words) != 2 || words[0] != "ok" || !onlyID.MatchString(expected) {
		return true
	}
	got := words[1]
	return got == "" || got == id || strings.HasSuffix(got, "/"+id)
}

// onlyID matches an expected answer with one word, whose value is unknown.
var onlyID = regexp.MustCompile(`(^|\| )ok (\*|\$\w+)$`)

// slower returns the factor by which tasks may take longer under the profile.
func (i *injection) slower() time.Duration { return time.Duration(cmp.Or(i.profile.slower, 1)) }

// awaitPartner waits until the partner has performed its tasks, and returns what was wrong, or "". ended is false if it
// has not performed them in time.
func (r *run) awaitPartner(results <-chan string, limit time.Duration) (wrong string, ended bool) {
	wait := min(limit, lastResult*r.slower())
	if r.mayFail() {
		wait = 300 * time.Millisecond
	}
	timer := newStallTimer(wait)
	defer timer.Stop()
	for {
		select {
		case wrong := <-results:
			return wrong, true
		case <-timer.C:
			if timer.over() {
				return "", false
			}
		}
	}
}

// repeat repeats a task that failed after a fault, until the driver completes it or the partner has its result. results
// is nil if there is no partner. note says how the task failed.
func (r *run) repeat(ctx context.Context, d *driving, s *Step, results <-chan string, limit time.Duration,
	note string) (verdict.Verdict, string) {
	task := r.names.task(cmp.Or(s.Again, s.Task))
	for range 20 {
		r.proxy.Auditor.task(s)
		next, err := d.ask(ctx, task, limit)
		switch {
		case err != nil:
			v, why := d.verdict(err, limit)
			return v, note + "; the task was given again: " + why
		case strings.HasPrefix(next, "error unsupported"), // the result of the repetition is unknown
			s.Again == "" && r.names.fits(s.Answer, next),
			s.Again != "" && results == nil && strings.HasPrefix(next, "ok"):
			return verdict.FailedCleanly, note
		}
		select {
		case wrong := <-results:
			if s.Serves == "" && wrong == "" {
				return verdict.FailedCleanly, note
			}
			return verdict.WrongResult, wrong
		case <-time.After(50 * time.Millisecond):
		}
	}
	return verdict.Unrecovered, note + "; the driver tried the task again, and it failed again"
}

// difference describes an answer that is not the expected one. If the first byte in which they differ is not in the
// first 120 bytes of both, it shows both around this byte.
func difference(expected, got string) string {
	k := 0
	for k < min(len(expected), len(got)) && expected[k] == got[k] {
		k++
	}
	const shown = 120
	if k < shown {
		return fmt.Sprintf("expected the answer %s, got %s", shortened(expected), shortened(got))
	}
	begin := k - shown/2
	return fmt.Sprintf("expected the answer ...%s, got ...%s: the first %d of %d and %d bytes are the same",
		shortened(expected[begin:]), shortened(got[begin:]), k, len(expected), len(got))
}

// shortened returns a text for a report, truncated to 120 bytes.
func shortened(s string) string {
	if len(s) > 120 {
		return s[:120] + "..."
	}
	return s
}

// runPartner makes the partner of a step perform its tasks, again after a restart of the server. It returns what was
// wrong, or "".
func (r *run) runPartner(ctx context.Context, s *Step, own names) string {
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
		d := &driving{Driver: play.Drive(ctx, r.opts.Partners[s.Partner], transport.Name(ln)), run: r}
		wrong := ""
		if s.Serves != "" {
			r.setPayloads(own, s.Serves)
			d.ask(ctx, own.task(s.Serves), time.Hour)
		}
		broken := false
		for i := 0; i < len(s.Others) && !broken; i++ {
			x := s.Others[i]
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
				wrong = fmt.Sprintf("the task of the reference client was %s: %s", own.task(x.Task),
					difference(own.task(x.Answer), answer))
			}
		}
		d.finish()
		if broken && wrong == "" || s.Serves != "" {
			continue
		}
		return wrong
	}
	return ""
}
