package conform

import (
	"fmt"
	"maps"
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
)

// TestMissingMessage tests that a run finds that a server does not implement a message from three cases about it, runs
// other cases only up to this message, and reports one cause.
func TestMissingMessage(t *testing.T) {
	src := "@section s\n@rules gearman.echo.same-data\n"
	for n := range 8 {
		src += fmt.Sprintf("@case option-%d\n@about An option.\nClient -> Job Server: OPTION_REQ exceptions\nJob Server -> Client: OPTION_RES exceptions\n", n)
	}
	for n := range 6 {
		src += fmt.Sprintf("@case echo-%[1]d\n@about An echo.\nClient -> Job Server: ECHO_REQ %[1]d\nJob Server -> Client: ECHO_RES %[1]d\n", n)
	}
	src += "@case later\n@about An option after an echo.\nClient -> Job Server: ECHO_REQ x\nJob Server -> Client: ECHO_RES x\n" +
		"Client -> Job Server: OPTION_REQ exceptions\nJob Server -> Client: OPTION_RES exceptions\n"
	s, err := LoadFS(gearman.Protocol, fstest.MapFS{"a.wire": {Data: []byte(src)}})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name  string
		fault string
		want  map[verdict.Verdict]int
		cause string // the first one
	}{
		{"ignored", "drop OPTION_REQ", map[verdict.Verdict]int{verdict.Passed: 6, verdict.Failed: 3, verdict.Inferred: 6}, "the target does not implement OPTION_REQ: it sent no reply in 3 cases, and"},
		{"closed", "close OPTION_REQ", map[verdict.Verdict]int{verdict.Passed: 6, verdict.Failed: 3, verdict.Inferred: 6}, "it closed the connection in 3 cases"},
		{"refused", `answer OPTION_REQ ERROR "what" "unknown"`, map[verdict.Verdict]int{verdict.Passed: 6, verdict.Failed: 3, verdict.Inferred: 6}, "it replied ERROR in 3 cases"},
		{"refused and a wrong echo", "answer OPTION_REQ ERROR \"what\" \"unknown\"\nalter ECHO_RES data=y", map[verdict.Verdict]int{verdict.Failed: 10, verdict.Inferred: 5}, "OPTION_REQ"},
		{"implemented in part", `drop ECHO_REQ when data != "0"`, map[verdict.Verdict]int{verdict.Passed: 9, verdict.Failed: 6}, "no reply to ECHO_REQ"},
		{"correct", "", map[verdict.Verdict]int{verdict.Passed: 15}, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := Runner{Start: faulty(edit(tt.fault)), Timeout: time.Second, InferAfter: 3}
			results := r.Run(t.Context(), s, nil)
			causes := (&Report{Protocol: gearman.Protocol, Results: results}).Causes()
			checkVerdicts(t, tt.name, results, tt.want)
			if tt.cause == "" && len(causes) > 0 || tt.cause != "" && (len(causes) == 0 || !strings.Contains(causes[0].Text, tt.cause)) {
				t.Errorf("%s: the causes are %+v, expected %q first", tt.name, causes, tt.cause)
			}
		})
	}
}

// TestRefusedBefore tests that the cause names the message that the server refuses, if this message has no reply and
// the case expects the reply to a later message that the server implements.
func TestRefusedBefore(t *testing.T) {
	src := "@section s\n@rules gearman.echo.same-data\n"
	for n := range missingAfter {
		src += fmt.Sprintf("@case echo-%[1]d\n@about An echo.\nWorker -> Job Server: ECHO_REQ %[1]d\nJob Server -> Worker: ECHO_RES %[1]d\n"+
			"@case id-%[1]d\n@about An ID.\nWorker -> Job Server: SET_CLIENT_ID i%[1]d\nWorker -> Job Server: ECHO_REQ x\nJob Server -> Worker: ECHO_RES x\n", n)
	}
	s, err := LoadFS(gearman.Protocol, fstest.MapFS{"a.wire": {Data: []byte(src)}})
	if err != nil {
		t.Fatal(err)
	}
	for fault, want := range map[string]string{
		`answer SET_CLIENT_ID ERROR "what" "unknown"`: "the target does not implement SET_CLIENT_ID: it replied ERROR in 3 cases",
		"close SET_CLIENT_ID":                         "the target does not implement SET_CLIENT_ID: it closed the connection in 3 cases",
	} {
		synctest.Test(t, func(t *testing.T) {
			r := Runner{Start: faulty(edit(fault)), Timeout: time.Second, InferAfter: 3}
			causes := (&Report{Protocol: gearman.Protocol, Results: r.Run(t.Context(), s, nil)}).Causes()
			if len(causes) != 1 || !strings.HasPrefix(causes[0].Text, want) {
				t.Errorf("%s: the causes are %+v, expected one: %s", fault, causes, want)
			}
		})
	}
}

// checkVerdicts reports an error unless the number of results with each verdict is the expected one.
func checkVerdicts(t *testing.T, name string, results []Result, want map[verdict.Verdict]int) {
	t.Helper()
	got := map[verdict.Verdict]int{}
	for _, res := range results {
		got[res.Verdict]++
	}
	if !maps.Equal(got, want) {
		t.Errorf("%s: %v, expected %v", name, got, want)
	}
}

// TestLackingSetups tests results of cases that did not pass because the target does not implement a message, which
// their setups send.
func TestLackingSetups(t *testing.T) {
	s, err := LoadFS(gearman.Protocol, setupSuite)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, fault string
		want        map[verdict.Verdict]int
	}{
		{"a setup without a message that is known to be missing", `answer SUBMIT_JOB ERROR "what" "unknown"`,
			map[verdict.Verdict]int{verdict.Passed: 2, verdict.Inconclusive: 3}},
		{"a setup with a missing message", "close SUBMIT_JOB", map[verdict.Verdict]int{verdict.Passed: 2, verdict.Failed: 3, verdict.Inferred: 3}},
	} {
		suite := *s
		if tt.want[verdict.Inferred] > 0 { // three cases show that the message is missing
			const own = "@section s\n@rules gearman.echo.same-data\n"
			var src strings.Builder
			src.WriteString(own)
			for n := range missingAfter {
				fmt.Fprintf(&src, "@case own-%d\n@about A job.\nClient -> Job Server: SUBMIT_JOB f \"\" x\nJob Server -> Client: JOB_CREATED $job\n", n)
			}
			more, err := LoadFS(gearman.Protocol, fstest.MapFS{"b.wire": {Data: []byte(src.String())}})
			if err != nil {
				t.Fatal(err)
			}
			suite.Cases = slices.Concat(s.Cases, more.Cases)
		}
		synctest.Test(t, func(t *testing.T) {
			r := Runner{Start: faulty(edit(tt.fault)), Timeout: time.Second, InferAfter: 3}
			results := r.Run(t.Context(), &suite, nil)
			causes := (&Report{Protocol: gearman.Protocol, Results: results}).Causes()
			checkVerdicts(t, tt.name, results, tt.want)
			if n := tt.want[verdict.Inferred] + tt.want[verdict.Failed]; n > 0 && (len(causes) != 1 || causes[0].Instances != n) {
				t.Errorf("%s: the causes are %+v, expected one of %d cases", tt.name, causes, n)
			}
		})
	}
}

// TestIllegalRequests tests that a reaction to requests with illegal values shows that the target does not implement
// them only if the target reacts in the same way to another message that it does not implement.
func TestIllegalRequests(t *testing.T) {
	refused, closed := reaction{verb: transcript.Send, text: "refused it"}, reaction{verb: transcript.Closes, text: "closed"}
	three := func(r reaction) map[string]reaction { return map[string]reaction{"a": r, "b": r, "c": r} }
	status, echo := gearman.Protocol.TypeNamed("GET_STATUS"), gearman.Protocol.TypeNamed("ECHO_REQ")
	for _, tt := range []struct {
		about *reactions // what the target does after ECHO_REQ
		want  bool       // GET_STATUS is missing
	}{
		{&reactions{to: three(refused)}, true},
		{&reactions{to: three(closed)}, false},
		{&reactions{to: three(refused), works: true}, false},
		{&reactions{illegal: three(refused)}, false},
	} {
		f := &inference{messages: map[*codec.Type]*reactions{echo: tt.about, status: {illegal: three(refused)}}}
		if _, text, ok := f.missing(status, missingAfter); ok != tt.want {
			t.Errorf("%+v: %q, expected missing: %v", tt.about, text, tt.want)
		}
		f.messages[status].illegal = map[string]reaction{"a": refused}
		if _, text, ok := f.missing(status, 1); ok != tt.want {
			t.Errorf("%+v: after one case %q, expected missing: %v", tt.about, text, tt.want)
		}
	}
}
