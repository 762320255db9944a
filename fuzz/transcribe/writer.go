package transcribe

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/fuzz/exec"
	"jobwire/fuzz/input"
	"jobwire/internal/watch"
	"jobwire/play"
)

// Failure is an input with the fault that it causes.
type Failure struct {
	Name    string // of the transcript, without its suffix
	Barrier *exec.Barrier
	Input   *input.Input
	Fault   *exec.Fault
	Record  *exec.Record // of the server with the fault, or nil
	Right   *exec.Record // of a correct server, or nil

	Sent int // messages and actions of peers in the last transcript until the fault; set by Script
}

// Form is a set of options of a transcript.
type Form uint8

// The options. Which of them are needed depends on the fault.
const (
	omitBarrier   Form = 1 << iota // write no barrier where the transcript already expects the correct reply
	exact                          // expect all values of a reply
	past                           // ignore other messages at the step of the fault
	thorough                       // write a barrier after each step
	full                           // expect all messages of the server
	allDisconnect                  // all peers disconnect before the last barrier
	met                            // another client uses the server before the first step
)

// Forms are the forms of transcripts in the order in which to try them, shorter transcripts first.
var Forms = []Form{omitBarrier, omitBarrier | exact, 0, past, past | exact, met | omitBarrier | exact, allDisconnect, thorough,
	full, full | omitBarrier | exact}

// writer writes one transcript.
type writer struct {
	*Failure
	form       Form
	p          *codec.Protocol
	observed   *exec.Record // Right or, if there is none, Record
	script     *transcript.Script
	actors     []transcript.Actor // by connection
	names      map[int]string     // the name of the value that the server chose, by the ID of the step
	bound      map[int]bool
	valueNames map[string]string // names of values, by field and value
	deferred   []transcript.Step // expected replies to messages that are sent together
	shown      bool              // the transcript contains the correct reply at the step of the fault
	after      time.Duration
}

// is reports whether an option is set.
func (w *writer) is(option Form) bool { return w.form&option != 0 }

// Script returns the failure as a transcript, which fails on the server and passes on a correct server if the form fits
// the fault. It returns nil if no transcript can express the input.
func (f *Failure) Script(form Form) *transcript.Script {
	w := &writer{Failure: f, form: form, p: f.Barrier.Protocol, observed: cmp.Or(f.Right, f.Record)}
	return w.compose()
}

// compose builds the transcript: it names the values that the server chose, writes the steps of the input with the
// correct replies, and ends with a check that fails while the server has the fault. It returns nil if the transcript
// cannot be parsed again.
func (w *writer) compose() *transcript.Script {
	w.script = &transcript.Script{Protocol: w.p, File: w.Name + ".wire"}
	w.Sent = 0
	w.names, w.bound, w.valueNames = map[int]string{}, map[int]bool{}, map[string]string{}
	w.actors = Actors(w.p, w.Input)
	for i := range w.Input.Steps {
		for _, a := range w.Input.Steps[i].Args {
			if a.Of > 0 && w.chose(a.Of) != nil {
				w.names[a.Of] = fmt.Sprintf("v%d", a.Of)
			}
		}
	}
	witness := transcript.Actor{Name: w.p.RoleNames(1) + " 9", Role: 1}
	v := w.Fault
	if v.Oracle == exec.Disturbed || w.is(met) {
		w.ask(witness, true)
	}
	for i := range w.Input.Steps {
		w.step(i)
		if i == v.Step {
			w.Sent = Sent(w.script.Steps)
		}
	}
	switch v.Oracle {
	case exec.HangConn, exec.Framing, exec.Disclosure, exec.Law:
		switch {
		case v.Conn < 0 || v.Conn >= len(w.actors) || w.inputCloses(v.Conn):
		case w.is(omitBarrier) && w.shown:
		case w.waits(v):
			w.addExpected(w.actors[v.Conn], transcript.Choice{Verb: transcript.Nothing, For: 500 * time.Millisecond},
				false)
		default:
			w.ask(w.actors[v.Conn], v.Oracle == exec.HangConn || v.Oracle == exec.Framing || w.is(past))
		}
	default:
		for conn := range w.actors {
			if w.is(allDisconnect) && !w.inputCloses(conn) {
				w.addSent(w.actors[conn], transcript.Choice{Verb: transcript.Resets})
			}
		}
		if watched[v.Oracle] == "" {
			w.after = max(w.after, disconnectDelay) // the fuzzer may notice a crash late
		}
		w.ask(witness, true)
	}
	w.release()
	w.meta()
	out := Text(w.script)
	if _, err := transcript.Parse(w.p, w.Name, out); err != nil {
		w.script.Meta = nil
		return nil
	}
	return w.script
}

// Sent returns how many of the steps are messages and actions of peers.
func Sent(steps []transcript.Step) (n int) {
	for i := range steps {
		if steps[i].From == codec.Peer {
			n++
		}
	}
	return n
}

// waits reports whether a correct server sends nothing from the step of the fault on, because a request blocks.
func (w *writer) waits(v *exec.Fault) bool {
	if v.Oracle != exec.Law || w.Right == nil {
		return false
	}
	return !slices.ContainsFunc(w.Right.Events, func(e exec.Event) bool { return e.Conn == v.Conn && e.From == codec.Server && e.Step >= v.Step })
}

// watched maps oracles to the value of the @watch key with which conform detects their faults.
var watched = map[string]string{exec.Processor: watch.Processor, exec.Memory: watch.Memory, exec.Descriptors: watch.Descriptors}

// meta adds the keys that make the transcript a test case for conform.
func (w *writer) meta() {
	rule := w.p.Rule(w.Fault.Rule)
	if rule == nil && w.Record != nil {
		for i := range w.Record.Events {
			if e := &w.Record.Events[i]; e.From == codec.Peer && e.Err != nil {
				rule = w.p.Rule(e.Err.Rule)
			}
		}
	}
	if rule == nil {
		rule = &w.p.Rules[0]
	}
	about := strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return ' '
		}
		return r
	}, w.Fault.Text)), " ")
	for _, m := range [][2]string{{"case", "fuzz." + strings.TrimPrefix(w.Name, w.p.Name+"-")}, {"about", about},
		{"section", rule.Section}, {"rules", string(rule.ID)}, {"watch", watched[w.Fault.Oracle]},
		{"segments", w.segments()}} {
		if m[1] != "" {
			w.script.Meta = append(w.script.Meta, transcript.Meta{Key: m[0], Value: m[1]})
		}
	}
}

// segments returns how the messages must be divided into writes, or "" if that does not matter.
func (w *writer) segments() string {
	if m := w.Input.Mode; m == input.Pipelined || m == input.Joined {
		return play.Coalesced.String()
	}
	return ""
}

// Actors returns an actor for each connection of an input. It has the role that may send most of the messages.
func Actors(p *codec.Protocol, in *input.Input) []transcript.Actor {
	counts := make([][]int, in.Conns())
	for conn := range counts {
		counts[conn] = make([]int, len(p.Roles))
	}
	for i := range in.Steps {
		for role := range p.Roles {
			if s := &in.Steps[i]; s.Type != nil && s.Type.Req&(1<<role) != 0 {
				counts[s.Conn][role]++
			}
		}
	}
	return transcript.Actors(p, counts)
}

// inputCloses reports whether the input ends a connection, so that no barrier can follow on it.
func (w *writer) inputCloses(conn int) bool {
	return w.Input.Ends(conn, len(w.Input.Steps), input.Leaves...)
}

// chose returns the first message of the server, in reply to the step with the ID, that contains a value that the
// server chose. It returns nil if there is none.
func (w *writer) chose(id int) *exec.Event {
	r := w.observed
	if r == nil {
		return nil
	}
	for i := range r.Events {
		e := &r.Events[i]
		if e.From != codec.Server || e.Barrier || e.Step < 0 || e.Step >= len(w.Input.Steps) ||
			w.Input.Steps[e.Step].ID != id {
			continue
		}
		for k := range e.Args {
			if input.AssignedField(e.Type, k) != nil {
				return e
			}
		}
	}
	return nil
}

// addSent appends a step of a peer to the transcript, with the delay that has accumulated.
func (w *writer) addSent(a transcript.Actor, c transcript.Choice) {
	w.script.Steps = append(w.script.Steps,
		transcript.Step{Peer: a, From: codec.Peer, Choices: []transcript.Choice{c}, After: w.after})
	w.after = 0
}

// addExpected appends a step of the server to the transcript: the message c or one of the messages in or. If ignoring
// is set, other messages may arrive before it. In a pipelined input, the step is deferred until release.
func (w *writer) addExpected(a transcript.Actor, c transcript.Choice, ignoring bool, or ...transcript.Choice) {
	st := transcript.Step{Peer: a, From: codec.Server, Choices: append([]transcript.Choice{c}, or...)}
	if ignoring {
		st.Ignored = w.p.Sent(codec.Server, a.Role)
	}
	if w.Input.Mode == input.Pipelined {
		w.deferred = append(w.deferred, st)
		return
	}
	w.script.Steps = append(w.script.Steps, st)
}

// release writes the deferred replies to messages that were sent together.
func (w *writer) release() {
	w.script.Steps = append(w.script.Steps, w.deferred...)
	w.deferred = nil
}

// waitsFor reports whether a step needs a value from a deferred reply.
func (w *writer) waitsFor(s *input.Step) bool {
	for i := range w.deferred {
		for _, a := range w.deferred[i].Choices[0].Args {
			for k := range s.Args {
				if a.Kind == transcript.Name && w.nameOf(s, k) == a.Name {
					return true
				}
			}
		}
	}
	return false
}

// ask writes a barrier and its reply. With the form exact, the reply has the values that a correct server sent.
// ignoring lets the transcript ignore other messages before the reply.
func (w *writer) ask(a transcript.Actor, ignoring bool) {
	w.release()
	nonce := []byte("there")
	m := w.Barrier.Message(nonce)
	c := transcript.Choice{Type: m.Type, Unchecked: m.Type.Req&a.Role == 0}
	for _, v := range m.Args {
		c.Args = append(c.Args, transcript.Arg{Value: v})
	}
	w.addSent(a, c)
	t := w.Barrier.Reply
	r := transcript.Choice{Type: t, Unchecked: t.Res&a.Role == 0}
	right := w.answered(a)
	for i := range t.NumArgs() {
		arg := transcript.Arg{Kind: transcript.Any}
		if w.Barrier.Nonced {
			arg = transcript.Arg{Value: nonce}
		} else if w.is(exact) && i < len(right) {
			arg = transcript.Arg{Value: right[i]}
		}
		r.Args = append(r.Args, arg)
	}
	w.addExpected(a, r, ignoring)
}

// answered returns the arguments of the last reply to a barrier that a correct server sent to the actor, or nil.
func (w *writer) answered(a transcript.Actor) [][]byte {
	if w.Right == nil {
		return nil
	}
	var raw []byte
	for i := range w.Right.Events {
		if e := &w.Right.Events[i]; e.Barrier && e.From == codec.Server && e.Conn < len(w.actors) && w.actors[e.Conn] == a {
			raw = e.Raw
		}
	}
	sess := w.p.NewSession(codec.Options{})
	m := w.Barrier.Message(nil)
	var f codec.Frame
	_, err := sess.Append(nil, codec.Peer, &m) // the type of a reply depends on the request
	if err == nil {
		_, err = sess.Decode(codec.Server, raw, &f)
	}
	if err != nil {
		return nil
	}
	f.Message(&m)
	return m.Args
}

// step writes a step and the replies to it that matter.
func (w *writer) step(i int) {
	s := &w.Input.Steps[i]
	if s.Verb == transcript.Nothing {
		w.after += s.For
		return
	}
	a := w.actors[s.Conn]
	c := transcript.Choice{Verb: s.Verb, Bytes: s.Bytes}
	if s.Verb == transcript.Send {
		c = w.message(s)
	}
	if s.Verb == transcript.Opens && w.acted(a) {
		return
	}
	if slices.Contains(input.Leaves, s.Verb) && !w.acted(a) {
		return
	}
	if !w.Input.Follows(i) || w.waitsFor(s) {
		w.release()
	}
	w.addSent(a, c)
	if slices.Contains(input.Leaves, s.Verb) {
		w.after = disconnectDelay
	}
	w.replies(i)
}

// disconnectDelay is the pause after a disconnect, in which the server can notice it.
const disconnectDelay = 100 * time.Millisecond

// acted reports whether the transcript contains a step of the actor.
func (w *writer) acted(a transcript.Actor) bool {
	return slices.ContainsFunc(w.script.Steps, func(s transcript.Step) bool { return s.Peer == a })
}

// nameOf returns the name of argument i if it is a value that the server chose, or otherwise "".
func (w *writer) nameOf(s *input.Step, i int) string {
	arg := &s.Args[i]
	if w.bound[arg.Of] {
		return w.names[arg.Of]
	}
	if f := input.AssignedField(s.Type, i); f != nil {
		return w.valueNames[f.Name+string(arg.Value)] // the client has guessed a value that the server also chose
	}
	return ""
}

// message returns the message of a step, with names for values that the server chose and offsets for times. Its
// Unchecked is set if the message is illegal or does not belong to the role of its sender.
func (w *writer) message(s *input.Step) transcript.Choice {
	c := transcript.Choice{Type: s.Type, CRLF: s.CRLF}
	m := codec.Message{Type: s.Type, CRLF: s.CRLF}
	for i, arg := range s.Args {
		if name := w.nameOf(s, i); name != "" {
			c.Args = append(c.Args, transcript.Arg{Kind: transcript.Name, Name: name})
			m.Args = append(m.Args, []byte("1"))
			continue
		}
		m.Args = append(m.Args, arg.Value)
		if arg.Now {
			seconds, _ := strconv.ParseInt(string(arg.Value), 10, 64)
			c.Args = append(c.Args, transcript.Arg{Kind: transcript.Now, Delta: seconds})
			continue
		}
		c.Args = append(c.Args, transcript.Arg{Value: arg.Value})
	}
	_, err := w.p.NewSession(codec.Options{}).Append(nil, codec.Peer, &m)
	c.Unchecked = err != nil || s.Type.Req&w.actors[s.Conn].Role == 0
	return c
}

// Text returns a script in one-line notation, or nil if it cannot be written.
func Text(s *transcript.Script) []byte {
	if s == nil {
		return nil
	}
	var b bytes.Buffer
	if transcript.Lines(&b, s) != nil {
		return nil
	}
	return b.Bytes()
}
