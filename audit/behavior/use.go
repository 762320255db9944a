package behavior

import "time"

// Sample is what the processes of a program use at a time.
type Sample struct {
	At          time.Duration // since the beginning
	Process     int           // the process that has run the longest since its start
	Ran, System time.Duration // since the last sample: it ran, and ran in the kernel
	Waited      time.Duration // one of its threads waited for a processor, for waits that have ended since the last sample
	Resident    int64         // bytes, of all processes
	Descriptors int
	Threads     int

	Pending int // bytes of an incomplete message of the server
}

// use is what a program has used.
type use struct {
	descriptors, threads growth

	waits               bool // the program waits since begun
	reported            bool // about this wait
	incomplete          bool // in the middle of a message of the server, for a part of the wait
	pending             int  // as in the last Sample
	begun               Sample
	ran, system, waited time.Duration
}

// growth is how a number has grown since the last round of ended connections.
type growth struct {
	n, ended         int
	rounds, left, of int
}

// Limits for programs that wait. A program may compute something else while it waits, such as in another thread. A loop
// that asks the system again and again whether data has arrived runs in the kernel for a large part of its time. On a
// busy machine, it runs whenever it gets a core, but a short computation takes long, too: a program that has run for
// less time than the loop would on an idle machine is not reported.
const (
	calm    = 500 * time.Millisecond // without a message, before a program counts as waiting
	minWait = 2 * time.Second
	// bytes that a program may take a second for, such as by copying them for each read
	digested    = 1 << 20
	maxShare    = 0.8                     // of a processor core, in the time in which the program does not wait for one
	minRan      = 1600 * time.Millisecond // maxShare of minWait
	kernelShare = 0.1                     // of this time, in the kernel
	maxGrowth   = 64 << 20

	// Rounds of at least so many ended connections, each of which has left nearly as many descriptors or threads.
	minEnded  = 64
	minRounds = 3
	leftShare = 0.8
)

// waiting reports whether all connections of the program wait for the server and have no job, or whether the server is
// gone.
func (m *Monitor) waiting(at time.Duration) bool {
	digests := time.Duration(max(m.size, m.use.pending)/digested) * time.Second
	if at-m.quiet < calm+digests || m.stopped || len(m.conns) == 0 && !m.gone {
		return false
	}
	for _, c := range m.conns {
		if len(c.jobs) > 0 || c.requests.Len() == 0 && c.awaits == 0 && !c.asleep {
			return false
		}
	}
	return true
}

// Sample records what the program uses.
func (m *Monitor) Sample(s Sample) {
	u := &m.use
	m.leak(&u.descriptors, "descriptors", "file descriptors", s.Descriptors, s.At)
	m.leak(&u.threads, "threads", "threads", s.Threads, s.At)
	if s.Pending != u.pending { // bytes arrive
		u.pending, m.quiet = s.Pending, s.At
	}
	waits := m.waiting(s.At) && (!u.waits || m.quiet < u.begun.At)
	switch {
	case !waits:
		u.waits = false
	case !u.waits || s.Process != u.begun.Process:
		u.waits, u.begun, u.reported, u.incomplete = true, s, false, false
		u.ran, u.system, u.waited = 0, 0, 0
	default:
		u.ran, u.system = u.ran+s.Ran, u.system+s.System
		u.waited = min(u.waited+s.Waited, s.At-u.begun.At) // the first wait may have begun earlier
		u.incomplete = u.incomplete || s.Pending > 0
		m.overuse(s)
	}
}

// overuse reports a program that uses a processor or more and more memory while it waits.
func (m *Monitor) overuse(s Sample) {
	u := &m.use
	took := s.At - u.begun.At
	if u.reported || took < minWait {
		return
	}
	what := "waited for the server"
	switch {
	case len(m.conns) == 0:
		what = "had no connection, because the server was gone"
	case u.incomplete:
		what = "waited for the rest of a message"
	}
	if grown := s.Resident - u.begun.Resident; grown >= maxGrowth {
		u.reported = true
		m.report("memory", nil, s.At, "the memory of the program grew by %d MiB in %v, while it %s", grown>>20,
			took.Round(time.Millisecond), what)
	}
	if u.ran > minRan && u.ran.Seconds() > maxShare*(took-u.waited).Seconds() &&
		u.system.Seconds() > kernelShare*u.ran.Seconds() {
		u.reported = true
		m.report("processor", nil, s.At, "the program used a processor core for %.0f %% of %v, and waited for one for %.0f "+
			"%%, while it %s", 100*u.ran.Seconds()/took.Seconds(), took.Round(time.Millisecond),
			100*u.waited.Seconds()/took.Seconds(), what)
	}
}

// leak reports descriptors or threads whose number grows with the connections that have ended. A pool of threads grows
// only at its beginning.
func (m *Monitor) leak(g *growth, name, label string, now int, at time.Duration) {
	now -= len(m.conns)
	ended := m.ended - g.ended
	if ended < minEnded {
		return
	}
	if share := float64(now-g.n) / float64(ended); share < leftShare || share > 1/leftShare {
		g.rounds, g.left, g.of = 0, 0, 0
	} else {
		g.rounds, g.left, g.of = g.rounds+1, g.left+now-g.n, g.of+ended
	}
	if g.n, g.ended = now, m.ended; g.rounds == minRounds {
		m.report(name, nil, at, "%d connections have ended, and the program has %d more %s", g.of, g.left, label)
	}
}
