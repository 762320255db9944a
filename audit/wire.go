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
	answers   codec.Session // decodes replies to the forwarded requests
	worker    atomic.Bool   // the driver has registered a function

	reading sync.Mutex // guards answers

	mu      lock // guards writing to the driver and the following fields
	delayed [][]byte
	waiting int // bytes of delayed
	timer   *time.Timer
	last    time.Time // when the delayed messages are sent even if they are not ready
	fail    error

	asked, got int         // forwarded requests that have a reply, and received replies
	writing    *codec.Type // type of the message that is written; nil if it is unknown
	second     []bool      // pending requests for a job; true: the profile sent the request, not the driver

	begun, ended int       // jobs that the driver waits for, and those that have ended
	refusals     []refusal // sent after the replies to earlier requests
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
	w := &faultyConn{
		run: r, conn: c, near: near, far: far,
		answers: r.protoFaults.nonStrictSession(), mu: newLock(),
	}
	var back sync.WaitGroup
	back.Go(func() {
		ended := w.pump(far, codec.Stream{Session: w.answers, From: codec.Server}, w.answer)
		w.flush()
		r.proxy.ends(c, codec.Server, transcript.HalfCloses, false)
		transport.CloseWrite(near) // the driver can still read what was sent before
		if ended != nil {
			far.Close()
		}
	})
	broken := w.pump(near, codec.Stream{Session: r.protoFaults.nonStrictSession(), From: codec.Peer}, w.forwardRequest)
	r.proxy.ends(c, codec.Peer, transcript.HalfCloses, broken == nil && !r.hung.Load())
	transport.CloseWrite(far)
	back.Wait()
	if w.timer != nil {
		w.timer.Stop()
	}
}

// pump forwards the messages from src. Invalid bytes are forwarded unchanged, with a nil frame, as are all bytes if the
// run does not need messages. pump returns nil at the end of the stream.
func (w *faultyConn) pump(src net.Conn, s codec.Stream, forward func(*codec.Frame, []byte) error) error {
	var buf []byte
	in, inPieces := make([]byte, readSize), !w.run.counts && w.run.profile.unchanged()
	for {
		n, err := src.Read(in)
		if s.From == codec.Peer && n > 0 {
			w.run.proxy.observe(w.conn, s.From, in[:n])
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
			w.reading.Lock()
			n, found, _ := s.Read(buf, &f)
			w.reading.Unlock()
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
			w.run.proxy.Auditor.forwarded(w.conn, s.From)
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
func (w *faultyConn) forwardRequest(f *codec.Frame, raw []byte) error {
	c, d := w.run.profile, w.run.protoFaults
	if f != nil && f.Type != nil {
		if f.Type.Does == codec.Register {
			w.worker.Store(true)
		}
		if d.mayRefuse(f.Type) {
			w.run.observe(codec.Peer, f.Type)
		}
		if c.request != nil && !c.request(w, f) {
			w.run.effects.Add(1)
			return nil
		}
		if c.ids > 0 {
			if b := d.renamed(f, false, c.ids); b != nil {
				raw = b
				w.run.effects.Add(1)
			}
		}
		w.mu.Lock()
		if len(f.Type.Answers) > 0 {
			w.asked++
		}
		if f.Type.Does == codec.Submit && f.Attached() {
			w.begun++
		}
		w.mu.Unlock()
		w.reading.Lock()
		var seen codec.Frame
		w.answers.Decode(codec.Peer, raw, &seen)
		w.reading.Unlock()
	}
	_, err := w.far.Write(raw)
	return err
}

// answer forwards a message of the server to the driver.
func (w *faultyConn) answer(f *codec.Frame, raw []byte) error {
	c := w.run.profile
	out := [][]byte{raw}
	var typ *codec.Type
	if f != nil {
		typ = f.Type
	}
	w.run.observe(codec.Server, typ)
	if typ != nil {
		if c.reply != nil {
			out = c.reply(w, f)
		}
		if c.ids > 0 {
			if b := w.run.protoFaults.renamed(f, true, c.ids); b != nil {
				out = [][]byte{b}
				w.run.effects.Add(1)
			}
		}
		if len(out) > 1 {
			w.run.effects.Add(1)
		}
	}
	if len(out) == 0 {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fail != nil {
		return w.fail
	}
	if w.writing = typ; typ != nil && w.endsJob(f) {
		w.ended++
	}
	if c.delay == 0 || c.delays != nil && (typ == nil || !c.delays(w, f)) {
		write := w.writeMessages
		if c.delay > 0 { // the message overtakes the delayed ones
			write = w.sendAll
		}
		err := write(out)
		if err == nil && typ != nil && w.run.protoFaults.replies[typ] {
			w.got++
			w.sendRefusals()
		}
		return err
	}
	w.run.effects.Add(1)
	if len(w.delayed) == 0 {
		w.last = time.Now().Add(longestDelay)
	}
	for _, m := range out {
		w.delayed = append(w.delayed, append([]byte(nil), m...))
		w.waiting += len(m)
	}
	if w.waiting > maxWaiting {
		w.release()
		return w.fail
	}
	if w.timer == nil {
		w.timer = time.AfterFunc(c.delay, w.flushIfReady)
	} else if len(w.delayed) == len(out) || c.batch {
		w.timer.Reset(c.delay) // a batch may be incomplete while more messages arrive
	}
	return nil
}

// flushIfReady writes the delayed messages if they are ready. Otherwise it sets the timer again.
func (w *faultyConn) flushIfReady() {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.run.profile
	if len(w.delayed) > 0 && c.ready != nil && !c.ready(w) && time.Now().Before(w.last) {
		w.timer.Reset(c.delay)
		return
	}
	w.release()
}

// flush writes the delayed messages.
func (w *faultyConn) flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.release()
}

// release writes the delayed messages. It is called with w.mu locked.
func (w *faultyConn) release() {
	if len(w.delayed) > 0 && w.fail == nil {
		w.fail = w.writeMessages(w.delayed)
	}
	w.delayed, w.waiting = nil, 0
}

// writeMessages writes messages in the way of the profile. It is called with w.mu locked.
func (w *faultyConn) writeMessages(messages [][]byte) error {
	if w.run.profile.write != nil {
		return w.run.profile.write(w, messages)
	}
	return w.sendAll(messages)
}

// sendAll writes messages to the driver in one write.
func (w *faultyConn) sendAll(messages [][]byte) error {
	if len(messages) == 1 {
		return w.send(messages[0])
	}
	return w.send(slices.Concat(messages...))
}

// send writes bytes to the driver.
func (w *faultyConn) send(b []byte) error {
	w.run.proxy.observe(w.conn, codec.Server, b)
	_, err := w.near.Write(b)
	w.run.proxy.Auditor.forwarded(w.conn, codec.Server)
	return err
}

// inject sends an error reply to the driver, after the replies to earlier requests.
func (w *faultyConn) inject(m []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refusals = append(w.refusals, refusal{w.asked, m})
	w.sendRefusals()
}

// sendRefusals sends the refusals whose earlier replies were received. It is called with w.mu locked.
func (w *faultyConn) sendRefusals() {
	for len(w.refusals) > 0 && w.refusals[0].after <= w.got {
		w.send(w.refusals[0].m)
		w.refusals = w.refusals[1:]
	}
}
