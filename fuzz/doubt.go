package fuzz

import "time"

// doubt is what came of suspicions of a kind that did not show again.
type doubt struct {
	times int
	until time.Time // none is examined before
	over  bool      // none is examined any more
}

// Suspicions that were doubted so often rest, longer each time. They are not let be for good: what
// takes others, or chance, may need many attempts to show.
const (
	maxDoubts      = 3  // of a kind
	maxDoubtsWhole = 12 // of whatever one oracle has of servers as a whole

	firstRest = 5 * time.Second
	longRest  = 40 * time.Second
)

// doubt notes that something could not be confirmed.
func (f *Fuzzer) doubt(keys ...string) {
	f.note(func() {
		for _, k := range keys {
			f.doubts[k] = f.doubts[k].more(time.Now())
		}
		f.stats.Unconfirmed++
	})
}

// more returns the doubt behind another suspicion.
func (d doubt) more(now time.Time) doubt {
	d.times++
	if n := d.times - maxDoubts; n >= 0 {
		d.until = now.Add(min(longRest, firstRest<<min(n, 8)))
	}
	return d
}

// rests reports whether suspicions of a kind are not to be examined now: so many were doubted.
func (f *Fuzzer) rests(key string, most int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	d := f.doubts[key]
	return d.over || d.times >= most && time.Now().Before(d.until)
}

// letBe has suspicions of a kind not examined any more.
func (f *Fuzzer) letBe(keys ...string) {
	f.note(func() {
		for _, k := range keys {
			f.doubts[k] = doubt{over: true}
		}
	})
}
