package fuzz

import (
	"slices"
	"time"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/fuzz/input"
	"jobwire/fuzz/model"
)

// executor runs inputs on one server, one after the other.
type executor struct {
	d        *input.Traits
	barrier  *barrier
	p        *codec.Protocol
	to       transport
	clock    clock // of the server
	known    *input.Known
	timeout  time.Duration // timeout of a barrier
	thorough bool          // check the server after every input
	// send a barrier on every connection after each step, so that the record does not depend on time
	steady  bool
	crashes bool // look only for crashes: a wrong reply does not end the input
	// reports whether the run has ended, so that later faults do not count; nil: the run does not end
	over func() bool

	nonStrict codec.Session // encodes messages with all rules waived
	prefix    string

	conns        []*conn
	record       Record
	model        model.Model
	chosen       map[int][]byte // the value that the server chose in the reply to a step, by the ID of the step
	nonce        uint64
	runs         uint64 // number of inputs executed
	step         int    // index of the current step
	stepID       int
	barrierState uint64 // state of the model when all effects of the last step had arrived
	// replies may depend on time, because of a pause, a disconnect that the server notices late, or several waiting
	// clients
	timed bool
	burst bool // the messages are sent without waiting for replies
	// a request contains a value, such as a handle, that the server has not assigned in this input and that may belong to
	// another client
	foreign bool
	// other inputs or unknown effects may influence the server, so differences from the model are not reported
	common         bool
	settledAll     bool // the replies to barriers prove that all effects of the last step have arrived
	settledMost    bool // all effects seem to have arrived, but not all connections have sent a barrier
	exact          bool // send a barrier on every connection after every step
	sendingBarrier bool // a barrier is being sent
	quit           bool // the rest of the input is not executed
	lost           bool // a connection was closed or could not be opened, so the server may have crashed
	ticked         time.Time

	maybeKept int // connections that the server may keep

	canary    *conn
	frame     codec.Frame
	msg       codec.Message
	out, out2 []byte
	whole     []byte // buffer for undecidable: a message of a peer, completed with generated data
}

func newExecutor(b *barrier, to transport, known *input.Known, timeout time.Duration) *executor {
	p := b.protocol
	x := &executor{d: input.TraitsOf(p), barrier: b, p: p, to: to, known: known, timeout: timeout}
	x.nonStrict = p.NewSession(codec.Options{WaiveAll: true})
	x.chosen = map[int][]byte{}
	return x
}

// newModel returns the model of the server, or nil if the protocol has none.
func (x *executor) newModel() model.Model {
	quirks := []model.Quirk{model.Watched}
	for _, q := range x.known.Quirks {
		quirks = append(quirks, model.Quirk(q))
	}
	if x.prefix != "" {
		quirks = append(quirks, model.Shared)
	}
	return model.New(x.p, x.clock.now(), quirks...)
}

// execute runs an input on the server. The record is valid until the next call. If prefix is not empty, other inputs
// use the same server, and the names in this input get the prefix.
func (x *executor) execute(c *input.Input, prefix string) *Record {
	x.prefix = prefix
	x.record.reset()
	clear(x.chosen)
	x.step, x.stepID, x.barrierState, x.burst, x.timed, x.lost, x.common, x.foreign, x.quit = -1, 0, 0, c.Mode == input.Burst,
		false, false, false, false, false
	x.nonStrict = x.p.NewSession(codec.Options{WaiveAll: true})
	x.runs++
	x.exact = x.thorough || x.steady || x.runs%8 == 0
	x.settledAll, x.settledMost = false, false
	x.model = nil
	if c.Mode != input.Burst {
		x.model = x.newModel()
	}
	for _, k := range x.conns {
		k.ended = false
		if k.sentAll = k.sentAll[:0]; cap(k.sentAll) > maxIdle {
			k.sentAll = nil
		}
	}
	for len(x.conns) < c.Conns() {
		x.conns = append(x.conns, &conn{})
	}
	x.ticked = x.clock.now()
	x.timed = x.steady && waiters(c) > 1
	for i := range c.Steps {
		x.step, x.stepID, x.settledAll, x.settledMost = i, c.Steps[i].ID, false, false
		x.tick()
		if x.do(c, &c.Steps[i]); x.isOver() {
			x.quit = true
		}
		if x.record.Fault != nil || x.quit {
			break
		}
	}
	switch {
	case x.record.Fault != nil, x.quit:
	case c.Mode == input.Burst:
		x.finishBurst()
	case !x.exact && !x.settledAll && (!x.settledMost || x.runs%4 == 1):
		x.exact = true
		x.barrierAll(nil, false)
	}
	x.leave()
	return &x.record
}

// waiters returns the number of connections that send a request whose reply may come late. If there are several, the
// replies depend on the order in which the server reads the requests.
func waiters(c *input.Input) (n int) {
	var found [input.MaxConns]bool
	for i := range c.Steps {
		if s := &c.Steps[i]; s.Type != nil && input.MayWait(s.Type) && !found[s.Conn] {
			found[s.Conn] = true
			n++
		}
	}
	return n
}

// tick reports to the model how much time has passed on the server's clock since the last call.
func (x *executor) tick() {
	if x.model != nil {
		now := x.clock.now()
		x.model.Elapsed(now.Sub(x.ticked))
		x.ticked = now
	}
}

// isOver reports whether the run has ended.
func (x *executor) isOver() bool { return x.over != nil && x.over() }

func (x *executor) fault(f Fault) {
	if x.crashes && (f.Oracle == Law || f.Oracle == Framing || f.Oracle == Disclosure) {
		return
	}
	if x.record.Fault == nil && !x.isOver() {
		if f.Step == 0 {
			f.Step = x.step
		}
		x.record.Fault = &f
	}
}

// do executes one step.
func (x *executor) do(c *input.Input, s *input.Step) {
	k := x.conns[s.Conn]
	if s.Verb == transcript.Nothing {
		x.timed = true
		x.sleep(s.For)
		x.tick()
		x.record.add(Event{Conn: s.Conn, Verb: transcript.Nothing, Step: x.step})
		if c.Mode != input.Burst {
			x.barrierConn(nil)
		}
		return
	}
	if !k.open {
		if k.ended || slices.Contains(input.Leaves, s.Verb) {
			return
		}
		if !x.connect(k, s.Conn) {
			return
		}
		if len(k.pending) > 0 && (s.Verb != transcript.Send || input.MayWait(s.Type)) {
			x.awaitBarrier(k)
		}
	}
	switch s.Verb {
	case transcript.Send, transcript.Raw:
		if k.ended {
			return
		}
		x.pipeline(c, k, x.step)
		b := x.encode(s)
		if x.prefix != "" && s.Verb == transcript.Raw && x.d.NamesNumbers(k.sentAll, b) {
			return
		}
		if len(k.pending) > 0 && c.Mode != input.Burst && (len(b) == 0 || x.mustNotSend(k, s, b)) {
			x.barrierConn(k) // the step sends nothing, so send only the preamble
			return
		}
		x.sendBytes(c, k, b)
	case transcript.Opens:
		if c.Mode != input.Burst {
			x.barrierConn(k)
		}
	case transcript.HalfCloses:
		x.timed = true
		if k.ended {
			return
		}
		if x.flush(k); !k.open {
			return
		}
		k.ended = true
		x.record.add(Event{Conn: k.id, Verb: s.Verb, Step: x.step})
		x.recordOwnClose(k)
		k.s.halfClose()
		if c.Mode != input.Burst {
			x.serverNoticed(k)
			x.barrierConn(nil)
		}
	default:
		x.timed = true
		if x.flush(k); !k.open {
			return
		}
		x.record.add(Event{Conn: k.id, Verb: s.Verb, Step: x.step})
		x.recordOwnClose(k)
		if c.Mode != input.Burst && s.Verb == transcript.Closes {
			// Half-close the connection first, because the reaction of the server to a half-close can be observed.
			k.ended = true
			k.s.halfClose()
			x.serverNoticed(k)
		} else {
			x.common = true // it is unknown when the server notices the disconnect
		}
		if k.open {
			x.end(k, s.Verb == transcript.Resets)
		}
		k.ended = false
		if c.Mode != input.Burst {
			x.barrierConn(nil)
		}
	}
}

// sleep waits for a duration on the server's clock. It reads during the wait, because the model must know when the
// server sent each message.
func (x *executor) sleep(d time.Duration) {
	const piece = 20 * time.Millisecond
	for end := time.Now().Add(x.clock.real(d)); x.record.Fault == nil; {
		left := time.Until(end)
		if left <= 0 || x.isOver() {
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
