package servertest

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// A second server of the Danga draft, so that the cases are judged by something that
// shares neither code nor tables with what they were written beside. It knows the
// document only, and does everything in the simplest way that is right: one mutex,
// linear scans, blocking writes. What the document leaves open is marked "reading N".

const (
	naiveMax    = 64 << 20 // octets behind a header
	naiveWrite  = 5 * time.Second
	naiveLinger = time.Second
)

type naiveJob struct {
	name, key string
	args      []byte
	handle    string // "" until somebody is told it
	created   time.Time
	status    []byte // job_status_res, as it would be sent now
	answer    []byte // job_complete_res, likewise
	waiting   []*naivePeer
}

type naivePeer struct {
	conn   net.Conn
	magic  string    // "" before the first packet
	can    []string  // as listed by worker_connect
	asleep bool      // since worker_sleep
	holds  *naiveJob // at most one: the third guarantee
	awaits *naiveJob // sync+wait
}

type naiveServer struct {
	mu      sync.Mutex
	peers   []*naivePeer
	queues  map[string][]*naiveJob  // by job name, next one first
	keys    map[[2]string]*naiveJob // by name and duplicate key, not complete
	handles map[string]*naiveJob    // kept forever, complete or not
	rows    [0x0E]naiveRow          // by packet type
}

// naiveRow is what may arrive. A type that only the server sends has no handler.
type naiveRow struct {
	min, max uint32
	handle   func(*naiveServer, *naivePeer, []byte) bool // false closes the connection
}

// serveNaiveDanga serves ln until ctx ends, then closes everything and returns nil.
func serveNaiveDanga(ctx context.Context, ln net.Listener) error {
	s := &naiveServer{
		queues:  map[string][]*naiveJob{},
		keys:    map[[2]string]*naiveJob{},
		handles: map[string]*naiveJob{},
		// Reading 1: a connection has no role. Whoever can send a worker's packets can send an
		// application's too, for the document never says that the two must be apart.
		rows: [0x0E]naiveRow{
			0x01: {0, naiveMax, (*naiveServer).connect},
			0x02: {0, 0, (*naiveServer).disconnect},
			0x03: {0, 0, (*naiveServer).sleep},
			0x04: {0, naiveMax, (*naiveServer).create},
			0x06: {0, 0, (*naiveServer).assign},
			0x08: {12, 12, (*naiveServer).announce},
			0x09: {0, naiveMax, (*naiveServer).status},
			0x0B: {1, naiveMax, (*naiveServer).complete},
			0x0C: {0, naiveMax, (*naiveServer).result},
		},
	}
	var talks sync.WaitGroup
	defer talks.Wait()
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(inner, func() { ln.Close() })()
	for {
		c, err := ln.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		talks.Go(func() {
			defer c.Close()
			defer context.AfterFunc(inner, func() { c.Close() })()
			s.talk(&naivePeer{conn: c})
		})
	}
}

func (s *naiveServer) talk(p *naivePeer) {
	s.mu.Lock()
	s.peers = append(s.peers, p)
	s.mu.Unlock()
	for s.step(p) {
	}
	s.leave(p)
	// Closing with octets unread would reset the connection, and that can destroy answers
	// that the other side has not read yet. So end this direction first.
	if c, ok := p.conn.(*net.TCPConn); ok {
		c.CloseWrite()
		c.SetReadDeadline(time.Now().Add(naiveLinger))
		io.Copy(io.Discard, c)
	}
}

// step takes one packet. Reading 2: the header is judged as soon as all nine octets are
// there and before anything behind it, since no such packet can become right any more.
func (s *naiveServer) step(p *naivePeer) bool {
	var head [9]byte
	if _, err := io.ReadFull(p.conn, head[:]); err != nil {
		// Reading 3: a direction that ends is a connection that ends, also for an application that
		// waits: it "stays connected".
		return false
	}
	magic, typ, size := string(head[:4]), int(head[4]), binary.BigEndian.Uint32(head[5:])
	if p.magic == "" {
		p.magic = magic
	}
	if magic != p.magic || typ >= len(s.rows) {
		return false
	}
	row := s.rows[typ]
	if row.handle == nil || size < row.min || size > row.max {
		return false
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(p.conn, body); err != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !row.handle(s, p, body) {
		return false
	}
	s.wake()
	return true
}

// leave forgets a connection. Its job is the next of its name.
func (s *naiveServer) leave(p *naivePeer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.peers = slices.DeleteFunc(s.peers, func(q *naivePeer) bool { return q == p })
	if j := p.awaits; j != nil {
		// Reading 4: a job outlives whoever waits for it. Only workers' connections are said to
		// matter to a job, and a duplicate may be attached to it.
		j.waiting = slices.DeleteFunc(j.waiting, func(q *naivePeer) bool { return q == p })
	}
	if j := p.holds; j != nil {
		j.status = naiveNoStatus() // Reading 5: whoever retries it starts from nothing, so its progress is unknown again.
		s.queues[j.name] = slices.Insert(s.queues[j.name], 0, j)
		s.wake()
	}
}

// wake sends a noop to sleepers that have something to do. Reading 6: to all of them, as
// one that was woken may not come. Reading 7: after every packet, hence also to a worker that
// goes to sleep, or learns something, while there is work: otherwise a job that came between
// "no, sorry" and "going to sleep" would lie there unheard. Reading 8: a noop ends the sleep,
// so there is one for each worker_sleep; asking for a job ends it too, nothing else does.
func (s *naiveServer) wake() {
	for _, p := range s.peers {
		if _, ok := s.next(p); p.asleep && ok {
			p.asleep = false
			p.send(0x00)
		}
	}
}

// next is the name of the next job for p. Reading 9: the oldest of the first name in
// the worker's own list that has any; what it names first it does best.
func (s *naiveServer) next(p *naivePeer) (string, bool) {
	for _, name := range p.can {
		if len(s.queues[name]) > 0 {
			return name, true
		}
	}
	return "", false
}

func (p *naivePeer) send(typ byte, parts ...[]byte) {
	body := bytes.Join(parts, nil)
	b := append([]byte(p.magic), typ)
	b = binary.BigEndian.AppendUint32(b, uint32(len(body)))
	p.conn.SetWriteDeadline(time.Now().Add(naiveWrite))
	if _, err := p.conn.Write(append(b, body...)); err != nil {
		p.conn.Close() // its own goroutine sees that and leaves
	}
}

// naiveNoStatus: Reading 10: nothing announced is 0 of 0, which no fraction is, with the
// time remaining unknown.
func naiveNoStatus() []byte { return []byte("\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff") }

// naiveName: Reading 11: ASCII is seven bits. Reading 12: a name has a letter, for a list
// of one empty name could not be told from an empty list.
func naiveName(b []byte) bool { return len(b) > 0 && naiveASCII(b) }

func naiveASCII(b []byte) bool {
	return !slices.ContainsFunc(b, func(c byte) bool { return c > 0x7f })
}

// connect: Reading 13: NULs stand between names, so one at the end is followed by an empty
// name and is wrong. Reading 14: an empty list is right, a worker that can do nothing.
// Reading 15: a second list takes the first one's place: it says "what I can do", not "what else".
func (s *naiveServer) connect(p *naivePeer, body []byte) bool {
	p.can = nil
	if len(body) == 0 {
		return true
	}
	for name := range bytes.SplitSeq(body, []byte{0}) {
		if !naiveName(name) {
			return false
		}
		p.can = append(p.can, string(name))
	}
	return true
}

// disconnect: Reading 16: the server closes, and nothing behind the packet is read.
func (s *naiveServer) disconnect(*naivePeer, []byte) bool { return false }

// sleep: Reading 17: right with a job in hand and without a list; a noop harms neither.
func (s *naiveServer) sleep(p *naivePeer, _ []byte) bool {
	p.asleep = true
	return true
}

func (s *naiveServer) create(p *naivePeer, body []byte) bool {
	name, rest, ok1 := bytes.Cut(body, []byte{0})
	key, rest, ok2 := bytes.Cut(rest, []byte{0})
	if !ok1 || !ok2 || !naiveName(name) || !naiveASCII(key) || len(rest) < 2 || rest[1] > 2 {
		return false // Reading 18: rest[0], the flags, may be anything: unused now, for later use.
	}
	wait, handle := rest[1] == 0, rest[1] == 1
	if wait && p.awaits != nil {
		return false // Reading 19: its results could not be told apart. All other requests are right meanwhile.
	}
	// Reading 20: a duplicate is one whatever its type, flags and arguments; those of the first
	// are what the worker gets.
	unique := [2]string{string(name), string(key)}
	j := s.keys[unique]
	if j == nil {
		j = &naiveJob{name: unique[0], key: unique[1], args: rest[2:], created: time.Now(), status: naiveNoStatus()}
		// Reading 21: not complete is status 0, and result code 0 and no data so that the record has its shape.
		j.answer = make([]byte, 5)
		s.queues[j.name] = append(s.queues[j.name], j)
		if j.key != "" {
			s.keys[unique] = j
		}
	}
	// Reading 22: a job has a handle once somebody asked for one, so a duplicate with
	// async+handle makes that job's result one that is kept.
	if handle && j.handle == "" {
		j.handle = "naive:" + strconv.Itoa(len(s.handles)+1)
		s.handles[j.handle] = j
	}
	if wait {
		// Reading 23: one that is attached to a running job hears what is announced from now on.
		p.awaits = j
		j.waiting = append(j.waiting, p)
	}
	if handle {
		p.send(0x05, []byte(j.handle))
	} else {
		p.send(0x05)
	}
	return true
}

// assign: Reading 24: it is answered at once, with a noop if there is nothing ("no, sorry");
// the request is over then. Reading 25: so it is for a worker that has given no list.
func (s *naiveServer) assign(p *naivePeer, _ []byte) bool {
	if p.holds != nil {
		return false
	}
	p.asleep = false
	name, ok := s.next(p)
	if !ok {
		p.send(0x00)
		return true
	}
	p.holds = s.queues[name][0]
	s.queues[name] = s.queues[name][1:]
	p.send(0x07, []byte(name), []byte{0}, p.holds.args)
	return true
}

// announce: Reading 26: the three numbers are passed on as they are, more than the whole too.
func (s *naiveServer) announce(p *naivePeer, body []byte) bool {
	j := p.holds
	if j == nil {
		return false
	}
	j.status = body
	for _, q := range j.waiting {
		q.send(0x0A, body)
	}
	return true
}

// complete: Reading 27: any result code is an end, an error is not tried again. Reading 28:
// time elapsed counts from the job's creation, in whole seconds, and stands still from here.
func (s *naiveServer) complete(p *naivePeer, body []byte) bool {
	j := p.holds
	if j == nil {
		return false
	}
	p.holds = nil
	delete(s.keys, [2]string{j.name, j.key})
	elapsed := max(1, uint32(time.Since(j.created)/time.Second))
	j.answer = append(binary.BigEndian.AppendUint32(nil, elapsed), body...)
	for _, q := range j.waiting {
		q.awaits = nil
		q.send(0x0D, j.answer)
	}
	j.waiting = nil
	return true
}

// status: Reading 29: a handle that was never given closes, the empty one too. No packet
// says "unknown", and "not complete" would be waited for forever. Reading 30: any connection
// may use any handle. Reading 31: of a complete job it tells what was last announced.
func (s *naiveServer) status(p *naivePeer, body []byte) bool {
	j := s.handles[string(body)]
	if j == nil {
		return false
	}
	p.send(0x0A, j.status)
	return true
}

func (s *naiveServer) result(p *naivePeer, body []byte) bool {
	j := s.handles[string(body)]
	if j == nil {
		return false
	}
	p.send(0x0D, j.answer)
	return true
}

// naiveDial starts a server and gives connections to it. All end with the test.
func naiveDial(t *testing.T) func() naiveClient {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- serveNaiveDanga(ctx, ln) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	return func() naiveClient {
		c, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		c.SetDeadline(time.Now().Add(10 * time.Second))
		return naiveClient{t, c}
	}
}

type naiveClient struct {
	t *testing.T
	net.Conn
}

func (c naiveClient) say(s string) {
	c.t.Helper()
	if _, err := io.WriteString(c, s); err != nil {
		c.t.Fatal(err)
	}
}

func (c naiveClient) take(n int) string {
	c.t.Helper()
	b := make([]byte, n)
	if got, err := io.ReadFull(c, b); err != nil {
		c.t.Fatalf("%q, then %v", b[:got], err)
	}
	return string(b)
}

func (c naiveClient) hear(s string) {
	c.t.Helper()
	if got := c.take(len(s)); got != s {
		c.t.Fatalf("%q, want %q", got, s)
	}
}

func (c naiveClient) closed() {
	c.t.Helper()
	if b, err := io.ReadAll(c); err != nil || len(b) > 0 {
		c.t.Fatalf("%q and %v, want the end", b, err)
	}
}

// TestNaiveDangaBestCase is the document's conversation with an application that waits.
func TestNaiveDangaBestCase(t *testing.T) {
	dial := naiveDial(t)
	w, a := dial(), dial()
	w.say("WORK\x01\x00\x00\x00\x0bmail\x00resize" + "WORK\x06\x00\x00\x00\x00")
	w.hear("WORK\x00\x00\x00\x00\x00") // no, sorry
	w.say("WORK\x03\x00\x00\x00\x00")
	a.say("\x00APP\x04\x00\x00\x00\x0cresize\x00\x00\x00\x001x")
	a.hear("\x00APP\x05\x00\x00\x00\x00")
	w.hear("WORK\x00\x00\x00\x00\x00") // wake up
	w.say("WORK\x06\x00\x00\x00\x00")
	w.hear("WORK\x07\x00\x00\x00\x09resize\x001x")
	w.say("WORK\x08\x00\x00\x00\x0c\x00\x00\x00\x01\x00\x00\x00\x64\x00\x00\x00\x09")
	a.hear("\x00APP\x0a\x00\x00\x00\x0c\x00\x00\x00\x01\x00\x00\x00\x64\x00\x00\x00\x09")
	w.say("WORK\x0b\x00\x00\x00\x05\x07done")
	a.hear("\x00APP\x0d\x00\x00\x00\x09")
	if a.take(4) == "\x00\x00\x00\x00" {
		t.Error("a complete job has taken no time")
	}
	a.hear("\x07done")
}

// TestNaiveDangaHandles asks for a job by its handle, and adds a duplicate of each kind.
func TestNaiveDangaHandles(t *testing.T) {
	dial := naiveDial(t)
	a, b, w := dial(), dial(), dial()
	const create, wait = "JOBS\x04\x00\x00\x00\x09rss\x007\x00\x00\x01x", "JOBS\x04\x00\x00\x00\x09rss\x007\x00\x00\x00y"
	created := func() string {
		a.say(create)
		a.hear("JOBS\x05\x00\x00\x00")
		return a.take(int(a.take(1)[0]))
	}
	w.say("WORK\x01\x00\x00\x00\x03rssWORK\x03\x00\x00\x00\x00WORK\x06\x00\x00\x00\x00")
	w.hear("WORK\x00\x00\x00\x00\x00") // no, sorry; and no longer asleep, so nothing wakes it
	h := created()
	if again := created(); again != h || h == "" {
		t.Fatalf("a duplicate has the handle %q, want %q", again, h)
	}
	b.say(wait)
	b.hear("JOBS\x05\x00\x00\x00\x00")
	size := string([]byte{byte(len(h))})
	a.say("JOBS\x09\x00\x00\x00" + size + h + "JOBS\x0c\x00\x00\x00" + size + h)
	a.hear("JOBS\x0a\x00\x00\x00\x0c\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff")
	a.hear("JOBS\x0d\x00\x00\x00\x05\x00\x00\x00\x00\x00")
	w.say("WORK\x06\x00\x00\x00\x00")
	w.hear("WORK\x07\x00\x00\x00\x05rss\x00x")
	w.say("WORK\x0b\x00\x00\x00\x03\x00okWORK\x06\x00\x00\x00\x00")
	w.hear("WORK\x00\x00\x00\x00\x00") // the duplicates were no jobs
	a.say("JOBS\x0c\x00\x00\x00" + size + h)
	for _, c := range []naiveClient{a, b} {
		c.hear("JOBS\x0d\x00\x00\x00\x07")
		if c.take(4) == "\x00\x00\x00\x00" {
			t.Error("a complete job has taken no time")
		}
		c.hear("\x00ok")
	}
	if next := created(); next == h {
		t.Errorf("a job created after the end of another has its handle, %q", h)
	}
}

// TestNaiveDangaRetry ends a worker's connection in each way there is. Its job then comes
// before one that was created meanwhile, and a sleeping worker is told.
func TestNaiveDangaRetry(t *testing.T) {
	const job = "JOBS\x04\x00\x00\x00\x09dirty\x00\x00\x00\x02"
	for name, end := range map[string]string{
		"leaves":              "WORK\x02\x00\x00\x00\x00",
		"asks for a second":   "WORK\x06\x00\x00\x00\x00",
		"changes magic":       "work\x03\x00\x00\x00\x00",
		"unknown type":        "WORK\x0e\x00\x00\x00\x00",
		"speaks as a server":  "WORK\x00\x00\x00\x00\x00",
		"argument to nothing": "WORK\x03\x00\x00\x00\x01x",
		"short status":        "WORK\x08\x00\x00\x00\x0b",
		"no result code":      "WORK\x0b\x00\x00\x00\x00",
		"too long":            "WORK\x0b\x04\x00\x00\x01",
		"empty name":          "WORK\x01\x00\x00\x00\x06dirty\x00",
		"one NUL":             "WORK\x04\x00\x00\x00\x05a\x00bcd",
		"type 3":              "WORK\x04\x00\x00\x00\x05a\x00\x00\x00\x03",
		"unknown handle":      "WORK\x0c\x00\x00\x00\x01x",
	} {
		t.Run(name, func(t *testing.T) {
			dial := naiveDial(t)
			a, w, next := dial(), dial(), dial()
			a.say(job + "JOBS\x04\x00\x00\x00\x0adirty\x00\x00\x00\x022")
			a.hear(strings.Repeat("JOBS\x05\x00\x00\x00\x00", 2))
			w.say("WORK\x01\x00\x00\x00\x05dirtyWORK\x06\x00\x00\x00\x00")
			w.hear("WORK\x07\x00\x00\x00\x06dirty\x00")
			w.say(end)
			w.closed()
			next.say("NEXT\x01\x00\x00\x00\x05dirtyNEXT\x06\x00\x00\x00\x00")
			next.hear("NEXT\x07\x00\x00\x00\x06dirty\x00")
		})
	}
	t.Run("is lost", func(t *testing.T) {
		dial := naiveDial(t)
		a, w, sleeper := dial(), dial(), dial()
		a.say(job)
		a.hear("JOBS\x05\x00\x00\x00\x00")
		w.say("WORK\x01\x00\x00\x00\x05dirtyWORK\x06\x00\x00\x00\x00")
		w.hear("WORK\x07\x00\x00\x00\x06dirty\x00")
		sleeper.say("NEXT\x01\x00\x00\x00\x05dirtyNEXT\x06\x00\x00\x00\x00NEXT\x03\x00\x00\x00\x00")
		sleeper.hear("NEXT\x00\x00\x00\x00\x00") // no, sorry
		w.Close()
		sleeper.hear("NEXT\x00\x00\x00\x00\x00") // wake up
		sleeper.say("NEXT\x06\x00\x00\x00\x00")
		sleeper.hear("NEXT\x07\x00\x00\x00\x06dirty\x00")
	})
	for name, bad := range map[string]string{"status": "WORK\x08\x00\x00\x00\x0cnumbers here", "completion": "WORK\x0b\x00\x00\x00\x01\x00"} {
		t.Run(name+" without a job", func(t *testing.T) {
			w := naiveDial(t)()
			w.say(bad)
			w.closed()
		})
	}
}
