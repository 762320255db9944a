package audit

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"jobwire/codec"
	"jobwire/internal/verdict"
)

// TestCauses: profiles under which a driver fails at the same task, with the same kind of answer after the same kind of
// message, or with the same stack, are one cause. Others are not. The worst is the first, and the first profile of each
// is the smallest.
func TestCauses(t *testing.T) {
	outcome := func(profile string, v verdict.Verdict, task, note, last string) Outcome {
		return Outcome{Role: "Client", FaultProfile: FaultProfileNamed(profile),
			Failure: Failure{Verdict: v, Task: task, Note: note,
				Recent: []Recent{{Frame: codec.Frame{From: codec.Server, Type: &codec.Type{Name: last}}}}}}
	}
	all := []Outcome{
		outcome("plain", verdict.Completed, "", "", ""),
		outcome("bytewise", verdict.WrongResult, "peek 7", `expected the answer ok job-a, got ok ""`, "FOUND"),
		outcome("header-apart", verdict.FailedCleanly, "peek 7", `expected the answer ok job-a, got error other "no body"`,
			"FOUND"),
		outcome("halves", verdict.Crashed, "delete 7", "exit 2; panic:\nmain.go:17 +0x12", "DELETED"),
		outcome("together", verdict.WrongResult, "peek 8", `expected the answer ok job-a, got ok ""`, "NOT_FOUND"),
		outcome("pieces", verdict.WrongResult, "reserve t1-ABCDEF timeout=4", `expected the answer ok 3 job-a, got ok 3 ""`,
			"FOUND"),
		outcome("nul-bytes", verdict.WrongResult, "reserve t1-GHIJKL timeout=4",
			`repetition 2: expected the answer ok 9 "\0\0\r\n", got ok 9 ""`, "FOUND"),
		outcome("empty", verdict.FailedCleanly, "peek 9", `expected the answer ok "", got error connection "no body"`,
			"FOUND"),
		outcome("large", verdict.Crashed, "touch 9", "exit 2; panic:\nmain.go:17 +0x34", "TOUCHED"),
		outcome("restarts", verdict.Crashed, "touch 9", "exit 2; panic:\nmain.go:44 +0x34", "TOUCHED"),
	}
	var got []string
	for _, c := range Causes(all) {
		got = append(got, fmt.Sprintf("%s, %s: %s", c.Task, c.Verdict, strings.Join(c.Profiles, " ")))
		if c.Smallest != c.Profiles[0] {
			t.Errorf("the smallest of %v is %s", c.Profiles, c.Smallest)
		}
	}
	want := []string{"delete 7, crashed: halves large", "touch 9, crashed: restarts", "peek 7, wrong result: bytewise",
		"peek 8, wrong result: together", "reserve t1, wrong result: pieces nul-bytes", "peek 7, failed cleanly: " +
			"header-apart",
		"peek 9, failed cleanly: empty"}
	if !slices.Equal(got, want) {
		t.Errorf("expected\n%s\ngot\n%s", strings.Join(want, "\n"), strings.Join(got, "\n"))
	}
	first := "one cause under 2 fault profiles: Client, delete 7: crashed; the smallest is halves: halves large\n"
	if text := string(appendCauses(nil, all)); !strings.HasPrefix(text, first) {
		t.Errorf("got %s", text)
	}
}
