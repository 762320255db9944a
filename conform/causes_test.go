package conform

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"jobwire/codec/gearman"
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
			"disconnect: unexpected disconnect: the target closed the connection after OPTION_REQ: gearman.option, 1 instances; --run gearman.option; known: [{cases: gearman.option, why: REASON}]"}},
		{"an instance", edit("drop STATUS_RES"), []string{
			"no reply: rule gearman.echo.same-data (MUST): no reply to GET_STATUS within 1s: gearman.status, 3 instances; --run 'gearman.status[n=1]'; known: [{cases: gearman.status, why: REASON}]"}},
		{"a message that the setups need", edit("alter JOB_CREATED job_handle="), []string{
			"invalid message: rule gearman.handle.not-empty (DE-FACTO): the received message is invalid: byte 12, Job handle: expected a value that is not empty, got an empty value [gearman.handle.not-empty]: gearman.status gearman.created, 4 instances; --run gearman.created; --waive gearman.handle.not-empty; known: [{cases: gearman.created, why: REASON}]"}},
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
	result := func(i int, v Verdict) Result { return Result{Case: s.Cases[i], Verdict: v, Note: "note"} }
	crash := func(r Result, fault string) Result {
		r.Crash = &Crash{Exit: "signal: aborted", Fault: fault}
		return r
	}
	report := &Report{Protocol: gearman.Protocol, Results: []Result{
		result(0, Inconclusive),
		crash(result(1, Known), "panic: known"),
		result(2, Failed),
		result(3, Unexpected),
		crash(result(4, Crashed), "panic: index 3"),
		crash(result(5, Crashed), "panic: index 17"),
		result(6, Hung),
		result(7, Passed),
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
	if c := causes[0]; c.Text != "the target crashed: panic: index 3 (signal: aborted)" || len(c.Cases) != 2 || c.Expected || c.Try[1].Option != "known: [{cases: gearman.empty, crash: true, why: REASON}]" {
		t.Errorf("crash: %+v", c)
	}
	if c := causes[len(causes)-1]; !c.Expected || len(c.Try) != 1 {
		t.Errorf("expected crash: %+v", c)
	}
}
