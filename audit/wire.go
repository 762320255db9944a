package audit

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"jobwire/codec"
)

// wire is one connection of a driver under a condition.
type wire struct {
	run       *run
	line      *line
	near, far net.Conn
	asks      codec.Session // reads requests
	answers   codec.Session // reads answers, to the requests that were passed on
	worker    atomic.Bool   // it has said what it can do

	reading sync.Mutex // of answers

	mu   sync.Mutex // of writing to the driver
	held [][]byte
	due  *time.Timer
	last time.Time // by which what is held goes, ready or not
	fail error

	asked, got   int       // requests that were passed on, and answers to them
	begun, ended int       // jobs that the driver waits for, and those that have ended
	refusals     []refusal // that wait for the answers to what was asked before
}

// refusal is an answer that does not come from the server.
type refusal struct {
	behind int // so many answers
	m      []byte
}

// errClosed is that the condition has closed the connection.
var errClosed = errors.New("closed by the condition")

func (w *wire) loose() codec.Session {
	return w.run.dialect.protocol.NewSession(codec.Options{WaiveAll: true})
}

// relay has what connects to ln talk to the server, under the run's condition, until ctx ends.
func (r *run) relay(ctx context.Context, ln net.Listener) {
	var all sync.WaitGroup
	defer all.Wait()
	defer context.AfterFunc(ctx, func() { ln.Close() })()
	for {
		near, err := ln.Accept()
		if err != nil {
			return
		}
		all.Go(func() {
			defer near.Close()
			defer context.AfterFunc(ctx, func() { near.Close() })()
			far, err := r.dial(ctx)
			if err != nil {
				return
			}
			defer far.Close()
			defer context.AfterFunc(ctx, func() { far.Close() })()
			r.met.Do(func() { close(r.connected) })
			r.serve(near, far)
		})
	}
}

// serve passes on what both ends say until one of them ends it.
func (r *run) serve(near, far net.Conn) {
	p := r.dialect.protocol
	w := &wire{run: r, line: r.auditor.open(), near: near, far: far, asks: p.NewSession(codec.Options{WaiveAll: true}), answers: p.NewSession(codec.Options{WaiveAll: true})}
	var back sync.WaitGroup
	back.Go(func() {
		ended := w.pump(far, codec.Server, w.answers, w.answer)
		w.flush()
		r.auditor.ends(w.line, codec.Server, false)
		near.(*net.TCPConn).CloseWrite() // what was sent before is still read
		if ended != nil {
			far.Close()
		}
	})
	w.pump(near, codec.Peer, w.asks, w.ask)
	r.auditor.ends(w.line, codec.Peer, false)
	far.(*net.TCPConn).CloseWrite()
	back.Wait()
	if w.due != nil {
		w.due.Stop()
	}
}

// pump reads messages and has them passed on. What is no message is passed on as it is, with
// all behind it. It returns nil at an end of the stream.
func (w *wire) pump(src net.Conn, from codec.Side, sess codec.Session, pass func(*codec.Frame, []byte) error) error {
	var buf []byte
	need, deaf := 0, false
	in := make([]byte, readSize)
	for {
		n, err := src.Read(in)
		if from == codec.Peer && n > 0 {
			w.run.auditor.hear(w.line, from, in[:n])
		}
		buf = append(buf, in[:n]...)
		for len(buf) > 0 && (len(buf) >= need || deaf) {
			var f codec.Frame
			size, need2 := len(buf), 0
			var bad error
			if !deaf {
				w.reading.Lock()
				size, bad = sess.Decode(from, buf, &f)
				w.reading.Unlock()
			}
			if bad == codec.ErrShort {
				need2 = size
			}
			if need = need2; need > 0 {
				break
			}
			var e *codec.Error
			frame := &f
			if deaf || errors.As(bad, &e) {
				deaf = deaf || e.Fatal
				frame = nil
				if deaf || size > len(buf) {
					size, deaf = len(buf), true
				}
			}
			if err := pass(frame, buf[:size:size]); err != nil {
				return err
			}
			buf = buf[size:]
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

// ask passes a request on to the server. f is nil where the bytes are no message.
func (w *wire) ask(f *codec.Frame, raw []byte) error {
	c, d := w.run.condition, w.run.dialect
	if f != nil && f.Type != nil {
		if f.Type.Name == d.needs {
			w.worker.Store(true)
		}
		if c.request != nil && !c.request(w, f) {
			return nil
		}
		if c.names {
			if b := d.renamed(w.loose(), f, d.short); b != nil {
				raw = b
			}
		}
		w.mu.Lock()
		if d.answered(f.Type) {
			w.asked++
		}
		if d.begins != nil && d.begins(f.Type) {
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

// answer passes a message of the server on to the driver.
func (w *wire) answer(f *codec.Frame, raw []byte) error {
	w.run.messages.Add(1)
	c := w.run.condition
	out := [][]byte{raw}
	if f != nil && f.Type != nil {
		if c.reply != nil {
			out = c.reply(w, f)
		}
		if c.names {
			if b := w.run.dialect.renamed(w.loose(), f, w.run.dialect.long); b != nil {
				out = [][]byte{b}
			}
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fail != nil {
		return w.fail
	}
	if f != nil && f.Type != nil && w.endsJob(f) {
		w.ended++
	}
	if c.hold == 0 || c.holds != nil && (f == nil || f.Type == nil || !c.holds(w, f)) {
		write := w.put
		if c.hold > 0 { // it overtakes what is held
			write = w.sendAll
		}
		err := write(out)
		if err == nil && f != nil && f.Type != nil && w.run.dialect.answers(f.Type) {
			w.got++
			w.refuse()
		}
		return err
	}
	if len(w.held) == 0 {
		w.last = time.Now().Add(longestHold)
	}
	for _, m := range out {
		w.held = append(w.held, append([]byte(nil), m...))
	}
	if w.due == nil {
		w.due = time.AfterFunc(c.hold, w.flushIfReady)
	} else if len(w.held) == len(out) || c.batch {
		w.due.Reset(c.hold) // a batch is not over while more of it comes
	}
	return nil
}

// flushIfReady writes what is held back if it may go, or looks again after as long.
func (w *wire) flushIfReady() {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.run.condition
	if len(w.held) > 0 && c.ready != nil && !c.ready(w) && time.Now().Before(w.last) {
		w.due.Reset(c.hold)
		return
	}
	w.release()
}

// flush writes what is held back.
func (w *wire) flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.release()
}

// release writes what is held back. The caller holds the lock.
func (w *wire) release() {
	if len(w.held) > 0 && w.fail == nil {
		w.fail = w.put(w.held)
	}
	w.held = nil
}

// put writes messages as the condition has it. The caller holds the lock.
func (w *wire) put(messages [][]byte) error {
	if w.run.condition.write != nil {
		return w.run.condition.write(w, messages)
	}
	return w.sendAll(messages)
}

// sendAll writes messages to the driver in one go.
func (w *wire) sendAll(messages [][]byte) error {
	if len(messages) == 1 {
		return w.send(messages[0])
	}
	return w.send(slices.Concat(messages...))
}

// send writes bytes to the driver.
func (w *wire) send(b []byte) error {
	w.run.auditor.hear(w.line, codec.Server, b)
	_, err := w.near.Write(b)
	return err
}

// inject has the driver get an answer that the server did not send, in its turn.
func (w *wire) inject(m []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refusals = append(w.refusals, refusal{w.asked, m})
	w.refuse()
}

// refuse sends the refusals whose turn it is. The caller holds the lock.
func (w *wire) refuse() {
	for len(w.refusals) > 0 && w.refusals[0].behind <= w.got {
		w.send(w.refusals[0].m)
		w.refusals = w.refusals[1:]
	}
}
