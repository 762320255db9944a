package audit

import (
	"strings"
	"testing"

	"jobwire/internal/verdict"
)

// TestCauses: profiles under which a driver fails at the same task, or with the same stack, are one cause. The worst is
// the first, and the first profile of each is the smallest.
func TestCauses(t *testing.T) {
	outcome := func(profile string, v verdict.Verdict, task, note string) Outcome {
		return Outcome{Role: "Client", FaultProfile: FaultProfileNamed(profile), Failure: Failure{Verdict: v, Task: task, Note: note}}
	}
	all := []Outcome{
		outcome("plain", verdict.Completed, "", ""),
		outcome("bytewise", verdict.WrongResult, "put t1-ABCDEF job-a pri=1", "expected 1, got 2"),
		outcome("halves", verdict.Crashed, "delete 7", "exit 2; panic:\nmain.go:17 +0x12"),
		outcome("empty", verdict.FailedCleanly, `put t1-GHIJKL "" pri=1`, ""),
		outcome("large", verdict.Crashed, "peek 9", "exit 2; panic:\nmain.go:17 +0x34"),
	}
	got := Causes(all)
	if len(got) != 2 || got[0].Verdict != verdict.Crashed || got[0].Smallest != "halves" || strings.Join(got[0].Profiles, " ") != "halves large" ||
		got[1].Task != "put t1" || got[1].Verdict != verdict.WrongResult || strings.Join(got[1].Profiles, " ") != "bytewise empty" {
		t.Errorf("got %+v", got)
	}
	want := "one cause under 2 fault profiles: Client, delete 7: crashed; the smallest is halves: halves large\n"
	if text := string(appendCauses(nil, all)); !strings.HasPrefix(text, want) {
		t.Errorf("got %s", text)
	}
}
