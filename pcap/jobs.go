package pcap

import (
	"fmt"
	"hash/maphash"
	"net/netip"
	"time"

	"jobwire/codec"
)

// Bounds of what is remembered.
const (
	maxJobs      = 1 << 16 // jobs, and those that wait for their handle
	minSweepJobs = maxJobs / 4
	maxFunctions = 1000
	maxOdd       = 1000 // jobs that are told by name
	maxAsked     = 1 << 16
	maxWaiters   = 64 // clients that wait for one job
)

// Jobs follows jobs across connections, by the handles of their server. Where a
// protocol gives a job none, it goes by what the job is.
type Jobs struct {
	rows      map[*codec.Type][2]*followed
	jobs      map[jobKey]*job
	alike     map[likeness][]*job // where a handle does not tell: those that no worker has
	links     map[int]*link       // by connection
	functions map[string]*JobStats
	report    JobReport
	sweep     int // number of jobs at which those that have ended are forgotten
	nameless  int // jobs without a handle
	free      int // jobs in alike
	seed      maphash.Seed

	trace *trace
	lives lives
}

type jobKey struct {
	server netip.AddrPort
	handle string
}

// likeness is what two jobs have in common that nothing tells apart.
type likeness struct {
	server netip.AddrPort
	sum    uint64 // of function and input
}

// link is what matters of a connection.
type link struct {
	id     int
	ends   int
	over   bool  // whoever was there has left
	broke  bool  // without waiting until its last words were read
	asked  []ask // requests whose replies are not there
	tube   string
	limits map[string]int64 // nanoseconds by function
	has    *job             // of a worker that has one at a time
	waits  []*job           // of a client that is told of their ends, where that does not say which
	worked bool             // it has asked for more than to make jobs

	yielded int64 // when it last said of a function that it cannot do it any more
}

// ask is a request that waits for its reply.
type ask struct {
	row    *followed // nil if it has nothing to do with jobs
	job    *job
	handle string
	number uint64
}

// job is one that has not been forgotten.
type job struct {
	key       jobKey
	function  string
	stats     *JobStats
	like      likeness
	submitted int64 // and from when on it could be assigned: with a delay that is later
	ready     int64
	first     int64 // assigned for the first time
	assigned  int64
	ended     int64
	told      int64
	assigns   int
	ends      int
	worker    *link // it was assigned to last
	waiters   []*link
	extended  int64  // when the worker was last given its whole time again
	limit     int64  // nanoseconds that a worker may take, 0 if that is not known
	why       string // it can be assigned again
	failed    bool   // the first end is a failure

	unheard   bool // nobody waits for its end, on purpose
	raised    bool // it has ended by an exception
	buried    bool
	nobody    bool // was there to hear of its end
	alone     bool // stats are its own
	uncertain bool
	life      *Life
	held      []*Item // while its handle is not known, for a trace
}

// NewJobs returns one that knows no job yet.
func NewJobs() *Jobs {
	return &Jobs{rows: followedRows(), jobs: map[jobKey]*job{}, alike: map[likeness][]*job{}, links: map[int]*link{},
		functions: map[string]*JobStats{}, seed: maphash.MakeSeed(), sweep: minSweepJobs}
}

// Add follows the jobs in an item.
func (j *Jobs) Add(it *Item) {
	switch it.Kind {
	case Message:
		if it.Frame.Type != nil {
			j.message(it)
			return
		}
		fallthrough
	case Violates:
		j.unread(it)
	case Gap:
		if l := j.links[it.Conn.ID]; l != nil {
			l.asked, l.waits = nil, nil
		}
	case Ends, Breaks:
		j.end(it)
	}
}

// unread keeps requests and replies in step where a message cannot be taken for what it seems.
func (j *Jobs) unread(it *Item) {
	tab := tableOf(it.Conn.Protocol)
	if tab == nil || !tab.serial {
		return
	}
	l := j.link(it)
	if it.From == codec.Peer {
		l.push(ask{})
	} else {
		l.pop()
	}
}

func (j *Jobs) link(it *Item) *link {
	l := j.links[it.Conn.ID]
	if l == nil {
		if len(j.links) >= 2*maxConns { // of connections that never end
			clear(j.links)
		}
		if l = (&link{id: it.Conn.ID}); !it.Conn.Uncertain {
			l.tube = tableOf(it.Conn.Protocol).tube
		}
		j.links[it.Conn.ID] = l
	}
	return l
}

// end notes that a side has closed. What its worker had is for others.
func (j *Jobs) end(it *Item) {
	if tableOf(it.Conn.Protocol) == nil {
		return
	}
	l := j.link(it) // also where nothing was said yet: what was said to it may be captured late
	l.over, l.broke = true, l.broke || it.Kind == Breaks
	if l.ends++; l.ends > 1 || it.Kind == Breaks {
		delete(j.links, l.id)
		l.asked = nil
	}
	j.gives(l, workerLeft)
}

// gives puts back what a worker had.
func (j *Jobs) gives(l *link, why string) {
	if w := l.has; w != nil {
		l.has = nil
		w.why = why
		j.alike[w.like] = append([]*job{w}, j.alike[w.like]...)
		j.free++
	}
}

func (l *link) push(a ask) {
	if len(l.asked) < maxAsked {
		l.asked = append(l.asked, a)
	}
}

func (l *link) pop() (a ask) {
	if len(l.asked) > 0 {
		a = l.asked[0]
		l.asked[0] = ask{}
		if l.asked = l.asked[1:]; len(l.asked) == 0 {
			l.asked = nil
		}
	}
	return a
}

// message follows the job in a message.
func (j *Jobs) message(it *Item) {
	t := it.Frame.Type
	r := j.rows[t][it.From]
	if r == nil {
		if tab := tableOf(it.Conn.Protocol); tab == nil || !tab.serial {
			return
		} else if l := j.link(it); it.From == codec.Server {
			l.pop()
		} else if len(t.Replies) > 0 {
			l.push(ask{})
		}
		return
	}
	l := j.link(it)
	e := deedOf{it: it, link: l, row: r, handle: string(arg(it.Frame, r.keyAt)), function: string(arg(it.Frame, r.functionAt))}
	if r.moreAt >= 0 {
		e.number = number(it.Frame, r.moreAt)
	}
	if r.table.scoped {
		e.handle = e.function + ":" + e.handle
	}
	switch {
	case r.table.serial && it.From == codec.Server:
		e.ask = l.pop()
	case r.table.serial && r.does != doesSubmits && len(t.Replies) > 0: // what it does counts once it is confirmed
		l.push(ask{row: r, handle: e.handle, number: e.number})
		if r.does == doesNames { // of what is put behind it, confirmed or not
			l.tube = e.function
		}
		j.show(&e, j.known(&e))
		return
	}
	if r.does == doesConfirms {
		if e.ask.row == nil {
			return
		}
		e.row, e.handle, e.number = e.ask.row, e.ask.handle, e.ask.number
	}
	j.show(&e, deeds[e.row.does](j, &e))
}

// deedOf is a deed with all that there is to know about it.
type deedOf struct {
	it       *Item
	link     *link
	row      *followed
	handle   string
	function string
	number   uint64
	ask      ask // the request that this replies to
}

func (e *deedOf) key() jobKey { return jobKey{e.it.Conn.Server, e.handle} }

// tableOf returns the table of a protocol, or nil.
func tableOf(p *codec.Protocol) *jobTable {
	for i := range jobTables {
		if jobTables[i].protocol == p {
			return &jobTables[i]
		}
	}
	return nil
}

func (j *Jobs) of(function string) *JobStats {
	s := j.functions[function]
	if s == nil {
		if len(j.functions) >= maxFunctions {
			function = "others"
		}
		if s = j.functions[function]; s == nil {
			s = &JobStats{}
			j.functions[function] = s
		}
	}
	return s
}

// remember follows a job. From time to time it forgets those of which nothing more is to come.
func (j *Jobs) remember(w *job) {
	if len(j.jobs) >= j.sweep {
		for key, old := range j.jobs {
			if old.ends > 0 && (old.told != 0 || old.unheard || old.nobody || j.sweep >= maxJobs) {
				j.settle(old)
				delete(j.jobs, key)
			}
		}
		j.sweep = min(maxJobs, max(minSweepJobs, 2*len(j.jobs)))
		if len(j.jobs) > maxJobs*7/8 { // none has ended: not for every job
			j.sweep = maxJobs + 1
		}
	}
	if len(j.jobs) >= maxJobs {
		if j.report.Forgotten++; j.report.Forgotten%(maxJobs/8) == 0 {
			j.sweep = maxJobs
		}
		return
	}
	j.jobs[w.key] = w
}

func (j *Jobs) odd(w *job, format string, args ...any) {
	if len(j.report.Odd) < maxOdd {
		j.report.Odd = append(j.report.Odd, OddJob{w.key.handle, w.key.server.String(), w.function, fmt.Sprintf(format, args...), w.uncertain})
	}
}

// seconds is a number of them in nanoseconds.
func seconds(n uint64) int64 { return int64(min(n, 1<<32)) * int64(time.Second) }
