package conform

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"jobwire/codec"
	"jobwire/codec/beanstalk"
	"jobwire/codec/gearman"
	"jobwire/internal/target"
	"jobwire/internal/verdict"
	"jobwire/play"
	"jobwire/refserver"
	beanstalkserver "jobwire/refserver/beanstalk"
	"jobwire/refserver/inject"
)

// causeSuite returns the suite of setups, with cases whose failures have causes in common.
func causeSuite(t *testing.T) *Suite {
	t.Helper()
	files := fstest.MapFS{"b.wire": {Data: []byte(`
@section s
@case empty
@about An empty echo.
@rules gearman.echo.same-data
Client -> Job Server: ECHO_REQ ""
Job Server -> Client: ECHO_RES ""
@case big-endian
@about An echo.
@rules gearman.packet.big-endian
Client -> Job Server: ECHO_REQ x
Job Server -> Client: ECHO_RES x
@case created
@about A job is created.
@rules gearman.submit.created
Client -> Job Server: SUBMIT_JOB $fn "" x
Job Server -> Client: JOB_CREATED *
`)}}
	for name, file := range setupSuite {
		files[name] = file
	}
	s, err := LoadFS(gearman.Protocol, files)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestCauses checks how failures are grouped: by kind, cases, instances and hints.
func TestCauses(t *testing.T) {
	t.Parallel()
	s := causeSuite(t)
	for _, tt := range []struct {
		name string
		edit inject.Edit
		want []string
	}{
		{"no fault", nil, nil},
		{"a message without reply", edit("drop ECHO_REQ"), []string{
			"no reply: no reply to ECHO_REQ within 1s: gearman.echo gearman.empty gearman.big-endian, 3 instances; --run gearman.echo; known: [{cases: gearman.echo, why: REASON}]"}},
		{"a message that ends the connection", edit("close OPTION_REQ"), []string{
			"disconnect: the target closed the connection after OPTION_REQ: gearman.option, 1 instances; --run gearman.option; known: [{cases: gearman.option, why: REASON}]"}},
		{"an instance", edit("drop STATUS_RES"), []string{
			"no reply: rule gearman.echo.same-data (MUST): no reply to GET_STATUS within 1s: gearman.status, 3 instances; --run 'gearman.status[n=1]'; known: [{cases: gearman.status, why: REASON}]"}},
		{"a message that the setups need", edit("alter JOB_CREATED job_handle="), []string{
			"invalid message: rule gearman.handle.not-empty (DE-FACTO): the received " +
				"message is invalid: byte 12, Job handle: expected a value that is not " +
				"empty, got an empty value [gearman.handle.not-empty], in place of JOB_CREATED " +
				"after SUBMIT_JOB: gearman.status gearman.created, 4 instances; --run gearman.created; " +
				"--waive gearman.handle.not-empty; known: [{cases: gearman.created, why: " +
				"REASON}]"}},
		{"two causes", edit("drop ECHO_REQ,OPTION_REQ"), []string{
			"no reply: no reply to ECHO_REQ within 1s: gearman.echo gearman.empty gearman.big-endian, 3 instances; --run gearman.echo; known: [{cases: gearman.echo, why: REASON}]",
			"no reply: rule gearman.echo.same-data (MUST): no reply to OPTION_REQ within 1s: gearman.option, 1 instances; --run gearman.option; known: [{cases: gearman.option, why: REASON}]"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var results []Result
			synctest.Test(t, func(t *testing.T) {
				results = (&Runner{Start: faulty(tt.edit), Timeout: time.Second, Parallel: 3}).Run(t.Context(), s, nil)
			})
			report := &Report{Protocol: gearman.Protocol, Results: results}
			var got []string
			for _, c := range report.Causes() {
				text := fmt.Sprintf("%s: %s: %s, %d instances", c.Kind, c.Text, strings.Join(c.Cases, " "), c.Instances)
				for _, h := range c.Try {
					text += "; " + h.Option
				}
				got = append(got, text)
			}
			if strings.Join(got, "\n") != strings.Join(tt.want, "\n") {
				t.Errorf("causes:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
			}
		})
	}
}

// TestCauseOrder checks that the worst cause comes first, and that a crash that the profile expects is a cause.
func TestCauseOrder(t *testing.T) {
	s := causeSuite(t)
	result := func(i int, v verdict.Verdict) Result { return Result{Case: s.Cases[i], Verdict: v, Note: "note"} }
	crash := func(r Result, fault string) Result {
		r.Crash = &Crash{Exit: "signal: aborted", Fault: fault}
		return r
	}
	report := &Report{Protocol: gearman.Protocol, Results: []Result{
		result(0, verdict.Inconclusive),
		crash(result(1, verdict.Known), "panic: known"),
		result(2, verdict.Failed),
		result(3, verdict.Unexpected),
		crash(result(4, verdict.Crashed), "panic: index 3"),
		crash(result(5, verdict.Crashed), "panic: index 17"),
		result(6, verdict.Hung),
		result(7, verdict.Passed),
	}}
	want := "crash hang rule unexpected pass inconclusive crash"
	var got []string
	causes := report.Causes()
	for _, c := range causes {
		got = append(got, string(c.Kind))
	}
	if strings.Join(got, " ") != want {
		t.Fatalf("kinds %q, want %s", got, want)
	}
	if c := causes[0]; c.Text != "the target crashed: panic: index 17 (signal: aborted)" || len(c.Cases) != 2 ||
		c.Expected || c.Try[1].Option != "known: [{cases: gearman.empty, crash: true, why: REASON}]" {
		t.Errorf("crash: %+v", c)
	}
	if c := causes[len(causes)-1]; !c.Expected || len(c.Try) != 1 {
		t.Errorf("expected crash: %+v", c)
	}
}

// TestJoinedCauses checks that an inconsistent result belongs to the cause of other cases that failed with the
// same reply, and otherwise to a cause of its own, which comes after a cause of more instances.
func TestJoinedCauses(t *testing.T) {
	s := causeSuite(t)
	unanswered := func(i int, v verdict.Verdict) Result {
		c := s.Cases[i]
		sent := play.Event{Actor: c.Script.Steps[0].Peer, From: codec.Peer, Frame: codec.Frame{From: codec.Peer,
			Type: c.Script.Steps[0].Choices[0].Type}}
		f := &play.Failure{Reason: play.TimedOut, Step: &c.Script.Steps[1], Waited: time.Second, Text: "nothing"}
		return Result{Case: c, Verdict: v, Note: "note", Play: &play.Result{Events: []play.Event{sent}, Failure: f}}
	}
	const option, empty, endian, created = 4, 5, 6, 7
	for _, tt := range []struct {
		results []Result
		want    string
	}{
		{[]Result{unanswered(empty, verdict.Inconsistent), unanswered(endian, verdict.Failed)}, "no reply 2"},
		{[]Result{unanswered(empty, verdict.Inconsistent), unanswered(created, verdict.Failed), unanswered(created, verdict.Failed)},
			"no reply 2, inconsistent 1"},
		{[]Result{unanswered(empty, verdict.Inconsistent), unanswered(created, verdict.Inconsistent), unanswered(option, verdict.Failed)},
			"inconsistent 2, no reply 1"},
	} {
		var got []string
		causes := (&Report{Protocol: gearman.Protocol, Results: tt.results}).Causes()
		for _, c := range causes {
			got = append(got, fmt.Sprintf("%s %d", c.Kind, c.Instances))
		}
		if strings.Join(got, ", ") != tt.want {
			t.Errorf("got %s, want %s", strings.Join(got, ", "), tt.want)
		}
		if text := causes[0].Text; causes[0].Kind == CauseInconsistent && !strings.Contains(text,
			"after ECHO_REQ or SUBMIT_JOB depends") {
			t.Errorf("the text names no messages: %s", text)
		}
	}
}

// TestInferredInstancesCount checks that instances that were inferred to fail belong to the cause of the others.
func TestInferredInstancesCount(t *testing.T) {
	s := causeSuite(t)
	report := &Report{Protocol: gearman.Protocol}
	for i, v := range []verdict.Verdict{1: verdict.Failed, 2: verdict.Inferred, 3: verdict.Inferred, 6: verdict.Failed, 7: verdict.Inferred} {
		if v != "" {
			report.Results = append(report.Results, Result{Case: s.Cases[i], Verdict: v, Note: "note"})
		}
	}
	var got []string
	for _, c := range report.Causes() {
		got = append(got, c.Count()+": "+strings.Join(c.IDs(), " "))
	}
	want := "1 case, 3 instances (2 inferred): gearman.status[n=1] gearman.status[n=2] " +
		"gearman.status[n=3]; 1 case: gearman.big-endian"
	if strings.Join(got, "; ") != want {
		t.Errorf("got %s, want %s", strings.Join(got, "; "), want)
	}
}

// TestCrashCauses checks that crashes at one place are one cause, whatever differs between runs, and that crashes at
// two places are two causes. The text has the fault and the first function of the program, and not the start of the
// log.
func TestCrashCauses(t *testing.T) {
	s := causeSuite(t)
	const start = "12:00:01 backtrace handler registered, pid %[1]d\nlistening on 127.0.0.1:%[1]d, abort on error\n"
	goStack := "panic: no job H:lap:%[1]d of 127.0.0.1:%[1]d after 1.%[1]ds\n\ngoroutine " +
		"%[1]d [running]:\nmain.(*queue).pop(0xc000%[1]d)\n\t/src/queue.go:PLACE " +
		"+0x1d\nmain.handle()\n\t/src/main.go:9 +0x1\n"
	for _, tt := range []struct{ name, exit, output, want string }{
		{"Go", "exit status 2", goStack, "the target crashed: panic: no job H:lap:31337 of 127.0.0.1:31337 after " +
			"1.31337s, in main.(*queue).pop at queue.go:PLACE (exit status 2)"},
		{"Python", "exit status 1", "Traceback (most recent call last):\n  File \"/src/q.py\", line PLACE, " +
			"in pop\n    x\nKeyError: 'H:lap:%[1]d'\n",
			"the target crashed: KeyError: 'H:lap:31337', in pop at q.py:PLACE (exit status 1)"},
		{"Node.js", "exit status 1", "TypeError: job %[1]d is undefined\n    at Queue.pop (/src/q.js:PLACE:9)\n" +
			"    at process.processTicksAndRejections (node:internal/process/task_queues:95:5)\n",
			"the target crashed: TypeError: job 31337 is undefined, in Queue.pop at q.js:PLACE (exit status 1)"},
		{"Java", "exit status 1", "Exception in thread \"main\" java.lang.IllegalStateException: port %[1]d\n" +
			"\tat java.util.ArrayList.get(ArrayList.java:1)\n\tat a.Queue.pop(Queue.java:PLACE)\n",
			"the target crashed: java.lang.IllegalStateException: port 31337, in a.Queue.pop " +
				"at Queue.java:PLACE (exit status 1)"},
		{"C++", "signal: aborted", "terminate called after throwing an instance of 'std::PLACE_error'\n  what(): " +
			" index %[1]d\n",
			"the target crashed: std::PLACE_error: index 31337 (signal: aborted)"},
		{"assertion", "signal: aborted", "server: queue.c:PLACE: pop: Assertion `n > 0' failed.\n",
			"the target crashed: queue.c:PLACE: Assertion `n > 0' failed., in pop at queue.c:PLACE (signal: aborted)"},
		{"sanitizer", "exit status 1", "==%[1]d==ERROR: AddressSanitizer: heap-use-after-free on address 0x60200000%[1]d " +
			"at pc 0x55%[1]d\nREAD of size 4 at 0x60200000%[1]d thread T0\n" +
			"    #0 0x55%[1]d in free x.cpp:3\n    #1 0x55%[1]d in pop /src/q.c:PLACE:3\n",
			"the target crashed: AddressSanitizer: heap-use-after-free: READ of size " +
				"4, in pop at q.c:PLACE (exit status 1)"},
		{"stack", "signal: segmentation fault",
			"Begin stack trace, frames found: 2\n?0  0x7f%[1]d in /usr/sbin/gearmand(+0xPLACE) " +
				"[0x7f%[1]d]\n?1  0x7f%[1]d in /usr/sbin/gearmand(+0x77) [0x7f%[1]d]\n",
			"the target crashed in gearmand+0xPLACE (signal: segmentation fault)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			report := &Report{Protocol: gearman.Protocol}
			crash := func(i int, place string, number int) {
				if tt.name == "C++" {
					place = map[string]string{"10": "range", "20": "length"}[place]
				}
				output := fmt.Sprintf(start, number) + strings.ReplaceAll(fmt.Sprintf(tt.output, number), "PLACE", place)
				c := newCrash(&target.Error{Exit: tt.exit, Output: output, Died: true})
				report.Results = append(report.Results, Result{Case: s.Cases[i], Verdict: verdict.Crashed, Note: c.String(), Crash: c})
			}
			crash(1, "10", 1001)
			crash(2, "20", 1001)
			crash(4, "10", 2077)
			crash(5, "10", 31337)
			causes := report.Causes()
			if len(causes) != 2 || causes[0].Instances != 3 || causes[1].Instances != 1 {
				t.Fatalf("causes %+v, want one with 3 instances and one with 1", causes)
			}
			if want := strings.NewReplacer("PLACE_error", "range_error", "PLACE",
				"10").Replace(tt.want); causes[0].Text != want {
				t.Errorf("got  %s\nwant %s", causes[0].Text, want)
			}
			if strings.Contains(report.Results[0].Note, "listening") {
				t.Errorf("the note has the start of the log: %s", report.Results[0].Note)
			}
		})
	}
}

// beanstalkCauses returns the causes of failures of the named cases of Beanstalk on a server with a fault.
func beanstalkCauses(t *testing.T, fault string, names ...string) (causes []Cause) {
	t.Helper()
	p := inject.Protocol{Protocol: beanstalk.Protocol,
		New: func() refserver.Machine { return beanstalkserver.New(beanstalkserver.Options{}) }}
	edit, err := p.ParseFaults(fault)
	if err != nil {
		t.Fatal(err)
	}
	all, err := Load(beanstalk.Protocol)
	if err != nil {
		t.Fatal(err)
	}
	s, err := all.Select(names, nil)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		r := &Runner{Parallel: 4, Start: func(ctx context.Context) (target.Target, error) {
			return target.InMemory(ctx, "faulty", func(ctx context.Context, ln net.Listener) error {
				return p.Serve(ctx, ln, &inject.MutantSpec{Edit: edit})
			})
		}}
		causes = (&Report{Protocol: beanstalk.Protocol, Results: r.Run(t.Context(), s, nil)}).Causes()
	})
	return causes
}

// TestFormCauses checks that one form of illegal messages that a server accepts is one cause for all commands, and
// that two absent keys are two causes.
func TestFormCauses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, fault string
		cases       []string
		want        []string
	}{
		{"superfluous arguments",
			`reread (illegal) {replace_all(raw, "^(list-tubes|list-tube-used|stats|delete|kick|peek|touch|bury \\d+)` +
				`( \\d+)? \\S+\r", "$1$2\r")}`,
			[]string{"beanstalk.error.surplus-*"},
			[]string{"wrong reply, 15 instances: rule beanstalk.command.arguments (MUST): the " +
				"target accepts a message that breaks it (expected no argument after"}},
		{"superfluous and missing arguments",
			`reread (illegal) {replace_all(replace_all(raw, "^(stats|list-tubes) \\S+\r", "$1\r"), ` +
				`"^(release \\d+ \\d+|bury \\d+)\r", "$1 0\r")}`,
			[]string{"beanstalk.error.surplus-*", "beanstalk.error.too-few-arguments"},
			[]string{"wrong reply, 4 instances: rule beanstalk.command.arguments (MUST): the " +
				"target accepts a message that breaks it (expected no argument after",
				"wrong reply, 2 instances: rule beanstalk.command.arguments (MUST): the " +
					"target accepts a message that breaks it (expected a value for this"}},
		{"LF", `reread (illegal) {replace(raw, "\nlist", "\r\nlist")}`, []string{"beanstalk.line.lf-ends",
			"beanstalk.line.lf-alone"},
			[]string{"wrong reply, 22 instances: rule beanstalk.line.crlf (MUST): the target " +
				"accepts a message that breaks it (expected CR LF, got LF alone)"}},
		{"absent keys", `write stats-reply {replace(replace(raw, "\npid:", "\nPID:"), "\nuptime:", "\nUptime:")}`,
			[]string{"beanstalk.stats.key", "beanstalk.stats.uptime"},
			[]string{"wrong reply, 2 instances: stats-reply has no uptime after stats",
				"wrong reply, 1 instances: rule beanstalk.stats.keys (MUST): stats-reply " +
					"has no pid after stats"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			causes := beanstalkCauses(t, tt.fault, tt.cases...)
			var got []string
			for _, c := range causes {
				got = append(got, fmt.Sprintf("%s, %d instances: %s", c.Kind, c.Instances, c.Text))
			}
			ok := len(got) == len(tt.want)
			for i := range min(len(got), len(tt.want)) {
				ok = ok && strings.HasPrefix(got[i], tt.want[i])
			}
			if !ok {
				t.Errorf("causes:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
			}
		})
	}
}

// TestRefusedMessages tests that the refusals of two messages are two causes.
func TestRefusedMessages(t *testing.T) {
	s, err := LoadFS(gearman.Protocol, setupSuite)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range s.Cases {
		if c.Family == "gearman.option" { // two cases about one rule would be one cause
			c.Rules = []codec.RuleID{gearman.RuleHandleLength}
		}
	}
	synctest.Test(t, func(t *testing.T) {
		r := Runner{Start: faulty(edit("answer GET_STATUS ERROR a b\nanswer OPTION_REQ ERROR a b")), Timeout: time.Second}
		causes := (&Report{Protocol: gearman.Protocol, Results: r.Run(t.Context(), s, nil)}).Causes()
		if len(causes) != 2 || !strings.Contains(causes[0].Text, "after GET_STATUS") || !strings.Contains(causes[1].Text, "after OPTION_REQ") {
			t.Errorf("%+v, expected a cause for each message", causes)
		}
	})
}

// TestCauseLevels tests that a broken MUST rule comes before a rule of another level that more instances break.
func TestCauseLevels(t *testing.T) {
	s, err := LoadFS(gearman.Protocol, fstest.MapFS{"a.wire": {Data: []byte(`
@section s
@case de-facto
@about The server agrees with the others.
@rules gearman.packet.size-cap
@for x in 1 2 3
Client -> Job Server: ECHO_REQ {x}
Job Server -> Client: ECHO_RES {x}
@case must
@about An echo.
@rules gearman.echo.same-data
Client -> Job Server: ECHO_REQ x
Job Server -> Client: ECHO_RES x
`)}})
	if err != nil {
		t.Fatal(err)
	}
	report := &Report{Protocol: gearman.Protocol}
	for i, c := range s.Cases {
		report.Results = append(report.Results, Result{Case: s.Cases[i], Verdict: verdict.Failed, Note: "note of " + c.Family})
	}
	var got []codec.Level
	for _, c := range report.Causes() {
		got = append(got, c.Level)
	}
	if !slices.Equal(got, []codec.Level{codec.Must, codec.DeFacto}) {
		t.Errorf("levels %v", got)
	}
}
