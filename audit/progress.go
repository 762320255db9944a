package audit

import (
	"slices"
	"sync"
	"time"
)

// Progress shows what a stress test is doing. The zero value is usable, its methods may be called from any goroutine,
// and those of a nil Progress do nothing.
type Progress struct {
	mu     sync.Mutex
	status Status
	now    []*Activity
}

// Status is what a stress test is doing at a time.
type Status struct {
	Runs  int // all repetitions under all profiles; 0: not yet known
	Done  int // repetitions that have ended
	Now   []Activity
	Ended []*Outcome // in the order of their ends
}

// Activity is a run that takes place.
type Activity struct {
	Role                    string
	Profile                 *FaultProfile
	Repetition, Repetitions int // Repetition is from 1
	Task                    string
	Began                   time.Time // of the task, or of the run if there is no task yet
}

// Status returns what the stress test is doing.
func (p *Progress) Status() Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.status
	s.Ended = slices.Clone(s.Ended)
	for _, a := range p.now {
		s.Now = append(s.Now, *a)
	}
	return s
}

// change changes the progress.
func (p *Progress) change(f func(*Status)) {
	if p != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		f(&p.status)
	}
}

// plan records how many runs the stress test has.
func (p *Progress) plan(runs int) { p.change(func(s *Status) { s.Runs = runs }) }

// done records that a repetition has ended, or was left out.
func (p *Progress) done() { p.change(func(s *Status) { s.Done++ }) }

// ended records that an outcome is complete.
func (p *Progress) ended(o *Outcome) { p.change(func(s *Status) { s.Ended = append(s.Ended, o) }) }

// begins records that a run begins. The run calls the returned function at its end.
func (p *Progress) begins(a *Activity) (ends func()) {
	p.change(func(*Status) {
		a.Began = time.Now()
		p.now = append(p.now, a)
	})
	return func() {
		p.change(func(*Status) { p.now = slices.DeleteFunc(p.now, func(x *Activity) bool { return x == a }) })
	}
}

// task records that a run begins a task.
func (p *Progress) task(a *Activity, task string) {
	p.change(func(*Status) { a.Task, a.Began = task, time.Now() })
}
