package fuzz

import (
	"context"
	"sync"
	"time"
)

// desk has what is suspected until it is examined, in a lab, while the fuzzing goes on.
type desk struct {
	f       *Fuzzer
	spent   time.Duration // on examining
	mu      sync.Mutex
	matters []*matter
	waiting map[string]bool // the keys of these, and of the one that is being examined
	closed  bool
	more    chan struct{}
}

// matter is what is to be examined together.
type matter struct {
	key      string
	suspects []*suspicion
	whole    *Fault  // what the server as a whole has
	done     []*Conv // conversations behind which it was seen
	kept     bool    // descriptors have stayed behind them
	grown    bool    // memory has, behind the suspect
}

// maxMatters is how many may wait: what shows again is brought again.
const maxMatters = 500

func newDesk(f *Fuzzer) *desk {
	return &desk{f: f, waiting: map[string]bool{}, more: make(chan struct{}, 1)}
}

// keyOf is the same for matters that are most likely one.
func (d *desk) keyOf(m *matter) string {
	switch {
	case m.kept:
		return Descriptors
	case m.whole != nil && len(m.suspects) == 0:
		return m.whole.Oracle + " of many " + m.whole.Law
	}
	s := m.suspects[0]
	return quickKey(d.f.cfg.Protocol, s.conv, brought(s.fault, m.whole))
}

// add puts a matter on the desk, unless one like it is there. What ends servers comes first.
func (d *desk) add(m *matter) {
	m.key = d.keyOf(m)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.waiting[m.key] || len(d.matters) >= maxMatters {
		return
	}
	d.waiting[m.key] = true
	if at := 0; m.whole != nil {
		for at < len(d.matters) && d.matters[at].whole != nil {
			at++
		}
		d.matters = append(d.matters[:at], append([]*matter{m}, d.matters[at:]...)...)
	} else {
		d.matters = append(d.matters, m)
	}
	select {
	case d.more <- struct{}{}:
	default:
	}
}

// has reports whether a matter is on the desk.
func (d *desk) has(key string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.waiting[key]
}

// take returns the next matter, or nil.
func (d *desk) take() *matter {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.matters) == 0 {
		return nil
	}
	m := d.matters[0]
	d.matters = d.matters[1:]
	return m
}

// close says that nothing more comes.
func (d *desk) close() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	select {
	case d.more <- struct{}{}:
	default:
	}
}

// work examines what comes, until time is up or all that came was.
func (d *desk) work(ctx context.Context) {
	for ctx.Err() == nil {
		if m := d.take(); m != nil {
			d.examine(m)
			continue
		}
		d.mu.Lock()
		over := d.closed && len(d.matters) == 0
		d.mu.Unlock()
		if over {
			return
		}
		select {
		case <-d.more:
		case <-ctx.Done():
		}
	}
}

// some examines what has come while the fuzzing rests, for half of the time.
func (d *desk) some(ctx context.Context) {
	for ctx.Err() == nil && (d.spent < time.Since(d.f.start)/2 || d.f.cfg.First) {
		m := d.take()
		if m == nil {
			return
		}
		d.examine(m)
	}
}

// examine finds out what there is to a matter.
func (d *desk) examine(m *matter) {
	f, start := d.f, time.Now()
	switch {
	case m.kept:
		f.keeper(m.done)
	case m.grown:
		f.grown(m.suspects[0].conv)
	default:
		f.examine(m.suspects, m.whole, m.done)
	}
	d.spent += time.Since(start)
	d.mu.Lock()
	delete(d.waiting, m.key)
	d.mu.Unlock()
	if f.cfg.First && f.stats.Findings > 0 {
		f.enough()
	}
}

// old reports whether a suspicion is no news: it is a finding already, which the server has
// survived, was doubted often, or is to be examined.
func (f *Fuzzer) old(c *Conv, v *Fault) bool {
	key := quickKey(f.cfg.Protocol, c, v)
	if f.desk.has(key) {
		return true
	}
	if f.rests(key, maxDoubts) {
		return true
	}
	f.mu.Lock()
	told := f.quick[key] || f.habitual(c, v)
	f.mu.Unlock()
	if !told {
		return false
	}
	f.again.Add(1)
	f.shun(c, v)
	return true
}
