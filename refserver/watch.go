package refserver

import (
	"bytes"
	"time"

	"jobwire/codec"
)

// Intercept decides what becomes of a message: one that came from the peer and
// is about to be handled, or one that is about to be sent. It runs under the
// server's lock and must not keep the frame. The zero Verdict lets it pass.
type Intercept func(c *Conn, from codec.Side, f *codec.Frame) Verdict

// Verdict is what is done with a message. What is replaced may break any rule.
type Verdict struct {
	Drop    bool
	Close   bool           // end the connection, behind the message unless it is dropped
	Delay   time.Duration  // handle or send it so much later; others overtake it
	Extra   int            // how many times more
	Replace *codec.Message // put this in its place
	Also    *codec.Message // send the peer this too, behind it; no hook sees it
	Raw     *[]byte        // send these bytes in its place; from the server only
	Split   int            // write it in pieces of so many bytes; from the server only
	Pause   time.Duration  // behind each piece
}

// watch is what a connection needs when messages are intercepted or traced.
type watch struct {
	viewer codec.Session // sees both directions, to read our own messages
	loose  codec.Session // writes messages that break rules
	primed bool          // loose has seen the first message

}

func (s *Server) watching() bool { return s.intercept != nil || s.opts.Trace != nil }

func (w *watch) init(s *Server) {
	if !s.watching() {
		return
	}
	loose := s.opts.Codec
	loose.WaiveAll = true
	w.viewer = s.opts.Protocol.NewSession(s.opts.Codec)
	w.loose = s.opts.Protocol.NewSession(loose)
}

// trace shows a message to the user's hook.
func (c *Conn) trace(from codec.Side, f *codec.Frame, raw []byte, e *codec.Error) {
	if t := c.srv.opts.Trace; t != nil {
		t(c, from, f, raw, e)
	}
}

// inspect shows a message that has arrived to the hooks. It reports whether the
// message is to be handled now.
func (c *Conn) inspect(f *codec.Frame, raw []byte, e *codec.Error) bool {
	s := c.srv
	c.viewer.Decode(codec.Peer, raw, &s.sent) // for the replies that depend on it
	if !c.primed {
		c.loose.Decode(codec.Peer, raw, &s.sent) // for what a first message settles, such as a magic
		c.primed = true
	}
	c.trace(codec.Peer, f, raw, e)
	if s.intercept == nil || e != nil && e.Fatal {
		return true
	}
	v := s.intercept(c, codec.Peer, f)
	if v == (Verdict{}) {
		return true
	}
	times := 1 + v.Extra
	if v.Drop {
		times = 0
	}
	if v.Replace != nil {
		b, err := c.loose.Append(nil, codec.Peer, v.Replace)
		if err == nil {
			_, err = c.loose.Decode(codec.Peer, b, f)
		}
		if e, _ = err.(*codec.Error); err != nil && e == nil {
			times = 0 // what was put in its place is no whole message
		}
	}
	for range times {
		if v.Delay == 0 {
			c.deliver(f, e)
			continue
		}
		late := f.Clone()
		s.later(v.Delay, func() {
			if !c.gone {
				c.deliver(&late, e)
			}
		})
	}
	c.also(v.Also)
	if v.Close {
		c.Close()
	}
	return false
}

// sendWatched is Send where messages are intercepted or traced. Server.msg is
// what to send.
func (c *Conn) sendWatched() error {
	s := c.srv
	scratch, f := s.scratch[:0], &s.sent
	if s.intercept != nil {
		scratch, f = nil, new(codec.Frame) // the hook may send other messages
	}
	b, err := c.encode(scratch, &s.msg)
	if err != nil {
		return err
	}
	s.scratch = b
	_, bad := c.viewer.Decode(codec.Server, b, f)
	e, _ := bad.(*codec.Error)

	var v Verdict
	if s.intercept != nil {
		v = s.intercept(c, codec.Server, f)
	}
	if v.Replace != nil {
		if b, err = c.loose.Append(nil, codec.Server, v.Replace); err != nil {
			return err
		}
	}
	if v.Raw != nil {
		b = *v.Raw
	}
	if v.Replace != nil || v.Raw != nil {
		_, bad = s.opts.Protocol.NewSession(s.opts.Codec).Decode(codec.Server, b, f)
		e, _ = bad.(*codec.Error)
	}
	times := 1 + v.Extra
	if v.Drop {
		times = 0
	}
	for range times {
		if v.Delay == 0 {
			c.put(f, b, e, v)
			continue
		}
		late, raw := f.Clone(), bytes.Clone(b)
		s.later(v.Delay, func() {
			if !c.gone && !c.dead {
				c.put(&late, raw, e, v)
			}
		})
	}
	c.also(v.Also)
	if v.Close {
		c.Close()
	}
	return nil
}

// encode appends a message of ours as the contract has it, or, since a fault may have
// kept the request from us that it answers, as best it can.
func (c *Conn) encode(dst []byte, m *codec.Message) ([]byte, error) {
	b, err := c.session.Append(dst, codec.Server, m)
	if err != nil && c.srv.intercept != nil {
		return c.loose.Append(dst, codec.Server, m)
	}
	return b, err
}

// also sends a message that a hook has asked for, if it has.
func (c *Conn) also(m *codec.Message) {
	if m == nil || c.gone || c.dead {
		return
	}
	b, err := c.encode(nil, m)
	if err != nil {
		return
	}
	_, bad := c.viewer.Decode(codec.Server, b, &c.srv.sent)
	e, _ := bad.(*codec.Error)
	c.put(&c.srv.sent, b, e, Verdict{})
}

// put queues the bytes of one message for writing.
func (c *Conn) put(f *codec.Frame, b []byte, e *codec.Error, v Verdict) {
	c.trace(codec.Server, f, b, e)
	at := c.total + int64(len(c.writing)+len(c.out))
	if v.Split > 0 {
		c.splits = append(c.splits, split{at, at + int64(len(b)), v.Split, v.Pause})
	}
	c.out = append(c.out, b...)
	c.mark()
}
