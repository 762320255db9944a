package loadgen

import (
	"testing"
	"time"

	"jobwire/loadgen/schedule"
)

// TestLateRunEndsWithTheOthers tests that a share of a load from several processes that starts late has only the rest of the duration and of the
// schedule, and is an error after the end.
func TestLateRunEndsWithTheOthers(t *testing.T) {
	rate, err := schedule.Parse("1000/10s,2000-4000/10s")
	if err != nil {
		t.Fatal(err)
	}
	c, err := Config{Duration: 20 * time.Second, Rate: rate}.Late(15 * time.Second)
	if err != nil || c.Duration != 5*time.Second || c.Rate.String() != "3000-4000/5s" {
		t.Errorf("%v, %v, %v", c.Duration, c.Rate, err)
	}
	// After the schedule, its last rate goes on.
	if c, err = (Config{Rate: rate}).Late(30 * time.Second); err != nil || c.Rate.String() != "4000" {
		t.Errorf("%v, %v", c.Rate, err)
	}
	if c, err = (Config{Duration: 20 * time.Second}).Late(20 * time.Second); err == nil {
		t.Errorf("it runs for %v", c.Duration)
	}
}

// TestSharesAddUp tests that the shares of a run have together the clients, workers, jobs and rate of the whole run,
// with different seeds and names.
func TestSharesAddUp(t *testing.T) {
	rate, err := schedule.Parse("poisson:1000-9000/30s")
	if err != nil {
		t.Fatal(err)
	}
	whole := Config{Clients: 16, Workers: 7, Count: 1000003, Rate: rate, Kill: 6, Seed: 9, Prefix: "jobwire"}
	sum, seeds, names := Config{}, map[uint64]bool{}, map[string]bool{}
	peak := 0.0
	for i := range 3 {
		c, err := Share{Index: i, Shares: 3}.Of(whole)
		if err != nil {
			t.Fatal(err)
		}
		sum.Clients += c.Clients
		sum.Workers += c.Workers
		sum.Count += c.Count
		sum.Kill += c.Kill
		peak += c.Rate.Steps[0].To
		seeds[c.Seed], names[c.Prefix] = true, true
	}
	if sum.Clients != 16 || sum.Workers != 7 || sum.Count != 1000003 || sum.Kill != 6 || peak != 9000 {
		t.Errorf("%+v, %v jobs/s", sum, peak)
	}
	if len(seeds) != 3 || len(names) != 3 {
		t.Errorf("seeds %v, names %v", seeds, names)
	}
	for _, s := range []Share{{Index: 0, Shares: 17}, {Index: 3, Shares: 3}, {Index: -1, Shares: 3}} {
		if _, err := s.Of(whole); err == nil {
			t.Errorf("there is a %s", s)
		}
	}
}
