package conform

import (
	"testing"
	"time"
)

// TestLikelierCrash: if no case crashes the target alone, the case that the profile lists as crashing is blamed, then one that
// noticed the crash, then the last one.
func TestLikelierCrash(t *testing.T) {
	at := func(id string, v Verdict, second int) *attempt {
		return &attempt{Result: Result{Case: &Case{ID: id, Family: id}, Verdict: v}, to: time.Unix(int64(second), 0)}
	}
	listed, noticed, later, early := at("p.listed", Passed, 1), at("p.noticed", Failed, 1), at("p.later", Passed, 3), at("p.early", Passed, 1)
	r := Runner{Profile: &Profile{Flaky: []Exception{{Cases: "p.listed", Crash: true}}, Known: []Exception{{Cases: "p.early"}}}}
	for _, pair := range [][2]*attempt{{listed, noticed}, {listed, later}, {later, early}} {
		if !r.likelier(pair[0], pair[1]) || r.likelier(pair[1], pair[0]) {
			t.Errorf("%s is not likelier than %s", pair[0].Case.ID, pair[1].Case.ID)
		}
	}
}
