package exec

import (
	"slices"
	"time"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/fuzz/input"
	"jobwire/fuzz/model"
	"jobwire/internal/target"
	"jobwire/internal/watch"
)

// Executor runs inputs on one server, one after the other.
type Executor struct {
	Options
	traits    *input.Traits
	barrier   *Barrier
	p         *codec.Protocol
	to        transport
	known     *input.Known
	nonce     uint64
	runs      uint64 // number of inputs executed
	MaybeKept int    // connections that the server may keep
	canary    *conn
	record    Record  // of the last execution
	pings     Record  // of the last ping
	conns     []*conn // memory for the connections of an execution
	// the largest size of a job's data that the server accepts; 0: unknown, less than 0: the server was not asked
	maxData int
	scratch
}

// Options change how inputs are executed.
type Options struct {
	Timeout  time.Duration // timeout of a barrier
	clock    clock         // of the server
	Thorough bool          // check the server after every input
	// send a barrier on every connection after each step, so that the record does not depend on time
	Steady  bool
	Crashes bool // look only for crashes: a wrong reply does not end the input
	// the server may not have noticed yet that the clients of the last input have disconnected, so lists are not checked
	Lingering bool
	spins     func() bool // reports whether the server keeps a processor core busy; nil: unknown
	// returns how long the server has waited for a processor since its start; nil: unknown
	waited func() time.Duration
	busy   func() bool // reports whether the server has something to do; nil: unknown
	// reports whether the run has ended, so that later faults do not count; nil: the run does not end
	Over func() bool
}

// scratch is memory that executions reuse.
type scratch struct {
	frame     codec.Frame
	msg       codec.Message
	out, out2 []byte
	whole     []byte // for undecidable: a message of a peer, completed with generated data
}

// execution is the state of one execution of an input.
type execution struct {
	*Executor
	c       *input.Input
	prefix  string
	session codec.Session // encodes messages with all rules waived
	model   model.Model   // nil: replies are not checked against a model
	record  *Record
	conns   []*conn
	chosen  map[int][]byte // the value that the server chose in the reply to a step, by the ID of the step
	progress
	exact        bool   // send a barrier on every connection after every step
	barrierState uint64 // state of the model when all effects of the last step had arrived
	ticked       time.Time
	delayed      time.Duration // of replies, because the server waited for a processor or handled many messages
	requests     int           // messages that the server may have to handle, as far as they can be counted
	// replies may depend on time, because of a pause, a disconnect that the server notices late, or several waiting
	// clients
	timed bool
	// a request contains a value, such as a handle, that the server has not assigned in this input and that may belong to
	// another client
	foreign bool
	// other inputs or unknown effects may influence the server, so differences from the model are not reported
	common bool
	quit   bool // the rest of the input is not executed
	lost   bool // a connection was closed or could not be opened, so the server may have crashed
	urgent bool // urgent data was sent
}

// progress says how far an execution has come.
type progress struct {
	step    int // index of the current step
	stepID  int
	settled settled // whether the effects of the current step have arrived
}

// settled says whether all effects of a step have arrived.
type settled uint8

const (
	unsettled    settled = iota
	seemsSettled         // they seem to have arrived, but not all connections have sent a barrier
	isSettled            // the replies to barriers prove it
)

// NewExecutor returns an executor for a server whose clock runs times times as fast as the clock of the machine, if
// times is not 0.
func NewExecutor(t target.Target, times int, b *Barrier, known *input.Known, timeout time.Duration) (*Executor, error) {
	to, err := transportOf(t)
	if err != nil {
		return nil, err
	}
	x := executorOn(to, b, known, timeout)
	x.spins = func() bool { return watch.Spinning(t) }
	x.waited = func() time.Duration { return watch.Waited(t) }
	x.busy = func() bool { return watch.Busy(t) }
	if times > 1 {
		x.clock = clockOf(t, times)
	}
	return x, nil
}

func executorOn(to transport, b *Barrier, known *input.Known, timeout time.Duration) *Executor {
	return &Executor{traits: input.TraitsOf(b.Protocol), barrier: b, p: b.Protocol, to: to, known: known, maxData: -1,
		Options: Options{Timeout: timeout}}
}

// newModel returns a new model of the server.
func (x *execution) newModel() model.Model {
	quirks := []model.Quirk{model.Watched}
	for _, q := range x.known.Quirks {
		quirks = append(quirks, model.Quirk(q))
	}
	if x.prefix != "" {
		quirks = append(quirks, model.Shared)
	}
	if x.Lingering {
		quirks = append(quirks, model.Lingering)
	}
	m := model.New(x.p, x.clock.now(), quirks...)
	m.Accepts(x.maxData)
	return m
}

// Execute runs an input on the server. The record is valid until the next call. If prefix is not empty, other inputs
// use the same server, and the names in this input get the prefix.
func (x *Executor) Execute(in *input.Input, prefix string) *Record {
	if x.maxData < 0 {
		x.maxData = 0
		x.askMaxData()
	}
	x.runs++
	x.record.reset()
	e := x.execution(in, &x.record)
	e.prefix = prefix
	if in.Mode != input.Burst {
		e.model = e.newModel()
	}
	e.ticked = x.clock.now()
	e.run()
	return e.record
}

// execution returns a new execution of an input, before its first step and without a model.
func (x *Executor) execution(in *input.Input, r *Record) *execution {
	n := in.Conns()
	for len(x.conns) < n {
		x.conns = append(x.conns, &conn{})
	}
	for _, k := range x.conns[:n] {
		*k = k.renewed()
	}
	return &execution{Executor: x, c: in, record: r, session: x.p.NewSession(codec.Options{WaiveAll: true}),
		conns: x.conns[:n], chosen: map[int][]byte{}, progress: progress{step: -1}, exact: x.Thorough || x.Steady || x.runs%8 == 0,
		timed: x.Steady && severalWait(in)}
}

// run executes the steps, makes sure that all their effects have arrived, and ends the input.
func (x *execution) run() {
	for i := range x.c.Steps {
		x.step, x.stepID, x.settled = i, x.c.Steps[i].ID, unsettled
		x.tick()
		if x.do(&x.c.Steps[i]); x.isOver() {
			x.quit = true
		}
		if x.record.Fault != nil || x.quit {
			break
		}
	}
	switch {
	case x.record.Fault != nil, x.quit:
	case x.c.Mode == input.Burst:
		x.finishBurst()
	case !x.exact && (x.settled == unsettled || x.settled == seemsSettled && x.runs%4 == 1):
		x.exact = true
		x.barrierAll(nil, false)
	}
	x.checkOpen()
	if x.leave(); x.record.Fault == nil && x.extraTime() > 0 {
		x.handshake() // so that the next input does not wait for the messages of this one
	}
}

// unread is the kind of failure of a server that serves no client while it cannot write to one that does not read.
const unread = "no connection answered while a client does not read"

// checkOpen checks the server while the connections are open, if an input has done what may block or busy a server
// until they are closed.
func (x *execution) checkOpen() {
	if x.record.Fault != nil || x.quit {
		return
	}
	if slices.ContainsFunc(x.conns, func(k *conn) bool { return k.open && k.unread }) {
		if x.checkServer(); x.record.Fault != nil && x.record.Fault.Oracle == HangAll {
			x.record.Fault.Law = unread
			x.record.Fault.Text += " while another client did not read"
		}
	}
	if x.urgent && x.record.Fault == nil && x.spins != nil && x.spins() {
		x.fault(*CPULoop())
	}
}

// severalWait reports whether several connections send a request whose reply may come late. The replies then depend on
// the order in which the server reads the requests.
func severalWait(in *input.Input) bool {
	first := -1
	for i := range in.Steps {
		s := &in.Steps[i]
		switch {
		case s.Type == nil || !input.MayWait(s.Type):
		case first < 0:
			first = s.Conn
		case s.Conn != first:
			return true
		}
	}
	return false
}

// tick reports to the model how much time has passed on the server's clock since the last call.
func (x *execution) tick() {
	if x.model != nil {
		now := x.clock.now()
		x.model.Elapsed(now.Sub(x.ticked))
		x.ticked = now
	}
}

// isOver reports whether the run has ended.
func (x *Executor) isOver() bool { return x.Over != nil && x.Over() }

// fault records the first fault of the execution, at the current step unless f names another one. It ignores later
// faults, faults after the end of the run, and, if only crashes are to be found, wrong messages.
func (x *execution) fault(f Fault) {
	if x.Crashes && (f.Oracle == Law || f.Oracle == Framing || f.Oracle == Disclosure) {
		return
	}
	if x.record.Fault == nil && !x.isOver() {
		if f.Step == 0 {
			f.Step = x.step
		}
		if x.model != nil {
			f.State = x.model.State(f.Conn)
		}
		onOne := f.Oracle == Law || f.Oracle == Framing || f.Oracle == HangConn // not about the whole server
		if onOne && f.Conn >= 0 && f.Conn < len(x.conns) && x.conns[f.Conn].resync != "" {
			f.Rule, f.Resync = x.conns[f.Conn].resync, true
		}
		x.record.Fault = &f
	}
}

// do executes one step.
func (x *execution) do(s *input.Step) {
	k := x.conns[s.Conn]
	if s.Verb == transcript.Nothing {
		x.timed = true
		x.sleep(s.For)
		x.tick()
		x.record.add(Event{Conn: s.Conn, Verb: transcript.Nothing, Step: x.step})
		// A barrier could make the server notice that a time has come.
		x.checkMissing(true)
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
		x.pipeline(k, x.step)
		b := x.encode(s)
		unknown := s.Verb == transcript.Raw || k.tainted || len(k.partial) > 0 // the server may read commands in the data
		if x.prefix != "" && unknown && x.traits.NamesNumbers(k.sentAll, b) {
			return
		}
		if len(k.pending) > 0 && x.c.Mode != input.Burst && (len(b) == 0 || x.mustNotSend(k, s, b)) {
			x.barrierConn(k) // the step sends nothing, so send only the preamble
			return
		}
		x.sendBytes(k, b)
	case transcript.Opens:
		if x.c.Mode != input.Burst {
			x.barrierConn(k)
		}
	case transcript.Urgent:
		x.sendUrgent(k, s.Bytes)
	case transcript.StopsReading:
		x.stopReading(k)
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
		if x.c.Mode != input.Burst {
			x.serverNoticed(k)
			x.barrierConn(nil)
		}
	default:
		x.closeConn(k, s)
	}
}

// closeConn executes a step that closes or resets a connection.
func (x *execution) closeConn(k *conn, s *input.Step) {
	x.timed = true
	if x.flush(k); !k.open {
		return
	}
	x.record.add(Event{Conn: k.id, Verb: s.Verb, Step: x.step})
	x.recordOwnClose(k)
	burst := x.c.Mode == input.Burst
	if burst {
		x.common = true // it is unknown when the server notices the disconnect
	} else if s.Verb == transcript.Closes {
		// Half-close the connection first, because the reaction of the server to a half-close can be observed.
		k.ended = true
		k.s.halfClose()
		x.serverNoticed(k)
	}
	if k.open {
		x.end(k, s.Verb == transcript.Resets)
	}
	k.ended = false
	if burst {
		return
	}
	if s.Verb == transcript.Resets {
		x.resetNoticed()
	}
	x.barrierConn(nil)
}

// sleep waits for a duration on the server's clock. It reads during the wait, because the model must know when the
// server sent each message.
func (x *execution) sleep(d time.Duration) {
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
