package audit

import (
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/internal/transport"
)

// faultyConn is one connection of a driver under a fault profile.
type faultyConn struct {
	run       *run
	conn      *conn
	near, far net.Conn
	beyond    *conn         // of the auditor between the profile and the server; nil: none
	answers   codec.Session // decodes replies to the forwarded requests
	worker    atomic.Bool   // the driver has registered a function

	reading sync.Mutex // guards answers and asks
	asks    codec.Conversation[struct{}]

	mu lock // guards writing to the driver and the following fields
	delaying
	fail    error
	writing *codec.Type // type of the message that is written; nil if it is unknown

	asked, got   int       // forwarded requests that have a reply, and received replies
	refusals     []refusal // sent after the replies to earlier requests
	begun, ended int       // jobs that the driver waits for, and those that have ended
	doubling
}

// doubling is the state of a profile that sends each request for a job twice.
type doubling struct {
	second []bool   // pending requests for a job; true: the profile sent the request, not the driver
	kept   [][]byte // the reply to the first of two requests, until the reply to the second
	owed   int      // requests of the driver to which it has received no reply
}

// delaying is the state of a profile that delays messages.
type delaying struct {
	delayed [][]byte
	waiting int // bytes of delayed
	timer   *time.Timer
	last    time.Time // when the delayed messages are sent even if they are not ready
}

// lock is a mutex whose owner may wait. In a bubble of package synctest, time passes while goroutines wait for it.
type lock chan struct{}

func newLock() lock { return make(lock, 1) }

func (l lock) Lock()   { l <- struct{}{} }
func (l lock) Unlock() { <-l }

// wait waits until l is unlocked.
func (l lock) wait() {
	l <- struct{}{}
	<-l
}

// refusal is an error reply that the profile sends instead of the server.
type refusal struct {
	after int // the number of replies to earlier requests
	m     []byte
}

// maxWaiting is the number of bytes of delayed messages from which they are sent at once.
const maxWaiting = 1 << 20

// errClosed is returned if the profile has closed the connection.
var errClosed = errors.New("closed by the fault profile")

// join forwards the bytes of both ends until both have ended the connection.
func join(near, far net.Conn) {
	forward := func(dst, src net.Conn) {
		transport.Forward(dst, src, func(b []byte) error { _, err := dst.Write(b); return err })
	}
	var back sync.WaitGroup
	back.Go(func() { forward(near, far) })
	forward(far, near)
	back.Wait()
}

// forward forwards the messages of both ends, under the profile of the run, until one of them ends the connection.
func (r *run) forward(c *conn, near, far net.Conn) {
	r.connectedOnce.Do(func() { close(r.connected) })
	fc := &faultyConn{
		run: r, conn: c, near: near, far: far,
		answers: r.protoFaults.nonStrictSession(), mu: newLock(),
	}
	if r.beyond != nil {
		fc.beyond = r.beyond.open()
	}
	var back sync.WaitGroup
	back.Go(func() {
		ended := fc.pump(far, codec.Stream{Session: fc.answers, From: codec.Server}, fc.answer)
		fc.flush()
		r.proxy.ends(c, codec.Server, transcript.HalfCloses, errors.Is(ended, errClosed))
		fc.endsBeyond(codec.Server)
		transport.CloseWrite(near) // the driver can still read what was sent before
		if ended != nil {
			far.Close()
		}
	})
	broken := fc.pump(near, codec.Stream{Session: r.protoFaults.nonStrictSession(), From: codec.Peer}, fc.forwardRequest)
	r.proxy.ends(c, codec.Peer, transcript.HalfCloses, broken == nil && !r.hung.Load())
	fc.endsBeyond(codec.Peer)
	transport.CloseWrite(far)
	back.Wait()
	if fc.timer != nil {
		fc.timer.Stop()
	}
}

// pump forwards the messages from src. Invalid bytes are forwarded unchanged, with a nil frame, as are all bytes if the
// run does not need messages. pump returns nil at the end of the stream.
func (fc *faultyConn) pump(src net.Conn, s codec.Stream, forward func(*codec.Frame, []byte) error) error {
	var buf []byte
	in, inPieces := make([]byte, readSize), !fc.run.counts && fc.run.profile.unchanged()
	for {
		n, err := src.Read(in)
		switch {
		case n == 0:
		case s.From == codec.Peer:
			fc.run.proxy.observe(fc.conn, s.From, in[:n])
		case fc.beyond != nil:
			fc.run.beyond.observe(fc.beyond, s.From, in[:n])
		}
		if inPieces && n > 0 {
			if err := forward(nil, in[:n]); err != nil {
				return err
			}
		} else {
			buf = codec.Extend(buf, in[:n], s.Need())
		}
		for len(buf) > 0 {
			var f codec.Frame
			fc.reading.Lock()
			n, found, _ := s.Read(buf, &f)
			fc.reading.Unlock()
			if found == codec.Nothing {
				break
			}
			frame := &f
			if found != codec.Whole {
				frame = nil
			}
			if err := forward(frame, buf[:n:n]); err != nil {
				return err
			}
			buf = buf[n:]
		}
		if s.From == codec.Peer && n > 0 {
			fc.run.proxy.Auditor.forwarded(fc.conn, s.From)
		}
		if len(buf) == 0 {
			buf = nil
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// forwardRequest forwards a request to the server. f is nil if the bytes are not a message.
func (fc *faultyConn) forwardRequest(f *codec.Frame, raw []byte) error {
	p, pf := fc.run.profile, fc.run.protoFaults
	if f != nil && f.Type != nil {
		if f.Type.Does == codec.Register {
			fc.worker.Store(true)
		}
		if pf.mayRefuse(f.Type) {
			fc.run.census.observe(codec.Peer, f.Type, false)
		}
		if p.request != nil && !p.request(fc, f) {
			fc.run.effects.Add(1)
			return nil
		}
		if p.ids > 0 {
			if b := pf.renamed(f, f.Type, p.ids); b != nil {
				raw = b
				fc.run.effects.Add(1)
			}
		}
		fc.mu.Lock()
		if len(f.Type.Answers) > 0 {
			fc.asked++
		}
		if f.Type.Does == codec.Submit && f.Attached() {
			fc.begun++
		}
		fc.mu.Unlock()
		fc.reading.Lock()
		var seen codec.Frame
		fc.answers.Decode(codec.Peer, raw, &seen)
		fc.asks.Add(f.Type)
		fc.reading.Unlock()
	}
	return fc.request(raw)
}

// request sends bytes to the server.
func (fc *faultyConn) request(b []byte) error {
	if fc.beyond != nil {
		fc.run.beyond.observe(fc.beyond, codec.Peer, b)
	}
	_, err := fc.far.Write(b)
	return err
}

// endsBeyond records the end of one direction between the profile and the server.
func (fc *faultyConn) endsBeyond(from codec.Side) {
	if fc.beyond != nil {
		fc.run.beyond.ends(fc.beyond, from, false, false)
	}
}

// answer forwards a message of the server to the driver.
func (fc *faultyConn) answer(f *codec.Frame, raw []byte) error {
	p := fc.run.profile
	out := [][]byte{raw}
	var typ *codec.Type
	if f != nil {
		typ = f.Type
	}
	if typ == nil {
		fc.run.census.observe(codec.Server, nil, false)
	} else {
		fc.reading.Lock()
		asked, _ := fc.asks.Reply(typ)
		fc.reading.Unlock()
		fc.run.census.observe(codec.Server, typ, rarer(asked.Type, typ) != nil)
		if p.reply != nil {
			out = p.reply(fc, f, asked.Type)
		}
		if p.ids > 0 {
			if b := fc.run.protoFaults.renamed(f, asked.Type, p.ids); b != nil {
				out = [][]byte{b}
				fc.run.effects.Add(1)
			}
		}
		if len(out) > 1 {
			fc.run.effects.Add(1)
		}
	}
	if len(out) == 0 {
		return nil
	}
	fc.mu.Lock()
	defer fc.mu.Unlock()
	if fc.fail != nil {
		return fc.fail
	}
	if fc.writing = typ; typ != nil && fc.endsJob(f) {
		fc.ended++
	}
	if p.delay == 0 || p.delays != nil && (typ == nil || !p.delays(fc, f)) {
		write := fc.writeMessages
		if p.delay > 0 { // the message overtakes the delayed ones
			write = fc.sendAll
		}
		err := write(out)
		if err == nil && typ != nil && fc.run.protoFaults.replies[typ] {
			fc.got++
			fc.sendRefusals()
		}
		return err
	}
	fc.run.effects.Add(1)
	if len(fc.delayed) == 0 {
		fc.last = time.Now().Add(longestDelay)
	}
	for _, m := range out {
		fc.delayed = append(fc.delayed, append([]byte(nil), m...))
		fc.waiting += len(m)
	}
	if fc.waiting > maxWaiting {
		fc.release()
		return fc.fail
	}
	if fc.timer == nil {
		fc.timer = time.AfterFunc(p.delay, fc.flushIfReady)
	} else if len(fc.delayed) == len(out) || p.batch {
		fc.timer.Reset(p.delay) // a batch may be incomplete while more messages arrive
	}
	return nil
}

// flushIfReady writes the delayed messages if they are ready. Otherwise it sets the timer again.
func (fc *faultyConn) flushIfReady() {
	fc.mu.Lock()
	defer fc.mu.Unlock()
	p := fc.run.profile
	if len(fc.delayed) > 0 && p.ready != nil && !p.ready(fc) && time.Now().Before(fc.last) {
		fc.timer.Reset(p.delay)
		return
	}
	fc.release()
}

// flush writes the delayed messages.
func (fc *faultyConn) flush() {
	fc.mu.Lock()
	defer fc.mu.Unlock()
	fc.release()
}

// release writes the delayed messages. It is called with fc.mu locked.
func (fc *faultyConn) release() {
	if len(fc.delayed) > 0 && fc.fail == nil {
		fc.fail = fc.writeMessages(fc.delayed)
	}
	fc.delayed, fc.waiting = nil, 0
}

// writeMessages writes messages in the way of the profile. It is called with fc.mu locked.
func (fc *faultyConn) writeMessages(messages [][]byte) error {
	if fc.run.profile.write != nil {
		return fc.run.profile.write(fc, messages)
	}
	return fc.sendAll(messages)
}

// sendAll writes messages to the driver in one write.
func (fc *faultyConn) sendAll(messages [][]byte) error {
	if len(messages) == 1 {
		return fc.send(messages[0])
	}
	return fc.send(slices.Concat(messages...))
}

// send writes bytes to the driver.
func (fc *faultyConn) send(b []byte) error {
	fc.run.proxy.observe(fc.conn, codec.Server, b)
	_, err := fc.near.Write(b)
	fc.run.proxy.Auditor.forwarded(fc.conn, codec.Server)
	return err
}

// inject sends an error reply to the driver, after the replies to earlier requests.
func (fc *faultyConn) inject(m []byte) {
	fc.mu.Lock()
	defer fc.mu.Unlock()
	fc.refusals = append(fc.refusals, refusal{fc.asked, m})
	fc.sendRefusals()
}

// sendRefusals sends the refusals whose earlier replies were received. It is called with fc.mu locked.
func (fc *faultyConn) sendRefusals() {
	for len(fc.refusals) > 0 && fc.refusals[0].after <= fc.got {
		fc.send(fc.refusals[0].m)
		fc.refusals = fc.refusals[1:]
	}
}
