package mutants

// ledger is what a hook can know of peers and jobs by listening.
type ledger struct {
	jobs  map[string]*job // by ID
	order []*job          // as they were put
	peers map[*conn]*peer
	heard int // commands from all peers, legal or not
}

// job is one job as it was seen from outside.
type job struct {
	id                   string
	priority, delay, ttr string
	tube, body           string
	producer             *conn
	owner                *conn  // who has reserved it, or nil
	reserved             bool   // somebody had it once
	state, was           string // by now, and before that
	last                 string // the reply to the last command that changed it
}

// peer is one connection as it was seen from outside.
type peer struct {
	conn    *conn
	request frame  // its last one
	waits   bool   // for the reply to it
	heard   int    // commands
	tube    string // that it uses
	watched bool   // it has watched a tube once
	quit    bool
	before  string // its command before the last one
	heardOf string // the last reply to it
}

// met notes that a command came.
func (l *ledger) met(c *conn, f *frame) {
	p := l.peers[c]
	l.heard++
	p.heard++
	p.before = ""
	if t := p.request.Type; t != nil {
		p.before = t.Name
	}
	p.request, p.waits = f.Clone(), true
	if f.Type != nil {
		p.watched = p.watched || f.Type.Name == "watch"
		p.quit = p.quit || f.Type.Name == "quit"
	}
}

// replied notes what a reply says to the peer's last request.
func (l *ledger) replied(p *peer, f *frame) {
	p.heardOf = f.Type.Name
	if do := learnt[f.Type.Name]; do != nil {
		do(l, p, f)
	}
}

// learnt is what replies tell, by their row.
var learnt = map[string]func(l *ledger, p *peer, f *frame){
	"USING": func(_ *ledger, p *peer, f *frame) { p.tube = arg(f, 0) },
	"INSERTED": func(l *ledger, p *peer, f *frame) {
		put := args(&p.request)
		j := &job{id: arg(f, 0), priority: put[0], delay: put[1], ttr: put[2], body: put[3], tube: p.tube, producer: p.conn, state: "ready"}
		if j.delay != "0" {
			j.state = "delayed"
		}
		l.jobs[j.id] = j
		l.order = append(l.order, j)
	},
	"RESERVED": func(l *ledger, p *peer, f *frame) {
		if j := l.jobs[arg(f, 0)]; j != nil {
			j.owner, j.reserved, j.was, j.state, j.last = p.conn, true, j.state, "reserved", "RESERVED"
		}
	},
	"RELEASED": func(l *ledger, p *peer, f *frame) {
		state := "ready"
		if arg(&p.request, 2) != "0" {
			state = "delayed"
		}
		l.moved(p, f, state)
	},
	"BURIED":     func(l *ledger, p *peer, f *frame) { l.moved(p, f, "buried") },
	"KICKED_JOB": func(l *ledger, p *peer, f *frame) { l.moved(p, f, "ready") },
	"DELETED":    func(l *ledger, p *peer, f *frame) { l.moved(p, f, "deleted") },
}

// moved notes that the job of the peer's request is nobody's any more.
func (l *ledger) moved(p *peer, f *frame, state string) {
	if j := l.jobs[arg(&p.request, 0)]; j != nil {
		j.owner, j.was, j.state, j.last = nil, j.state, state, f.Type.Name
	}
}

// find returns the first job of which it holds, or nil.
func (l *ledger) find(holds func(j *job) bool) *job {
	for _, j := range l.order {
		if holds(j) {
			return j
		}
	}
	return nil
}

// held returns the jobs that a connection has.
func (l *ledger) held(c *conn) []*job {
	var all []*job
	for _, j := range l.order {
		if j.owner == c {
			all = append(all, j)
		}
	}
	return all
}

// left notes that a connection has ended.
func (l *ledger) left(c *conn) {
	for _, j := range l.order {
		if j.owner == c {
			j.owner, j.state = nil, "ready"
		}
	}
}
