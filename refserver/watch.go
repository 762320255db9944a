package refserver

import (
	"bytes"
	"time"

	"jobwire/codec"
)

// Intercept decides how a message is processed: one from a peer before the machine handles it, or one from the server
// before it is sent. It is called under the server's lock and must not keep f. The zero Verdict changes nothing.
type Intercept func(c *Conn, from codec.Side, f *codec.Frame) Verdict

// Verdict is the decision of [Intercept] about a message. Replace and Raw may violate the rules of the protocol.
type Verdict struct {
	Drop    bool           // do not handle or send the message; Also and Close still apply
	Close   bool           // close the connection, after the message unless Drop or Delay is set
	Delay   time.Duration  // handle or send the message this much later; other messages overtake it
	Extra   int            // number of additional times that the message is handled or sent
	Replace *codec.Message // a message that is handled or sent instead
	Also    *codec.Message // a message that is sent to the peer afterwards; Intercept is not called for it
	Raw     *[]byte        // bytes that are sent instead; only for messages from the server
	// if greater than 0, write the message in pieces of this many bytes; only for messages from the server
	Split int
	Pause time.Duration // the pause after each piece
}

// watch is the state that a connection needs only if messages are intercepted or traced.
type watch struct {
	viewer    codec.Session // decodes both directions, to decode the server's own messages
	nonStrict codec.Session // encodes messages that violate rules
	primed    bool          // nonStrict has decoded the first message

}

func (s *Server) watching() bool { return s.intercept != nil || s.opts.Trace != nil }

// init creates the sessions that decode and encode messages once more, if messages are intercepted or traced.
func (w *watch) init(s *Server) {
	if !s.watching() {
		return
	}
	nonStrict := s.opts.Codec
	nonStrict.WaiveAll = true
	w.viewer = s.opts.Protocol.NewSession(s.opts.Codec)
	w.nonStrict = s.opts.Protocol.NewSession(nonStrict)
}

// trace calls Options.Trace, if it is set.
func (c *Conn) trace(from codec.Side, f *codec.Frame, raw []byte, e *codec.Error) {
	if t := c.srv.opts.Trace; t != nil {
		t(c, from, f, raw, e)
	}
}

// inspect calls the hooks for a message from the peer, and processes the verdict. It reports whether the caller must
// deliver the message.
func (c *Conn) inspect(f *codec.Frame, raw []byte, e *codec.Error) bool {
	s := c.srv
	c.viewer.Decode(codec.Peer, raw, &s.sent) // the type of a reply may depend on the request
	if !c.primed {
		// the first message may select a variant of the protocol, for example by its magic
		c.nonStrict.Decode(codec.Peer, raw, &s.sent)
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
		b, err := c.nonStrict.Append(nil, codec.Peer, v.Replace)
		if err == nil {
			_, err = c.nonStrict.Decode(codec.Peer, b, f)
		}
		if e, _ = err.(*codec.Error); err != nil && e == nil {
			times = 0 // the replacement is not a complete message
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
	c.sendAlso(v.Also)
	if v.Close {
		c.Close()
	}
	return false
}

// sendWatched sends Server.msg when messages are intercepted or traced.
func (c *Conn) sendWatched() error {
	s := c.srv
	scratch, f := s.scratch[:0], &s.sent
	if s.intercept != nil {
		scratch, f = nil, new(codec.Frame) // the hook may send other messages, which overwrite the shared memory
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
		if b, err = c.nonStrict.Append(nil, codec.Server, v.Replace); err != nil {
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
			if !c.gone && !c.broken {
				c.put(&late, raw, e, v)
			}
		})
	}
	c.sendAlso(v.Also)
	if v.Close {
		c.Close()
	}
	return nil
}

// encode appends a message from the server to dst. If the rules do not allow the message and faults are injected,
// encode ignores the rules: a fault may have kept the request that the message answers from the session.
func (c *Conn) encode(dst []byte, m *codec.Message) ([]byte, error) {
	b, err := c.session.Append(dst, codec.Server, m)
	if err != nil && c.srv.intercept != nil {
		return c.nonStrict.Append(dst, codec.Server, m)
	}
	return b, err
}

// sendAlso sends the message Verdict.Also, if it is not nil.
func (c *Conn) sendAlso(m *codec.Message) {
	if m == nil || c.gone || c.broken {
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

// put appends the encoded message b to the output and calls Trace.
func (c *Conn) put(f *codec.Frame, b []byte, e *codec.Error, v Verdict) {
	c.trace(codec.Server, f, b, e)
	at := c.total + int64(len(c.writing)+len(c.out))
	if v.Split > 0 {
		c.splits = append(c.splits, split{at, at + int64(len(b)), v.Split, v.Pause})
	}
	c.out = append(c.out, b...)
	c.markDirty()
}
