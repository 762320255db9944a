package servertest

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"jobwire/internal/transport"
)

// This file contains a second server of the Danga draft, which shares neither code nor tables with the server that was
// written together with the cases. It was written from the specification only, and does everything in the simplest correct
// way: one mutex, linear scans, blocking writes. Where the specification leaves a choice, a comment says "Interpretation
// N".

const (
	naiveMax    = 64 << 20 // size limit of the data after a header
	naiveWrite  = 5 * time.Second
	naiveUnread = 1000 // packets
	naiveLinger = time.Second
)

type naiveJob struct {
	name, key string
	args      []byte
	handle    string // "" until a client has received it
	created   time.Time
	status    []byte // the job_status_res that the server would send now
	answer    []byte // the job_complete_res that the server would send now
	waiting   []*naivePeer
}

type naivePeer struct {
	conn   net.Conn
	out    chan []byte // packets to write; a peer that does not read must not stop the others
	magic  string      // "" before the first packet
	can    []string    // the list of the last worker_connect
	asleep bool        // after worker_sleep
	holds  *naiveJob   // at most one job: the third guarantee
	awaits *naiveJob   // a job of type sync+wait
}

type naiveServer struct {
	mu      sync.Mutex
	peers   []*naivePeer
	queues  map[string][]*naiveJob  // by job name; the next job comes first
	keys    map[[2]string]*naiveJob // jobs that are not complete, by name and duplicate key
	handles map[string]*naiveJob    // kept forever, even if the job is complete
	types   [0x0E]naiveType         // by packet type
}

// naiveType is a packet type that may arrive. A type that only the server sends has no handler.
type naiveType struct {
	min, max uint32
	handle   func(*naiveServer, *naivePeer, []byte) bool // false closes the connection
}

// serveNaiveDanga serves ln until ctx ends, then closes everything and returns nil.
func serveNaiveDanga(ctx context.Context, ln net.Listener) error {
	s := &naiveServer{
		queues:  map[string][]*naiveJob{},
		keys:    map[[2]string]*naiveJob{},
		handles: map[string]*naiveJob{},
		// Interpretation 1: a connection has no role. A client that can send a worker's packets can also send an
		// application's, because the specification never says that they must be on different connections.
		types: [0x0E]naiveType{
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
	var conns sync.WaitGroup
	defer conns.Wait()
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
		conns.Go(func() {
			defer c.Close()
			defer context.AfterFunc(inner, func() { c.Close() })()
			s.serveConn(&naivePeer{conn: c, out: make(chan []byte, naiveUnread)})
		})
	}
}

func (s *naiveServer) serveConn(p *naivePeer) {
	s.mu.Lock()
	s.peers = append(s.peers, p)
	s.mu.Unlock()
	left, written := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(written)
		p.write(left)
	}()
	for s.step(p) {
	}
	s.leave(p)
	close(left)
	<-written
	// Closing a connection with unread bytes would reset it, and that can destroy replies that the other side has not
	// read yet. So this direction is ended first.
	transport.CloseWrite(p.conn)
	p.conn.SetReadDeadline(time.Now().Add(naiveLinger))
	io.Copy(io.Discard, p.conn)
}

// step handles one packet. Interpretation 2: the header is checked as soon as all nine octets have arrived, before the
// data, because the data cannot make an invalid header valid.
func (s *naiveServer) step(p *naivePeer) bool {
	var head [9]byte
	if _, err := io.ReadFull(p.conn, head[:]); err != nil {
		// Interpretation 3: the end of one direction is the end of the connection, also for an application that
		// waits, which must "stay connected".
		return false
	}
	magic, typ, size := string(head[:4]), int(head[4]), binary.BigEndian.Uint32(head[5:])
	if p.magic == "" {
		p.magic = magic
	}
	if magic != p.magic || typ >= len(s.types) {
		return false
	}
	row := s.types[typ]
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

// leave removes a connection. Its job becomes the next job of its name.
func (s *naiveServer) leave(p *naivePeer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.peers = slices.DeleteFunc(s.peers, func(q *naivePeer) bool { return q == p })
	if j := p.awaits; j != nil {
		// Interpretation 4: a job continues after the client that waits for it has disconnected. The
		// specification says that the end of a worker's connection affects its job, and says nothing
		// about the end of a client's connection. Also, another client may wait for the same job.
		j.waiting = slices.DeleteFunc(j.waiting, func(q *naivePeer) bool { return q == p })
	}
	if j := p.holds; j != nil {
		j.status = naiveNoStatus() // Interpretation 5: the next worker starts the job anew, so its progress is unknown again.
		s.queues[j.name] = slices.Insert(s.queues[j.name], 0, j)
		s.wake()
	}
}

// wake sends a noop to sleeping workers for which there is a job. Interpretation 6: to all of them, because one that was
// woken may not ask for the job. Interpretation 7: after every packet, hence also to a worker that goes to sleep, or
// announces new names, while there is a job. Otherwise no worker would notice a job that arrived between "no, sorry" and
// "going to sleep". Interpretation 8: a noop ends the sleep, so there is one for each worker_sleep. A request for a job
// ends the sleep too; nothing else does.
func (s *naiveServer) wake() {
	for _, p := range s.peers {
		if _, ok := s.next(p); p.asleep && ok {
			p.asleep = false
			p.send(0x00)
		}
	}
}

// next returns the name of the next job for p. Interpretation 9: the oldest job of the first name in the worker's list that
// has jobs, because a worker lists what it does best first.
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
	select {
	case p.out <- append(b, body...):
	default:
		p.conn.Close() // the goroutine of that connection notices the error and calls leave
	}
}

// write writes the packets to the peer until it has left.
func (p *naivePeer) write(left <-chan struct{}) {
	for {
		var b []byte
		select {
		case b = <-p.out:
		default:
			select {
			case b = <-p.out:
			case <-left:
				return
			}
		}
		p.conn.SetWriteDeadline(time.Now().Add(naiveWrite))
		if _, err := p.conn.Write(b); err != nil {
			p.conn.Close()
		}
	}
}

// naiveNoStatus returns the status of a job without progress. Interpretation 10: it is 0 of 0, which is not a valid
// fraction, with the time remaining unknown.
func naiveNoStatus() []byte { return []byte("\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff") }

// naiveName reports whether a job name is valid. Interpretation 11: ASCII is seven bits. Interpretation 12: a name is not
// empty, because a list of one empty name would be the same as an empty list.
func naiveName(b []byte) bool { return len(b) > 0 && naiveASCII(b) }

func naiveASCII(b []byte) bool {
	return !slices.ContainsFunc(b, func(c byte) bool { return c > 0x7f })
}

// connect handles worker_connect. Interpretation 13: NULs separate names, so a NUL at the end is followed by an empty name
// and is invalid. Interpretation 14: an empty list is valid: the worker can do nothing. Interpretation 15: a second list
// replaces the first one: it says "what I can do", not "what else".
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

// disconnect handles worker_disconnect. Interpretation 16: the server closes the connection, and does not read anything
// after the packet.
func (s *naiveServer) disconnect(*naivePeer, []byte) bool { return false }

// sleep handles worker_sleep. Interpretation 17: a worker that has a job or has sent no list may also sleep; a noop does no
// harm in either case.
func (s *naiveServer) sleep(p *naivePeer, _ []byte) bool {
	p.asleep = true
	return true
}

func (s *naiveServer) create(p *naivePeer, body []byte) bool {
	name, rest, ok1 := bytes.Cut(body, []byte{0})
	key, rest, ok2 := bytes.Cut(rest, []byte{0})
	if !ok1 || !ok2 || !naiveName(name) || !naiveASCII(key) || len(rest) < 2 || rest[1] > 2 {
		return false // Interpretation 18: rest[0], the flags, may have any value: it is unused now and reserved.
	}
	wait, handle := rest[1] == 0, rest[1] == 1
	if wait && p.awaits != nil {
		return false // Interpretation 19: the client could not distinguish the results. All other requests are allowed meanwhile.
	}
	// Interpretation 20: a request is a duplicate whatever its type, flags and arguments are. The worker gets those of
	// the first request.
	unique := [2]string{string(name), string(key)}
	j := s.keys[unique]
	if j == nil {
		j = &naiveJob{name: unique[0], key: unique[1], args: rest[2:], created: time.Now(), status: naiveNoStatus()}
		// Interpretation 21: a job that is not complete has status 0, with result code 0 and no data so that the
		// packet has its format.
		j.answer = make([]byte, 5)
		s.queues[j.name] = append(s.queues[j.name], j)
		if j.key != "" {
			s.keys[unique] = j
		}
	}
	// Interpretation 22: a job has a handle after a client has asked for one, so a duplicate of type async+handle makes
	// the server keep the result of the job.
	if handle && j.handle == "" {
		j.handle = "naive:" + strconv.Itoa(len(s.handles)+1)
		s.handles[j.handle] = j
	}
	if wait {
		// Interpretation 23: a client that is attached to a running job receives what the worker announces from now
		// on.
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

// assign handles job_assign_req. Interpretation 24: the server replies at once, with a noop if there is no job ("no,
// sorry"), and the request is then finished. Interpretation 25: the same is true for a worker that has sent no list.
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

// announce handles job_status_announce. Interpretation 26: the three numbers are forwarded unchanged, even if they are more
// than the whole.
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

// complete handles job_complete_announce. Interpretation 27: any result code ends the job; a job with an error is not
// retried. Interpretation 28: the elapsed time counts from the creation of the job, in whole seconds, until now.
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

// status handles job_status_req. Interpretation 29: a handle that the server never assigned closes the connection, also an
// empty one. No packet says "unknown", and a client would wait forever after "not complete". Interpretation 30: any
// connection may use any handle. Interpretation 31: the status of a complete job is what the worker announced last.
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
