package conform

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"jobwire/codec/gearman"
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
		want  map[Verdict]int
		cause string // the first one
	}{
		{"ignored", "drop OPTION_REQ", map[Verdict]int{Passed: 6, Failed: 3, Inferred: 6}, "the target does not implement OPTION_REQ: it sent no reply in 3 cases, and"},
		{"closed", "close OPTION_REQ", map[Verdict]int{Passed: 6, Failed: 3, Inferred: 6}, "it closed the connection in 3 cases"},
		{"refused", `answer OPTION_REQ ERROR "what" "unknown"`, map[Verdict]int{Passed: 6, Failed: 3, Inferred: 6}, "it replied ERROR in 3 cases"},
		{"refused and a wrong echo", "answer OPTION_REQ ERROR \"what\" \"unknown\"\nalter ECHO_RES data=y", map[Verdict]int{Failed: 10, Inferred: 5}, "OPTION_REQ"},
		{"implemented in part", `drop ECHO_REQ when data != "0"`, map[Verdict]int{Passed: 9, Failed: 6}, "no reply to ECHO_REQ"},
		{"correct", "", map[Verdict]int{Passed: 15}, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := Runner{Start: faulty(edit(tt.fault)), Timeout: time.Second, InferAfter: 3}
			results := r.Run(t.Context(), s, nil)
			got := map[Verdict]int{}
			for _, res := range results {
				got[res.Verdict]++
			}
			if fmt.Sprint(got) != fmt.Sprint(tt.want) {
				t.Errorf("%s: %v, expected %v", tt.name, got, tt.want)
			}
			causes := (&Report{Protocol: gearman.Protocol, Results: results}).Causes()
			if tt.cause == "" && len(causes) > 0 || tt.cause != "" && (len(causes) == 0 || !strings.Contains(causes[0].Text, tt.cause)) {
				t.Errorf("%s: the causes are %+v, expected %q first", tt.name, causes, tt.cause)
			}
		})
	}
}
