package mutants

import (
	"slices"
	"strings"
)

// ledger is what a hook can know of peers and jobs by listening.
type ledger struct {
	order []*job // as they were created
	peers map[*conn]*peer
	all   []*peer // as they came, also those that have left
}

// job is one job as it was seen from outside.
type job struct {
	name, key, args string
	kind            byte  // its type
	by              *conn // who created it
	handle          string
	waits           []*conn // applications that wait for it, the first one first
	dups            int     // jobs that were taken for it
	lastArgs        string  // of the last one of those, or its own

	worker    *conn
	assigned  bool // somebody had it once
	lost      int  // how often its worker left
	announced int
	progress  string // the latest, as it stands in the packet
	first     string // and the first
	finished  bool
	code      byte
	result    string
	orphan    bool // its creator left while it was being done
}

// peer is one connection as it was seen from outside.
type peer struct {
	conn    *conn
	last    string   // its packet before the one that is being handled
	can     []string // as its latest list has it
	lists   int
	created []*job // by its requests, duplicates are the jobs that stand
	asked   int    // for jobs
	told    int    // no, in a row
	slept   int
	asleep  bool
	woken   int  // by noops
	idle    bool // woken and has not asked since
	bye     bool
	job     *job
	done    []*job
	ended   bool // it says nothing more
	left    bool
}

func (j *job) queued() bool { return !j.finished && j.worker == nil }

// waits returns the job that the peer waits for, or nil.
func (p *peer) waits() *job {
	for _, j := range p.created {
		if !j.finished && slices.Contains(j.waits, p.conn) {
			return j
		}
	}
	return nil
}

// does reports whether the worker has announced the name.
func (p *peer) does(name string) bool { return slices.Contains(p.can, name) }

// find returns the first job of which it holds, or nil.
func (l *ledger) find(holds func(j *job) bool) *job {
	i := slices.IndexFunc(l.order, holds)
	if i < 0 {
		return nil
	}
	return l.order[i]
}

// byHandle returns the job with that handle, or nil.
func (l *ledger) byHandle(h string) *job {
	return l.find(func(j *job) bool { return h != "" && j.handle == h })
}

// queue returns the jobs of a name that wait for a worker.
func (l *ledger) queue(name string) []*job {
	var all []*job
	for _, j := range l.order {
		if j.queued() && j.name == name {
			all = append(all, j)
		}
	}
	return all
}

// heard is what the ledger learns of the packets of peers, by their row. It tells which job they are about.
var heard = map[string]func(l *ledger, p *peer, f *frame) *job{
	"worker_connect": func(_ *ledger, p *peer, f *frame) *job {
		p.can, p.bye = args(f), false
		p.lists++
		return p.job
	},
	"worker_disconnect": func(l *ledger, p *peer, _ *frame) *job {
		j := p.job
		l.lose(p)
		p.can, p.bye, p.asleep = nil, true, false
		return j
	},
	"worker_sleep": func(_ *ledger, p *peer, _ *frame) *job {
		p.slept++
		p.asleep = p.job == nil
		return p.job
	},
	"job_create_req": func(l *ledger, p *peer, f *frame) *job { return l.create(p, args(f)) },
	"job_assign_req": func(_ *ledger, p *peer, _ *frame) *job {
		p.asked++
		p.asleep, p.idle = false, false
		return p.job
	},
	"job_status_announce": func(_ *ledger, p *peer, f *frame) *job {
		if j := p.job; j != nil {
			j.announced++
			j.progress = strings.Join(args(f), "")
			if j.announced == 1 {
				j.first = j.progress
			}
		}
		return p.job
	},
	"job_complete_announce": func(_ *ledger, p *peer, f *frame) *job {
		j := p.job
		if j != nil {
			j.finished, j.code, j.result, j.worker = true, f.Arg(0)[0], arg(f, 1), nil
			p.done, p.job = append(p.done, j), nil
		}
		return j
	},
	"job_status_req":   func(l *ledger, _ *peer, f *frame) *job { return l.byHandle(arg(f, 0)) },
	"job_complete_req": func(l *ledger, _ *peer, f *frame) *job { return l.byHandle(arg(f, 0)) },
}

// create notes a job, or a duplicate of one.
func (l *ledger) create(p *peer, a []string) *job {
	j := l.standing(a[0], a[1])
	if j == nil {
		j = &job{name: a[0], key: a[1], kind: a[3][0], by: p.conn}
		l.order = append(l.order, j)
	} else {
		j.dups++
	}
	j.lastArgs = a[4]
	if j.dups == 0 {
		j.args = a[4]
	}
	p.created = append(p.created, j)
	if a[3] == "\x00" {
		j.waits = append(j.waits, p.conn)
	}
	return j
}

// standing returns the job that one with this name and key is a duplicate of, or nil.
func (l *ledger) standing(name, key string) *job {
	return l.find(func(j *job) bool { return key != "" && !j.finished && j.name == name && j.key == key })
}

// lose takes the worker's job from it.
func (l *ledger) lose(p *peer) {
	if j := p.job; j != nil {
		j.worker, p.job = nil, nil
		j.lost++
	}
}

// said is what the ledger learns of what the server sends, by its row; about is the job that
// the server speaks for.
var said = map[string]func(l *ledger, p *peer, f *frame, about *job){
	"job_create_res": func(_ *ledger, _ *peer, f *frame, about *job) {
		if h := arg(f, 0); h != "" && about != nil {
			about.handle = h
		}
	},
	"job_assign_res": func(l *ledger, p *peer, f *frame, _ *job) {
		j := l.find(func(j *job) bool { return j.queued() && j.name == arg(f, 0) && j.args == arg(f, 1) })
		if j != nil {
			j.worker, j.assigned, p.job = p.conn, true, j
		}
		p.told = 0
	},
	"noop": func(_ *ledger, p *peer, _ *frame, _ *job) {
		if p.asleep {
			p.asleep, p.idle = false, true
			p.woken++
		}
	},
}

// ends notes that nothing more comes from a peer.
func (l *ledger) ends(p *peer) {
	p.ended = true
	for _, j := range p.created {
		j.waits = slices.DeleteFunc(j.waits, func(c *conn) bool { return c == p.conn })
		j.orphan = j.orphan || j.by == p.conn && j.worker != nil
	}
}

// leaves notes that a connection has ended.
func (l *ledger) leaves(p *peer) {
	p.left = true
	l.lose(p)
	delete(l.peers, p.conn)
}
