package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/conform"
	"jobwire/internal/peers"
	"jobwire/internal/target"
	"jobwire/pcap"
	"jobwire/play"
)

// accusation is a violation in a capture.
type accusation struct {
	rule codec.RuleID
	by   codec.Side
	text string
}

// audited performs a case against a server, captures it, and returns what the server and the
// peers are accused of by each message alone, and by what went before it.
func audited(t *testing.T, sys *system, c *conform.Case, start func(context.Context) (target.Target, error)) (plain, judged []accusation) {
	t.Helper()
	srv, err := start(t.Context())
	if err != nil {
		t.Error(err)
		return nil, nil
	}
	defer srv.Stop()
	tp := tapped(t, srv.Addr())
	dial := func(ctx context.Context, _ transcript.Actor) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", tp.Addr().String())
	}
	play.Peers(t.Context(), c.Script, dial, play.Options{Timeout: time.Second, Codec: codec.Options{Waive: sys.waive}})
	capture := tp.capture(t)
	judge := func(audit bool) (all []accusation) {
		f, err := pcap.NewFile(c.ID, bytes.NewReader(capture))
		if err != nil {
			t.Error(err)
			return nil
		}
		d := pcap.NewDecoder(pcap.Options{Protocol: sys.protocol, Audit: audit}, func(it *pcap.Item) {
			if it.Kind == pcap.Violates {
				all = append(all, accusation{it.Err.Rule, it.From, fmt.Sprintf("%q: %v", it.Raw[:min(len(it.Raw), 60)], it.Err)})
			}
		})
		if err := d.Decode(f); err != nil {
			t.Error(err)
		}
		return all
	}
	return judge(false), judge(true)
}

// each calls do for all of a list, several at a time.
func each[T any](list []T, do func(T)) {
	var wg sync.WaitGroup
	next := make(chan T)
	for range 24 {
		wg.Go(func() {
			for x := range next {
				do(x)
			}
		})
	}
	for _, x := range list {
		next <- x
	}
	close(next)
	wg.Wait()
}

// serverCases loads the cases about a server.
func serverCases(t *testing.T, sys *system) (cases []*conform.Case, byID map[string]*conform.Case) {
	t.Helper()
	suite, err := conform.Load(sys.protocol)
	if err != nil {
		t.Fatal(err)
	}
	byID = map[string]*conform.Case{}
	for _, c := range suite.Cases {
		if c.Program == "" {
			cases, byID[c.ID] = append(cases, c), c
		}
	}
	return cases, byID
}

// outOfTurn are rules that peers break on purpose in cases about what the server makes of it.
var outOfTurn = map[string][]string{
	"gearman": {"gearman.worker.uses-the-handle", "gearman.work.final"},
	"danga":   {"danga.complete.no-job", "danga.status.no-job", "danga.sync.one-at-a-time"},
}

// TestAuditOfCases: a server without a fault is accused of nothing, whatever its peers do, and
// they of nothing but what they do.
func TestAuditOfCases(t *testing.T) {
	for i := range systems {
		sys := &systems[i]
		t.Run(sys.protocol.Name, func(t *testing.T) {
			t.Parallel()
			cases, _ := serverCases(t, sys)
			each(cases, func(c *conform.Case) {
				if slow(c) {
					return
				}
				plain, judged := audited(t, sys, c, func(ctx context.Context) (target.Target, error) { return new(targetFlags).start(ctx, sys) })
				for _, a := range judged {
					switch {
					case a.by == codec.Server && a.rule != "gearman.packet.size-cap":
						t.Errorf("%s: the server: %s", c.ID, a.text)
					case a.by == codec.Peer && !slices.Contains(plain, a) && !slices.Contains(c.Rules, a.rule) && !slices.Contains(outOfTurn[sys.protocol.Name], string(a.rule)):
						t.Errorf("%s: a peer: %s", c.ID, a.text)
					}
				}
			})
		})
	}
}

// slow reports whether a case moves much data, or takes its time.
func slow(c *conform.Case) bool {
	for _, st := range c.Script.Steps {
		for _, a := range st.Choices[0].Args {
			if len(a.Value) > 4<<20 {
				return true
			}
		}
	}
	return false
}

// guilty are faulty servers, with a case and the rule that a capture of it shows them to break.
var guilty = []struct{ protocol, mutant, of, rule string }{
	{"gearman", "abilities-counted", "gearman.worker.can-do-again", "gearman.worker.cant-do"},
	{"gearman", "all-without-unique", "gearman.beyond.grab-all-ordinary", "gearman.grab.all"},
	{"gearman", "any-option-is-one", "gearman.option.empty", "gearman.option.unknown"},
	{"gearman", "asleep-until-no-job", "gearman.wake.not-after-grab", "gearman.worker.awake-undisturbed"},
	{"gearman", "background-failure-told", "gearman.submit.background-failure", "gearman.submit.bg-detached"},
	{"gearman", "background-progress-told", "gearman.submit.background", "gearman.submit.bg-detached"},
	{"gearman", "background-result-told", "gearman.submit.background", "gearman.submit.bg-detached"},
	{"gearman", "background-unique-forgotten", "gearman.grab.assign-unique-background", "gearman.grab.assign-unique"},
	{"gearman", "cant-do-passed-over", "gearman.worker.can-do-again", "gearman.worker.cant-do"},
	{"gearman", "created-late", "gearman.submit.created-first", "gearman.submit.created-first"},
	{"gearman", "dash-is-an-id", "gearman.field.coalesce-by-workload", "gearman.submit.coalesce-workload"},
	{"gearman", "echo-cut-at-64-kibibytes", "gearman.echo.large", "gearman.echo.same-data"},
	{"gearman", "echo-of-seven-bits", "gearman.echo.binary", "gearman.echo.same-data"},
	{"gearman", "empty-data-dropped", "gearman.work.data", "gearman.work.data"},
	{"gearman", "empty-unique-is-the-workload", "gearman.grab.assign-unique-empty", "gearman.grab.assign-unique"},
	{"gearman", "empty-unique-made-up", "gearman.grab.assign-unique-empty", "gearman.grab.assign-unique"},
	{"gearman", "epoch-not-detached", "gearman.epoch.background", "gearman.epoch.background"},
	{"gearman", "equal-jobs-confused", "gearman.grab.race", "gearman.grab.once"},
	{"gearman", "excepted-job-retried", "gearman.retry.not-after-exception", "gearman.work.final"},
	{"gearman", "exception-cut-at-nul", "gearman.work.exception", "gearman.work.exception"},
	{"gearman", "exception-is-failure", "gearman.work.exception", "gearman.work.exception"},
	{"gearman", "exceptions-as-the-first-asked", "gearman.work.exception-each-as-asked", "gearman.work.exception-unasked"},
	{"gearman", "exceptions-for-all", "gearman.work.exception-each-as-asked", "gearman.work.exception-unasked"},
	{"gearman", "failed-job-known", "gearman.status.failed", "gearman.status.finished"},
	{"gearman", "failed-job-retried", "gearman.retry.not-after-fail", "gearman.work.final"},
	{"gearman", "failure-is-success", "gearman.work.fail", "gearman.work.fail"},
	{"gearman", "first-created-overtaken", "gearman.submit.created-first", "gearman.submit.created-first"},
	{"gearman", "first-echo-reversed", "gearman.echo.client", "gearman.echo.same-data"},
	{"gearman", "handle-given-twice", "gearman.handles.distinct", "gearman.submit.handles-distinct"},
	{"gearman", "high-background-not-detached", "gearman.submit.high-background", "gearman.submit.bg-detached"},
	{"gearman", "idle-worker-echo-reversed", "gearman.echo.asleep", "gearman.echo.same-data"},
	{"gearman", "low-background-not-detached", "gearman.submit.low-background", "gearman.submit.bg-detached"},
	{"gearman", "newcomer-woken", "gearman.wake.not-awake", "gearman.worker.awake-undisturbed"},
	{"gearman", "others-jobs-when-idle", "gearman.wake.only-able", "gearman.worker.can-do"},
	{"gearman", "progress-in-percent", "gearman.work.status", "gearman.work.status"},
	{"gearman", "reduce-background-not-detached", "gearman.beyond.reduce-background", "gearman.submit.bg-detached"},
	{"gearman", "reset-passed-over", "gearman.worker.reset", "gearman.worker.reset"},
	{"gearman", "result-lost-with-worker", "gearman.retry.not-after-complete", "gearman.work.final"},
	{"gearman", "result-repeated-at-echo", "gearman.work.complete", "gearman.work.complete"},
	{"gearman", "result-told-twice", "gearman.work.complete", "gearman.work.complete"},
	{"gearman", "running-by-progress", "gearman.status.running", "gearman.status.running"},
	{"gearman", "running-job-assigned", "gearman.grab.once", "gearman.grab.once"},
	{"gearman", "timed-ability-kept", "gearman.timeout.announces", "gearman.worker.cant-do"},
	{"gearman", "unique-for-all-functions", "gearman.field.unique-per-function", "gearman.submit.unique-per-function"},
	{"gearman", "unique-for-ever", "gearman.field.unique-reusable", "gearman.submit.unique-reusable"},
	{"gearman", "unique-not-told", "gearman.grab.assign-unique", "gearman.grab.assign-unique"},
	{"gearman", "warning-cut-at-nul", "gearman.work.warning", "gearman.work.warning"},
	{"gearman", "warning-is-data", "gearman.work.all-in-order", "gearman.work.data"},
	{"gearman", "warning-late", "gearman.work.all-in-order", "gearman.work.warning"},
	{"gearman", "workload-cut-at-64-kibibytes", "gearman.submit.workload-large", "gearman.submit.opaque-workload"},
	{"beanstalk", "anybody-buries", "beanstalk.bury.others-job", "beanstalk.bury.not-found"},
	{"beanstalk", "anybody-ends-a-job", "beanstalk.delete.others-job", "beanstalk.delete.others-job"},
	{"beanstalk", "anybody-releases", "beanstalk.release.others-job", "beanstalk.release.not-found"},
	{"beanstalk", "anybody-touches", "beanstalk.touch.not-reserved", "beanstalk.touch.not-found"},
	{"beanstalk", "body-ends-at-nul", "beanstalk.body.all-kinds-of-bytes", "beanstalk.body.verbatim"},
	{"beanstalk", "bound-ignored", "beanstalk.kick.buried", "beanstalk.kick.bound"},
	{"beanstalk", "delayed-peeked-everywhere", "beanstalk.peek.used-tube", "beanstalk.peek.used-tube"},
	{"beanstalk", "deleted-but-peeked", "beanstalk.delete.buried", "beanstalk.delete.gone"},
	{"beanstalk", "finished-job-still-seen", "beanstalk.life.typical", "beanstalk.delete.gone"},
	{"beanstalk", "first-watched-listed", "beanstalk.list.watched", "beanstalk.list.watched"},
	{"beanstalk", "holder-always-warned", "beanstalk.deadline.timeout-first", "beanstalk.deadline-soon.not-earlier"},
	{"beanstalk", "id-used-again", "beanstalk.life.ids-not-used-again", "beanstalk.job.id-unique"},
	{"beanstalk", "ids-by-connection", "beanstalk.life.ids-differ", "beanstalk.job.id-unique"},
	{"beanstalk", "ignored-tube-gives-on", "beanstalk.ignore.no-more-jobs", "beanstalk.ignore.no-more-jobs"},
	{"beanstalk", "large-body-cut-off", "beanstalk.body.large", "beanstalk.body.verbatim"},
	{"beanstalk", "last-tube-ignored", "beanstalk.ignore.last", "beanstalk.ignore.last"},
	{"beanstalk", "lf-ends-a-body", "beanstalk.crlf.lf-alone", "beanstalk.put.expected-crlf"},
	{"beanstalk", "negative-timeout-is-zero", "beanstalk.timeout.negative", "beanstalk.reserve.timeout-negative"},
	{"beanstalk", "nine-tubes-at-most", "beanstalk.watch.many", "beanstalk.watch.watching"},
	{"beanstalk", "no-bound-is-all", "beanstalk.kick.zero", "beanstalk.kick.bound"},
	{"beanstalk", "nothing-counted-as-one", "beanstalk.kick.zero", "beanstalk.kick.bound"},
	{"beanstalk", "other-tubes-when-empty", "beanstalk.ignore.no-more-jobs", "beanstalk.ignore.no-more-jobs"},
	{"beanstalk", "quit-behind-a-peek-passed-over", "beanstalk.quit.after-replies", "beanstalk.quit.closes"},
	{"beanstalk", "ready-job-buried", "beanstalk.bury.not-reserved", "beanstalk.bury.not-found"},
	{"beanstalk", "ready-job-released", "beanstalk.release.not-reserved", "beanstalk.release.not-found"},
	{"beanstalk", "released-again", "beanstalk.release.twice", "beanstalk.release.not-found"},
	{"beanstalk", "reserved-job-given-again", "beanstalk.life.exclusive", "beanstalk.job.exclusive"},
	{"beanstalk", "second-not-waited", "beanstalk.timeout.expires", "beanstalk.reserve.timeout-expires"},
	{"beanstalk", "surplus-of-a-body-dropped", "beanstalk.crlf.longer-body", "beanstalk.put.expected-crlf"},
	{"beanstalk", "touch-not-found", "beanstalk.touch.touched", "beanstalk.touch.touched"},
	{"beanstalk", "two-tubes-counted", "beanstalk.watch.counts", "beanstalk.watch.watching"},
	{"beanstalk", "unwatched-not-ignored", "beanstalk.ignore.not-watched", "beanstalk.ignore.not-watched"},
	{"beanstalk", "use-for-all", "beanstalk.use.own-connection", "beanstalk.tube.default-used"},
	{"beanstalk", "use-noted-late", "beanstalk.use.using", "beanstalk.list.used"},
	{"beanstalk", "warned-of-others-jobs", "beanstalk.deadline.not-others", "beanstalk.deadline-soon.own-jobs"},
	{"beanstalk", "watch-uses", "beanstalk.ignore.no-more-jobs", "beanstalk.ignore.no-more-jobs"},
	{"beanstalk", "watched-twice-counted-twice", "beanstalk.watch.twice", "beanstalk.watch.twice"},
	{"danga", "args-are-a-key", "danga.dup.empty-key", "danga.dup.empty-off"},
	{"danga", "async-result-pushed", "danga.application.only-answers", "danga.application.only-answers"},
	{"danga", "duplicate-streamed-to-first", "danga.dup.waits-for-async", "danga.async.not-streamed"},
	{"danga", "empty-list-is-all", "danga.connect.empty-list", "danga.connect.capabilities"},
	{"danga", "goodbye-forgets-nothing", "danga.disconnect.asks", "danga.disconnect.no-more"},
	{"danga", "goodbye-to-sleeper-unheard", "danga.disconnect.no-jobs", "danga.disconnect.no-more"},
	{"danga", "idle-worker-gets-others-jobs", "danga.connect.capabilities", "danga.connect.capabilities"},
	{"danga", "job-follows-noop", "danga.sleep.no-push", "danga.assign.asked-for"},
	{"danga", "lists-add-up", "danga.connect.replaces", "danga.connect.replaces"},
	{"danga", "lonely-thrown-away-told", "danga.create.thrown-away", "danga.create.answered"},
	{"danga", "nameless-job-for-all", "danga.name.empty", "danga.connect.capabilities"},
	{"danga", "names-in-any-case", "danga.connect.whole-name", "danga.connect.capabilities"},
	{"danga", "names-of-64-letters", "danga.connect.long-name", "danga.connect.capabilities"},
	{"danga", "no-means-later", "danga.assign.not-pushed", "danga.assign.asked-for"},
	{"danga", "no-time-is-zero", "danga.complete.elapsed", "danga.complete.elapsed"},
	{"danga", "result-told-again", "danga.complete.once", "danga.application.only-answers"},
	{"danga", "sleeper-gets-others-jobs", "danga.sleep.not-for-others", "danga.connect.capabilities"},
	{"danga", "thrown-away-progress-pushed", "danga.application.only-answers", "danga.application.only-answers"},
	{"danga", "thrown-away-result-pushed", "danga.application.only-answers", "danga.application.only-answers"},
	{"danga", "two-tasks-of-a-name", "danga.worker.one-task", "danga.worker.one-task"},
	{"danga", "two-tasks-of-two-names", "danga.worker.one-task-others-go-on", "danga.worker.one-task"},
	{"danga", "unannounced-gets-all", "danga.connect.not-yet", "danga.connect.needed"},
	{"danga", "waking-worker-told", "danga.sleep.not-awake", "danga.sleep.awake-undisturbed"},
}

// TestAuditOfMutants: faults that show in a capture are found in it, under the rule that the
// case is about.
func TestAuditOfMutants(t *testing.T) {
	suites := map[string]map[string]*conform.Case{}
	mutants := map[string]conform.Mutant{}
	for i := range systems {
		name := systems[i].protocol.Name
		_, suites[name] = serverCases(t, &systems[i])
		for _, m := range systems[i].mutants() {
			mutants[name+" "+m.Name] = m
		}
	}
	each(guilty, func(g struct{ protocol, mutant, of, rule string }) {
		sys, err := systemNamed(g.protocol)
		if err != nil {
			t.Error(err)
			return
		}
		for try := range 3 { // what depends on times takes a machine that is not too busy
			_, judged := audited(t, sys, suites[g.protocol][g.of], mutants[g.protocol+" "+g.mutant].Start)
			if slices.ContainsFunc(judged, func(a accusation) bool { return a.by == codec.Server && string(a.rule) == g.rule }) {
				return
			}
			if try == 2 {
				t.Errorf("%s: %s is not accused of %s but of %v", g.of, g.mutant, g.rule, judged)
			}
		}
	})
}

// TestAuditOfRealServers: what servers in the field are accused of is known of them.
func TestAuditOfRealServers(t *testing.T) {
	for _, tt := range []struct {
		protocol, server string
		shared           bool   // it takes long to start: cases share one
		known            string // rules that docs/findings.md has it break
	}{
		{"gearman", "gearmand", false, ""},
		{"gearman", "gearmand-perl", true, "gearman.work.data gearman.work.warning"},
		{"beanstalk", "beanstalkd", false, ""},
		{"gearmonkey", "redis-server", false, ""},
	} {
		t.Run(tt.server, func(t *testing.T) {
			peers.Need(t, tt.server)
			sys, err := systemNamed(tt.protocol)
			if err != nil {
				t.Fatal(err)
			}
			suite, err := conform.Load(sys.protocol)
			if err != nil {
				t.Fatal(err)
			}
			profile, err := conform.LoadProfile(tt.server, suite)
			if err != nil {
				t.Fatal(err)
			}
			cases, _ := serverCases(t, sys)
			start := func(ctx context.Context) (target.Target, error) { return target.Exec(ctx, profile.Exec) }
			if tt.shared {
				one, err := start(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				defer one.Stop()
				start = func(context.Context) (target.Target, error) { return target.Address(one.Addr()) }
			}
			each(cases, func(c *conform.Case) {
				if slow(c) || tt.shared && c.Alone {
					return
				}
				plain, judged := audited(t, sys, c, start)
				for _, a := range judged {
					if a.by == codec.Server && !slices.Contains(plain, a) && !slices.Contains(strings.Fields(tt.known), string(a.rule)) {
						t.Errorf("%s: %s", c.ID, a.text)
					}
				}
			})
		})
	}
}
