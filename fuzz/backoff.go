package fuzz

import "time"

// backoff counts the observations with one key that were not reproduced.
type backoff struct {
	times int
	until time.Time // ignored until then
	over  bool      // ignored for good
}

// Observations that were not reproduced this often are ignored for some time, longer each time. They are not ignored
// for good, because a fault that depends on other inputs or on chance may need many attempts.
const (
	maxMisses      = 3  // with one key
	maxMissesWhole = 12 // of one oracle about servers as a whole

	firstBackoff   = 5 * time.Second
	longestBackoff = 40 * time.Second
)

// backoff notes that observations with these keys were not reproduced.
func (f *Fuzzer) backoff(keys ...string) {
	f.note(func() {
		for _, k := range keys {
			f.backoffs[k] = f.backoffs[k].more(time.Now())
		}
		f.stats.NotReproduced++
	})
}

// more returns the backoff after another observation that was not reproduced.
func (d backoff) more(now time.Time) backoff {
	d.times++
	if n := d.times - maxMisses; n >= 0 {
		d.until = now.Add(min(longestBackoff, firstBackoff<<min(n, 8)))
	}
	return d
}

// suppressed reports whether observations with the key are ignored now, because at least most were not reproduced.
func (f *Fuzzer) suppressed(key string, most int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	d := f.backoffs[key]
	return d.over || d.times >= most && time.Now().Before(d.until)
}

// suppress ignores observations with these keys for the rest of the run.
func (f *Fuzzer) suppress(keys ...string) {
	f.note(func() {
		for _, k := range keys {
			f.backoffs[k] = backoff{over: true}
		}
	})
}
