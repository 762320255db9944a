package fuzz

import (
	"time"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/fuzz/model"
)

// performer holds conversations with one server, one after the other.
type performer struct {
	d        *dialect
	p        *codec.Protocol
	to       endpoint
	known    *Known
	patience time.Duration // for a sentinel
	useModel bool
	thorough bool        // see how others fare behind every conversation
	stop     func() bool // whether a wait is to end early; nil is never

	loose  codec.Session // encodes what we say
	prefix string

	introduction []Step // of connections, under a prefix
	conns        []*conn
	record       Record
	model        model.Model
	chosen       map[int][]byte // by the ID of a step: what the server chose behind it
	nonce        uint64
	step         int // index of the step under way
	stepID       int
	last         uint64 // hash of what happened last, for feedback
	common       bool   // others may have to do with what is done here
	proved       bool   // all has come that the last step leads to
	quiet        bool   // as far as can be told without asking everybody
	exact        bool   // every connection proves for every step that all has come
	saying       bool   // a sentinel is being sent
	quit         bool   // the conversation is not gone on with
	lost         bool   // a connection ended or could not be made: is the server still there?
	told         time.Time

	unnoticed int // connections that the server may keep by rights

	bystander *conn
	frame     codec.Frame
	msg       codec.Message
	out, out2 []byte
}

func newPerformer(p *codec.Protocol, to endpoint, known *Known, patience time.Duration) *performer {
	d := dialectOf(p)
	x := &performer{d: d, introduction: d.introduction(), p: p, to: to, known: known, patience: patience, useModel: true}
	x.loose = p.NewSession(codec.Options{WaiveAll: true})
	x.chosen = map[int][]byte{}
	return x
}

// newModel returns the model of a conversation, or nil if the protocol has none.
func (x *performer) newModel() (m model.Model) {
	if !x.useModel {
		return nil
	}
	defer func() {
		if recover() != nil {
			m = nil
		}
	}()
	quirks := append([]model.Quirk{model.Watched}, x.known.Quirks...)
	if x.prefix != "" {
		quirks = append(quirks, model.Shared)
	}
	return model.New(x.p, quirks...)
}

// perform holds a conversation. The record is good until the next one. Where others use the
// server, prefix tells ones own names from theirs.
func (x *performer) perform(c *Conv, prefix string) *Record {
	x.prefix = prefix
	x.record.reset()
	clear(x.chosen)
	x.step, x.stepID, x.last, x.lost, x.common, x.quit = -1, 0, 0, false, false, false
	x.loose = x.p.NewSession(codec.Options{WaiveAll: true})
	x.exact = x.thorough || x.nonce%8 == 0
	x.proved, x.quiet = false, false
	x.model = nil
	if !c.Burst {
		x.model = x.newModel()
	}
	for _, k := range x.conns {
		k.ended = false
		if k.said = k.said[:0]; cap(k.said) > maxIdle {
			k.said = nil
		}
	}
	for len(x.conns) < c.conns() {
		x.conns = append(x.conns, &conn{})
	}
	x.told = time.Now()
	for i := range c.Steps {
		x.step, x.stepID, x.proved, x.quiet = i, c.Steps[i].ID, false, false
		x.tick()
		x.do(c, &c.Steps[i])
		if x.record.Fault != nil || x.quit {
			break
		}
	}
	switch {
	case x.record.Fault != nil, x.quit:
	case c.Burst:
		x.finishBurst()
	case !x.exact && !x.proved && (!x.quiet || x.nonce%4 == 1):
		x.exact = true
		x.settleAll(nil, false)
	}
	x.leave()
	return &x.record
}

// tick tells the model how late it is.
func (x *performer) tick() {
	if x.model != nil {
		now := time.Now()
		x.model.Elapsed(now.Sub(x.told))
		x.told = now
	}
}

func (x *performer) fault(f Fault) {
	if x.record.Fault == nil {
		if f.Step == 0 {
			f.Step = x.step
		}
		x.record.Fault = &f
	}
}

// do takes one step.
func (x *performer) do(c *Conv, s *Step) {
	k := x.conns[s.Conn]
	if s.Verb == transcript.Nothing {
		x.sleep(s.For)
		x.tick()
		x.record.add(Event{Conn: s.Conn, Verb: transcript.Nothing, Step: x.step})
		if !c.Burst {
			x.settle(nil)
		}
		return
	}
	if !k.open {
		if k.ended || s.Verb == transcript.Closes || s.Verb == transcript.HalfCloses || s.Verb == transcript.Resets {
			return
		}
		if !x.connect(k, s.Conn) {
			return
		}
		if len(k.out) > 0 && (s.Verb != transcript.Send || has(x.d.waits, s.Type.Name)) {
			x.settleOne(k)
		}
	}
	switch s.Verb {
	case transcript.Send, transcript.Raw:
		if k.ended {
			return
		}
		x.ahead(c, k, x.step)
		b := x.encode(s)
		if x.prefix != "" && s.Verb == transcript.Raw && x.d.shares(k.said, b) {
			return
		}
		if len(k.out) > 0 && !c.Burst && (len(b) == 0 || x.barred(k, b)) {
			x.settle(k) // it has only introduced itself
			return
		}
		x.say(c, k, b)
	case transcript.Opens:
		if !c.Burst {
			x.settle(k)
		}
	case transcript.HalfCloses:
		if k.ended {
			return
		}
		if x.flush(k); !k.open {
			return
		}
		k.ended = true
		x.record.add(Event{Conn: k.id, Verb: s.Verb, Step: x.step})
		x.ours(k)
		k.s.halfClose()
		if !c.Burst {
			x.noticed(k)
			x.settle(nil)
		}
	default:
		if x.flush(k); !k.open {
			return
		}
		x.record.add(Event{Conn: k.id, Verb: s.Verb, Step: x.step})
		x.ours(k)
		if !c.Burst && s.Verb == transcript.Closes {
			// To the server it looks like a half-close, the end of which can be seen.
			k.ended = true
			k.s.halfClose()
			x.noticed(k)
		} else {
			x.common = true // when it is noticed nobody can tell
		}
		if k.open {
			x.end(k, s.Verb == transcript.Resets)
		}
		k.ended = false
		if !c.Burst {
			x.settle(nil)
		}
	}
}

// sleep lets time pass, unless everybody is to stop. What comes meanwhile is read as it comes: the
// model has to know when.
func (x *performer) sleep(d time.Duration) {
	const piece = 20 * time.Millisecond
	for end := time.Now().Add(d); x.record.Fault == nil; {
		left := time.Until(end)
		if left <= 0 || x.stop != nil && x.stop() {
			return
		}
		time.Sleep(min(piece, left))
		if x.tick(); x.model == nil {
			continue
		}
		for _, k := range x.conns {
			if k.open {
				x.drain(k)
			}
		}
	}
}
