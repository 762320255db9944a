package conform

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"jobwire/codec"
	"jobwire/codec/gearman"
	"jobwire/codec/transcript"
	"jobwire/internal/verdict"
	"jobwire/play"
	"jobwire/refserver/inject"
)

// setupSuite has a setup with two ways, a setup with one way, and cases that use them.
var setupSuite = fstest.MapFS{
	"setup.wire": {Data: []byte(`
@setup barrier
@about The server has handled all earlier requests of the connection.
@probe
Client -> Job Server: setup barrier
@way echo
{peer} -> Job Server: ECHO_REQ sync
Job Server -> {peer}: ECHO_RES sync
@way status
{peer} -> Job Server: GET_STATUS none
Job Server -> {peer}: STATUS_RES none 0 0 0 0

@setup submit job function data=x
@about The server has a job.
@probe
Client -> Job Server: setup submit $job $fn
@way SUBMIT_JOB
{peer} -> Job Server: SUBMIT_JOB {function} "" {data}
Job Server -> {peer}: JOB_CREATED {job}
`)},
	"a.wire": {Data: []byte(`
@section s
@rules gearman.echo.same-data
@case echo
@about An echo.
Client -> Job Server: ECHO_REQ x
Job Server -> Client: ECHO_RES x
@case status
@about A job that waits is known and not running.
@for n in 1 2 3
Client -> Job Server: setup submit $job $fn data="x"*{n}
Client -> Job Server: GET_STATUS $job
Job Server -> Client: STATUS_RES $job 1 0 0 0
Client -> Job Server: setup barrier
@case option
@about The option for exceptions is confirmed.
Client -> Job Server: OPTION_REQ exceptions
Job Server -> Client: OPTION_RES exceptions
Client -> Job Server: setup barrier
`)},
}

// TestSetupsThatDoNotWork tests servers that ignore one message: only the case about that message fails. If the setup of a
// case has another way, the case passes. If it has no other way, the case is inconclusive.
func TestSetupsThatDoNotWork(t *testing.T) {
	t.Parallel()
	s, err := LoadFS(gearman.Protocol, setupSuite)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		edit inject.Edit
		want string // verdicts of echo, status 1 to 3, option
	}{
		{"no fault", nil, "passed passed passed passed passed"},
		{"ECHO_REQ is ignored", edit("drop ECHO_REQ"), "failed passed passed passed passed"},
		{"ECHO_REQ ends the connection", edit("close ECHO_REQ"), "failed passed passed passed passed"},
		{"SUBMIT_JOB is ignored", edit("drop SUBMIT_JOB"), "passed inconclusive inconclusive inconclusive passed"},
		{"GET_STATUS is ignored", edit("drop GET_STATUS"), "passed failed failed failed passed"},
		{"OPTION_REQ is ignored", edit("drop OPTION_REQ"), "passed passed passed passed failed"},
		// The server stops replying after the option, so the setup itself works, but the steps of the case fail.
		{"OPTION_REQ ends reading", edit("mute OPTION_REQ"), "passed passed passed passed failed"},
		{"the server is mute", edit("drop ECHO_RES,STATUS_RES"), "failed failed failed failed inconclusive"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			var results []Result
			synctest.Test(t, func(t *testing.T) {
				r := &Runner{Start: faulty(test.edit), Timeout: time.Second, Parallel: 3, Segments: []play.Segmentation{play.Plain, play.Coalesced}}
				results = r.Run(t.Context(), s, nil)
			})
			for _, res := range results {
				got = append(got, string(res.Verdict))
			}
			if strings.Join(got, " ") != test.want {
				t.Errorf("%s, want %s", strings.Join(got, " "), test.want)
				for _, res := range results {
					t.Logf("%s: %s", res.Case.ID, res.Note)
				}
			}
		})
	}
}

// TestLateProbe tests that a probe that failed because the machine was late does not permanently select another way.
func TestLateProbe(t *testing.T) {
	s, err := LoadFS(gearman.Protocol, setupSuite)
	if err != nil {
		t.Fatal(err)
	}
	c := s.Cases[0]
	for i := range s.Cases {
		if len(s.Cases[i].Script.Setups) == 1 && s.Cases[i].Script.Setups[0] == "barrier" {
			c = s.Cases[i]
		}
	}
	ways := newSetupWays(s.Setups)
	late := 2 // number of late probes with the first way
	try := func(probe *transcript.Script, _ breaks) (error, bool) {
		if probe.Steps[0].Choices[0].Type.Name == "ECHO_REQ" && late > 0 {
			late--
			return errors.New("no reply in time"), false
		}
		return nil, true
	}
	for _, want := range []string{"GET_STATUS", "ECHO_REQ", "ECHO_REQ"} {
		script, _, broken, err := ways.script(t.Context(), c, try)
		if err != nil || broken != nil {
			t.Fatal(broken, err)
		}
		if got := script.Steps[len(script.Steps)-2].Choices[0].Type.Name; got != want {
			t.Errorf("expected the way with %s, got %s", want, got)
		}
	}
}

// TestSetupBreaksRule tests a target that breaks a rule about the form of a message in a setup: the handles that submit
// creates are too long. If the setup works apart from this, one case is reported to fail because of the rule, and the
// others run without the rule. If it does not work even without the rule, the setup is broken for all cases.
func TestSetupBreaksRule(t *testing.T) {
	s, err := LoadFS(gearman.Protocol, setupSuite)
	if err != nil {
		t.Fatal(err)
	}
	const rule = gearman.RuleHandleLength
	tooLong := &probeFailure{Result: &play.Result{Failure: &play.Failure{Text: "too long", Event: &play.Event{Err: &codec.Error{Rule: rule}}}}}
	// The cases of setupSuite that use submit. The first runs again at the end, as after a result that the machine's
	// slowness may have changed, and must be the one that is reported again.
	var cases []*Case
	for _, c := range s.Cases {
		if c.Family == "gearman.status" {
			cases = append(cases, c)
		}
	}
	cases = append(cases, cases[0])
	for _, tt := range []struct {
		worksWithoutRule bool
		want             string // the result of each case
	}{
		{true, "reported rule-ignored rule-ignored reported"},
		{false, "broken broken broken broken"},
	} {
		ways := newSetupWays(s.Setups)
		try := func(probe *transcript.Script, known breaks) (error, bool) {
			if !slices.Contains(probe.Setups, "submit") || tt.worksWithoutRule && known.contain(breakKey{rule: rule}) {
				return nil, true
			}
			return tooLong, true
		}
		var got []string
		for _, c := range cases {
			_, flawed, broken, err := ways.script(t.Context(), c, try)
			switch {
			case err != nil:
				t.Fatal(err)
			case flawed != nil && flawed.failsCase:
				got = append(got, "reported")
			case broken != nil:
				got = append(got, "broken")
			case flawed != nil && len(flawed.breaks) == 1 && flawed.breaks.contain(breakKey{rule: rule}):
				got = append(got, "rule-ignored")
			}
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%q, expected %q", got, tt.want)
		}
	}
}

// TestSetupsThatNeedEachOther tests that a way that works is found for setups whose probes use each other, whichever of them is
// tested first, and that both fail if no way works.
func TestSetupsThatNeedEachOther(t *testing.T) {
	s, err := Load(gearman.Protocol)
	if err != nil {
		t.Fatal(err)
	}
	for broken, works := range map[string]bool{
		"": true, "GRAB_JOB": true, "GRAB_JOB_UNIQ": true, "CAN_DO": true, "CAN_DO_TIMEOUT": true, "CAN_DO CAN_DO_TIMEOUT": false,
		"GRAB_JOB GRAB_JOB_UNIQ": false, "CAN_DO GRAB_JOB": true, "CAN_DO_TIMEOUT GRAB_JOB_UNIQ": true,
	} {
		for _, first := range []string{"can-do", "grab-job"} {
			ways := newSetupWays(s.Setups)
			try := func(probe *transcript.Script, _ breaks) (error, bool) {
				for _, st := range probe.Steps {
					if typ := st.Choices[0].Type; typ != nil && slices.Contains(strings.Fields(broken), typ.Name) {
						return errors.New("no reply"), true
					}
				}
				return nil, true
			}
			for _, name := range []string{first, "can-do", "grab-job"} {
				why, depends, err := ways.find(t.Context(), name, try)
				if err != nil || (why == nil) != works || depends != final {
					t.Errorf("without %q, %s first: %s: %v, depends on %d, %v", broken, first, name, why, depends, err)
				}
			}
		}
	}
}

// TestSetupGetsOtherReply tests a server that sends another reply than a setup expects. If the state is there
// nevertheless, one case fails because of the reply, and the others run; a case that itself expects the reply fails.
func TestSetupGetsOtherReply(t *testing.T) {
	t.Parallel()
	const cases = `
@section s
@rules gearman.echo.same-data
@case own
@about A case about the reply.
Client -> Job Server: OPTION_REQ exceptions
Job Server -> Client: OPTION_RES exceptions
@case echo
@about A case that needs the option.
@for n in 1 2 3
Client -> Job Server: setup option
Client -> Job Server: ECHO_REQ "x"*{n}
Job Server -> Client: ECHO_RES "x"*{n}
@case check
@about A case that needs the option, and is about the reply.
Client -> Job Server: setup option
Client -> Job Server: check option
`
	const proof = "@proof\nClient -> Job Server: setup option\nClient -> Job Server: ECHO_REQ y\nJob Server -> Client: ECHO_RES %s\n"
	tests := []struct{ proof, fault, want string }{
		{fmt.Sprintf(proof, "y"), "answer OPTION_REQ ECHO_RES z", "failed failed passed passed failed"},
		{fmt.Sprintf(proof, "z"), "answer OPTION_REQ ECHO_RES z", "failed inconclusive inconclusive inconclusive inconclusive"},
		{"", "answer OPTION_REQ ECHO_RES z", "failed inconclusive inconclusive inconclusive inconclusive"},
		{fmt.Sprintf(proof, "y"), "answer OPTION_REQ ERROR a b", "failed inconclusive inconclusive inconclusive inconclusive"},
		{fmt.Sprintf(proof, "y"), "", "passed passed passed passed passed"},
	}
	for _, test := range tests {
		const setup = "@setup option\n@about The option is set.\n@probe\nClient -> Job Server: setup option\n%s@way OPTION_REQ\n" +
			"{peer} -> Job Server: OPTION_REQ exceptions\nJob Server -> {peer}: OPTION_RES exceptions\n"
		s, err := LoadFS(gearman.Protocol, fstest.MapFS{
			"setup.wire": {Data: fmt.Appendf(nil, setup, test.proof)}, "a.wire": {Data: []byte(cases)},
		})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		synctest.Test(t, func(t *testing.T) {
			for _, res := range (&Runner{Start: faulty(edit(test.fault)), Timeout: time.Second}).Run(t.Context(), s, nil) {
				got = append(got, string(res.Verdict))
				if strings.Contains(res.Note, "apart from") != (res.Verdict == verdict.Passed && test.fault != "") {
					t.Errorf("%s %s: %s", res.Case.ID, res.Verdict, res.Note)
				}
			}
		})
		if strings.Join(got, " ") != test.want {
			t.Errorf("%s, proof %q: %q, want %q", test.fault, test.proof, strings.Join(got, " "), test.want)
		}
	}
}
