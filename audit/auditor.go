package audit

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"jobwire/codec"
	"jobwire/judge"
)

// Options are what an audit leaves to its user. Only Protocol must be set.
type Options struct {
	Protocol *codec.Protocol
	Codec    codec.Options // limits of a message, and rules that are not enforced
	Server   bool          // judge what the server says, too

	// Found is called for each violation as it is heard. It must not keep the finding, nor
	// take long: everything waits.
	Found func(*Finding)
}

// Bounds of what is kept.
const (
	maxKept   = 3       // findings of a rule and a side that are kept as a whole; others are counted
	before    = 6       // messages of the connection that stand before one
	maxRemind = 4 << 10 // bytes of a message that is kept as what went before another

	keptBuffer = 64 << 10 // bytes of a buffer for messages in parts that is used again
)

// Finding is a message that breaks a rule.
type Finding struct {
	Err    *codec.Error // which, where and how
	Level  codec.Level
	By     codec.Side
	Conn   int
	Role   string        // of the connecting end, as far as it has shown
	At     time.Duration // since the beginning
	Frame  codec.Frame   // Raw is the message, or what of it has come
	Before []codec.Frame // what was said on the connection before it, without what was very long
}

// Breach is a rule that one side has broken.
type Breach struct {
	Rule  *codec.Rule
	By    codec.Side
	Count int
	First []Finding // the first of them
}

// Auditor hears conversations with one server. Its methods may be called from any goroutine.
type Auditor struct {
	opts  Options
	begun time.Time

	mu       sync.Mutex
	judge    *judge.Judge
	lines    int // connections so far
	messages [2]int
	counts   *counts
	breaches []*Breach
	now      *line         // whose message is judged
	at       time.Duration // when it came, since the beginning
	frame    codec.Frame
}

// line is one connection.
type line struct {
	id     int
	sess   codec.Session
	part   [2]part
	deaf   bool // where messages begin is not known any more
	role   codec.Role
	recent [before]reminder
	next   int // of recent

	// What is kept to tell what there was occasion to do wrong.
	asked    []*creation // that wait for their answers
	kinds    [3]bool     // of jobs that were created
	said     map[string]int
	tubes    []string // that are watched beside the default one
	narrowed bool     // that one is not
	chose    bool     // a tube to use
}

// part is what one side has said that is no whole message yet.
type part struct {
	buf  []byte
	need int
	skip int // bytes of a refused message that have yet to come
}

// reminder is a message that was heard lately. Its memory is used again.
type reminder struct {
	frame codec.Frame
	known bool
}

// New returns an auditor that has heard nothing.
func New(o Options) *Auditor {
	a := &Auditor{opts: o, begun: time.Now(), judge: judge.New(o.Protocol)}
	if a.opts.Codec.MaxData == 0 {
		a.opts.Codec.MaxData = codec.DefaultMaxData // what a server takes it says itself
	}
	a.opts.Codec = o.Protocol.Limits(a.opts.Codec)
	a.counts = newCounts(o.Protocol)
	if a.judge != nil {
		a.judge.Conduct = true
		a.judge.Keep = func() any {
			f := a.finding(a.now, a.frame.From)
			return &f
		}
	}
	return a
}

// open notes a connection, and returns it.
func (a *Auditor) open() *line {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lines++
	l := &line{id: a.lines, sess: a.opts.Protocol.NewSession(a.opts.Codec)}
	if a.judge != nil {
		a.judge.Opens(l.id)
	}
	return l
}

// hear takes in bytes of one side. It must be called before they are passed on, so that
// nobody has heard what is not heard here.
func (a *Auditor) hear(l *line, from codec.Side, b []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.at = time.Since(a.begun)
	p := &l.part[from]
	if n := min(p.skip, len(b)); n > 0 {
		b, p.skip = b[n:], p.skip-n
	}
	if l.deaf || len(b) == 0 {
		return
	}
	if len(p.buf) == 0 {
		if b = a.read(l, from, b); len(b) > 0 {
			p.buf = append(p.buf, b...)
		}
		return
	}
	if p.buf = append(p.buf, b...); len(p.buf) < p.need {
		return
	}
	left := a.read(l, from, p.buf)
	if len(left) == 0 && cap(p.buf) > keptBuffer {
		p.buf = nil
		return
	}
	p.buf = append(p.buf[:0], left...)
}

// read judges the messages in b, and returns what is left of it.
func (a *Auditor) read(l *line, from codec.Side, b []byte) []byte {
	p := &l.part[from]
	p.need = 0
	for len(b) > 0 {
		n, err := l.sess.Decode(from, b, &a.frame)
		if err == codec.ErrShort {
			p.need = n
			return b
		}
		var bad *codec.Error
		if errors.As(err, &bad) {
			if from == codec.Server && len(l.part[codec.Peer].buf) > 0 {
				// It answers a request that has not ended: what answers what is not known any more.
				a.loses(l)
				return nil
			}
			if bad.Fatal {
				n = len(b)
			}
			p.skip = max(0, n-len(b))
			n = min(n, len(b))
			a.frame.Raw, a.frame.From = b[:n], from
		}
		a.message(l, from, bad)
		if b = b[n:]; bad != nil && bad.Fatal {
			a.loses(l)
			return nil
		}
	}
	return nil
}

// loses gives a connection up.
func (a *Auditor) loses(l *line) {
	l.deaf = true
	l.part = [2]part{}
	if a.judge != nil {
		a.judge.Loses(l.id)
	}
}

// message judges what stands in a.frame.
func (a *Auditor) message(l *line, from codec.Side, bad *codec.Error) {
	a.messages[from]++
	if t := a.frame.Type; t != nil {
		a.counts.hear(l, &a.frame, bad == nil)
		l.shows(t, from)
	}
	a.now = l
	if bad != nil {
		a.accuse(a.finding(l, from), bad)
	}
	if a.judge != nil {
		found := a.judge.Message(l.id, &a.frame, a.at.Nanoseconds(), bad)
		for i := range found {
			v := &found[i]
			f, kept := v.Kept.(*Finding)
			if !kept {
				here := a.finding(l, from)
				f = &here
			}
			a.accuse(*f, &codec.Error{Rule: v.Rule, Offset: offset(&f.Frame, v.Field), Field: v.Field, Detail: v.Detail})
		}
	}
	l.remember(&a.frame)
}

// shows narrows the roles that a connection may have by what is said on it.
func (l *line) shows(t *codec.Type, from codec.Side) {
	set := t.Req
	if from == codec.Server {
		set = t.Res
	}
	if l.role&(l.role-1) == 0 && l.role != 0 {
		return
	}
	if l.role == 0 || l.role&set != 0 && set&^l.role == 0 {
		l.role = set
	}
}

// remember keeps a message for the findings to come.
func (l *line) remember(f *codec.Frame) {
	r := &l.recent[l.next]
	l.next = (l.next + 1) % before
	if r.known = f.Type != nil && len(f.Raw) <= maxRemind; !r.known {
		return
	}
	raw, spans := append(r.frame.Raw[:0], f.Raw...), append(r.frame.Spans[:0], f.Spans...)
	r.frame = *f
	r.frame.Raw, r.frame.Spans = raw, spans
}

// offset is where a field begins in a message.
func offset(f *codec.Frame, field string) int {
	for i := range f.Spans {
		if s := &f.Spans[i]; s.Field.Name == field && s.Off < len(f.Raw) {
			return s.Off
		}
	}
	return 0
}

// finding makes one of the message in a.frame, before what is wrong with it is known.
func (a *Auditor) finding(l *line, from codec.Side) Finding {
	f := Finding{By: from, Conn: l.id, At: a.at, Frame: a.frame.Clone(), Role: a.opts.Protocol.Roles[0]}
	if name, more, _ := strings.Cut(a.opts.Protocol.RoleNames(l.role), "/"); name != "" && more == "" {
		f.Role = name
	}
	for i := range l.recent {
		if r := &l.recent[(l.next+i)%before]; r.known {
			f.Before = append(f.Before, r.frame.Clone())
		}
	}
	return f
}

func (a *Auditor) accuse(f Finding, e *codec.Error) {
	if f.By == codec.Server && !a.opts.Server || slices.Contains(a.opts.Codec.Waive, e.Rule) {
		return
	}
	rule := a.opts.Protocol.Rule(e.Rule)
	if rule == nil {
		rule = &codec.Rule{ID: e.Rule, Level: codec.Must}
	}
	f.Err, f.Level = e, rule.Level
	k := slices.IndexFunc(a.breaches, func(b *Breach) bool { return b.Rule.ID == e.Rule && b.By == f.By })
	if k < 0 {
		k = len(a.breaches)
		a.breaches = append(a.breaches, &Breach{Rule: rule, By: f.By})
	}
	b := a.breaches[k]
	if b.Count++; b.Count <= maxKept {
		b.First = append(b.First, f)
	}
	if a.opts.Found != nil {
		a.opts.Found(&f)
	}
}

// ends hears that a side has closed its direction, or broken the connection off.
func (a *Auditor) ends(l *line, from codec.Side, reset bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.judge != nil {
		// What is found at an end was kept with the message that it is about.
		for _, v := range a.judge.Ends(l.id, from, reset, time.Since(a.begun).Nanoseconds()) {
			if f, kept := v.Kept.(*Finding); kept {
				a.accuse(*f, &codec.Error{Rule: v.Rule, Offset: offset(&f.Frame, v.Field), Field: v.Field, Detail: v.Detail})
			}
		}
	}
}

// Report returns what was found so far.
func (a *Auditor) Report() *Report {
	a.mu.Lock()
	defer a.mu.Unlock()
	r := &Report{Protocol: a.opts.Protocol, Server: a.opts.Server, Took: time.Since(a.begun), Connections: a.lines, Messages: a.messages}
	for _, b := range a.breaches {
		c := *b
		r.Breaches = append(r.Breaches, c)
	}
	slices.SortStableFunc(r.Breaches, func(x, y Breach) int { return cmp.Compare(x.By, y.By) })
	for _, t := range a.opts.Protocol.Types {
		if t.Req&(t.Req-1) == 0 && a.counts.types[codec.Peer][t.Index].seen > 0 {
			r.roles |= t.Req
		}
	}
	r.Exercise = a.counts.exercised(a.opts.Server)
	return r
}
