package inject

import (
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/vm"

	"jobwire/codec"
)

// fault is one line of a fault script.
type fault struct {
	action *action
	then   bool     // applies only to messages to which the previous fault was applied
	types  []string // names or patterns of message types, or names of events
	side   codec.Side
	nth    int         // if not 0, applies only to the n-th message of each connection that meets the condition
	when   *vm.Program // the condition; nil: always

	to     string        // message type of a retype, an answer, or a message that is sent or given
	args   []*template   // of that message
	field  string        // the field that an alter changes, or the argument that a remove removes
	name   *template     // the name of a note
	own    bool          // the note belongs to the connection
	value  *template     // the new value of the field or note, or the bytes of a reread or write
	pair   bool          // alter the argument after the argument field
	delay  time.Duration // of a delay, or the pause of a split
	size   int           // size of the pieces of a split in bytes
	after  time.Duration // if not 0, the action is performed so much later
	still  *vm.Program   // the condition at that time; nil: always
	bytes  *substitution // of a misread or misread-segment
	peers  *vm.Program   // peers that the message is sent to or given by; nil: the peer of the message
	each   *vm.Program   // a list; the fault is applied once for each element, "it"
	rest   bool          // an expression uses [Peer].Rest
	asks   bool          // an expression of the fault may send a request to the machine
	counts map[*Peer]int // number of messages of each connection that met the condition
}

// copy returns a copy of the fault for one start of a server.
func (f *fault) copy() *fault {
	c := *f
	c.counts = map[*Peer]int{}
	return &c
}

// action is one kind of fault.
type action struct {
	name   string
	args   string
	effect string
	parse  func(p *faultParser, f *fault) error
	do     func(f *fault, m *Message, env map[string]any) error
}

// actions are the actions, in the order of the help text.
var actions []*action

// init fills the table of actions: name, arguments, help text, parser of the arguments and effect. Without a parser the
// action has no arguments after TYPES; the actions without an effect replace bytes before they are decoded.
func init() {
	actions = []*action{
		{"drop", "TYPES", "do not process or send the message", nil, func(_ *fault, m *Message, _ map[string]any) error {
			m.Drop()
			return nil
		}},
		{"delay", "TYPES DURATION", "process or send the message later", parseDelay, doDelay},
		{"duplicate", "TYPES", "process or send the message twice", nil, func(f *fault, m *Message, _ map[string]any) error {
			if m.Copies++; f.side == codec.Peer {
				m.Pass()
				m.again()
			}
			return nil
		}},
		{"split", "TYPES SIZE [PAUSE]", "write the message in pieces of SIZE bytes", parseSplit,
			func(f *fault, m *Message, _ map[string]any) error {
				m.Split, m.Pause = f.size, f.delay
				return nil
			}},
		{"alter", "TYPES FIELD=VALUE", "change the value of a field", parseAlter, doAlter},
		{"remove", "TYPES [KEY]", "remove the argument KEY and the one after it", parseRemove, doRemove},
		{"retype", "TYPES NEWTYPE", "change the type; keep fields of the same name", parseRetype,
			func(f *fault, m *Message, _ map[string]any) error {
				m.Retype(f.to)
				return nil
			}},
		{"become", "TYPES NEWTYPE [ARG...]", "replace the message by another one", parseMessage,
			func(f *fault, m *Message, env map[string]any) error {
				args, err := evalAll(f.args, env)
				m.Become(f.to, args...)
				return err
			}},
		{"reread", "TYPES TEXT", "process TEXT, if it differs from the message", parseText,
			func(f *fault, m *Message, env map[string]any) error {
				text, err := f.value.eval(env)
				if err == nil && text != string(m.Frame.Raw) {
					m.Drop()
					m.Peer.Feed(text)
				}
				return err
			}},
		{"write", "TYPES TEXT", "send the bytes of TEXT instead of the message", parseText,
			func(f *fault, m *Message, env map[string]any) error {
				text, err := f.value.eval(env)
				if f.side == codec.Server {
					m.Raw = []byte(text)
					return err
				}
				m.Drop()
				m.Peer.SendRaw(text)
				return err
			}},
		{"answer", "TYPES REPLY [ARG...]", "do not process the request; send REPLY", parseMessage, doAnswer},
		{"follow", "TYPES OTHER [ARG...]", "send OTHER after the message", parseMessage, doFollow},
		{"send", "TYPES OTHER [ARG...]", "send OTHER before the message", parseMessage, doSend},
		{"give", "TYPES REQUEST [ARG...]", "first process REQUEST, as if the peer sent it", parseMessage, doInject},
		{"ask", "TYPES REQUEST [ARG...]", "like give, but the reply to REQUEST is not sent", parseMessage, doAsk},
		{"pass", "TYPES", "process the message now, before the next fault", nil,
			func(_ *fault, m *Message, _ map[string]any) error {
				m.Pass()
				return nil
			}},
		{"note", "TYPES NAME=VALUE", "remember a value as notes.NAME", parseNote, doNote},
		{"misread", "PATTERN TEXT", "replace received bytes that match PATTERN", parseMisread, nil},
		{"misread-segment", "PATTERN TEXT", "the same in each segment that arrives", parseMisread, nil},
		{"close", "TYPES", "close the connection; the message is dropped", nil, doClose},
		{"hangup", "TYPES", "close the connection after the message", nil,
			func(f *fault, m *Message, _ map[string]any) error {
				if m.Hangup = true; f.side == codec.Peer {
					m.Pass()
					m.Peer.Close()
				}
				return nil
			}},
		{"resume", "TYPES", "accept requests although the connection waits", nil,
			func(_ *fault, m *Message, _ map[string]any) error {
				m.Peer.Resume()
				return nil
			}},
		{"mute", "TYPES", "ignore the message and all bytes after it", nil,
			func(_ *fault, m *Message, _ map[string]any) error {
				m.Drop()
				m.Peer.Ignored = true
				return nil
			}},
		{"crash", "TYPES", "end the server", nil, func(_ *fault, m *Message, _ map[string]any) error {
			if m.Effect != nil {
				m.Effect()
				return nil
			}
			m.Drop()
			m.Server.Crash(m.Peer)
			return nil
		}},
	}
}

// FaultSyntax returns the help text about the syntax of faults.
func FaultSyntax() string {
	var b strings.Builder
	b.WriteString("  ACTION [from-peer|from-server] ARGUMENTS [when CONDITION]\n         [after DURATION [if CONDITION]] [nth=N]\n\nACTION and ARGUMENTS:\n")
	for _, a := range actions {
		fmt.Fprintf(&b, "  %-29s  %s\n", a.name+" "+a.args, a.effect)
	}
	b.WriteString(`
TYPES are message types of the protocol, separated by commas; * stands for any
characters. from-peer selects messages that the server receives, from-server messages
that it sends. The default is from-server, or from-peer if the server never sends the
type. nth=N selects the Nth message of each connection that meets the condition.
after DURATION performs the action later, if the connection and CONDITION still allow it.
PATTERN is a regular expression; ^ is the beginning of a message or segment.

CONDITION is an expression (https://expr-lang.org/docs/language-definition). The fields
of the message are variables, in lower case and with _ for spaces:
  drop SUBMIT_JOB when function == "f" and len(workload) > 64
  alter JOB_ASSIGN workload={workload[:4]} when job.assigned > 1
  follow SUBMIT_JOB* NOOP to {filter(peers, does(#, function))}
  send (opened) NOOP after 1s if peer.heard == 0
A fault that begins with "then" and names no TYPES is applied to the messages to
which the previous fault was applied.
In VALUE and ARG, an expression in braces stands for its value. 'go doc
jobwire/refserver/inject' lists the variables and functions.
`)
	return b.String()
}

// ParseFaults parses a fault script and returns the edit that injects the faults. It returns an error if a line is
// invalid. Each line of a script has one fault; empty lines and lines that begin with "#" are ignored. Faults about the
// same message are applied in the order of their lines. The variables of expressions are:
//
//	the fields of the message, such as function or job_handle; a field that repeats is a list
//	message    the message: message.name is its type, message.args has the values of all fields
//	raw        the bytes of the message
//	violates   the ID of the rule that an illegal message violates, or ""
//	like       the type of an illegal message, or ""
//	job        the job that the message is about ([Job]); its ID is "" if there is none
//	jobs       all jobs, in the order of their submission
//	peer       the connection of the message ([Peer])
//	peers      all connections
//	request    the message that the server is handling: for a message that the server sends, usually the request
//	cause      the type of that message, "(time)", or "(closed)" if a connection was closed
//	heard      the number of messages received on all connections
//	notes      the values stored by the action note: notes.NAME; peer.notes has those whose name begins with "peer."
//	args       message.args, in a protocol whose requests are commands with arguments
//	it         an element of the list in a fault that ends in "for {LIST}"; the old value in "alter TYPES [FIELD]=VALUE"
//
// Fields of jobs, peers and messages are written in lower case: job.queue, peer.count["GRAB_JOB"]. The functions are
// those of the expression language and:
//
//	len(v)              the length of a string in bytes, or of a list
//	number(s)           the value of a decimal, or 0
//	up_to(s, sep)       the part of s before the first sep
//	is_queued(j)        whether the job waits for a worker
//	is_running(j)       whether the job is assigned to a worker
//	does(p, name)       whether the worker has registered the function
//	of(p)               the jobs that are assigned to the worker
//	by_id(id)           the job with the ID or handle; its ID is "" if there is none
//	previous(p)         the type of the previous message of the peer, or ""
//	ask(p, type, arg...) the machine's reply to a request that the peer has not sent; the reply is not sent to the peer
//	waits(j, p)         whether the client waits for the job
//	pairs(list)         the map of a list of keys and values
//	big_endian(n)       n as four bytes, the most significant one first
//	from_big_endian(s)  the number that the bytes represent, the most significant one first
//	now()               the Unix time in seconds
//	replace_all(s, pattern, by)  s with all matches of a regular expression replaced; $1 in by is the first group
//
// A protocol may have additional functions: see [Protocol].Functions.
//
// The NAME of a note may contain expressions, as in "note SET {args[0]}={now()}". A note whose name begins with "peer."
// is stored for the connection: peer.notes.NAME.
//
// The action misread replaces bytes from peers before they are decoded. In its TEXT, $1 is the first group of the
// pattern, and $$ is a dollar sign. Bytes above 0x7f that are not UTF-8 match [^\x00-\x7f].
//
// The action alter with FIELD in square brackets alters the argument after the argument FIELD, as in
// "alter stats-reply [pause]=0" and "alter stats-reply [kicks]={number(it) + 1}". In the arguments of a message that is
// sent or given, {LIST...} is replaced by one argument for each element of a list. The peer of an ask must not be
// waiting for a reply.
//
// A line may begin with "then" and have no message types, as in "then send NOOP": this fault is applied to the messages
// to which the previous fault was applied. A fault is not applied to a message for which its LIST is empty.
//
// A fault that ends in "after DURATION" performs its action so much later, unless the connection of the message has
// been closed by then. With "if CONDITION" after the duration, it does so only if this condition is true at that time.
//
// The action misread-segment replaces bytes in each segment that the server receives, before it divides them into
// messages.
//
// A fault that ends in "to {PEERS}" sends its message to these connections, or closes them. One that ends in "as
// {PEERS}" gives the message to the server as if these connections had sent it. A fault about a message type also
// applies to illegal messages of the type, in which fields may be missing (""); the condition violates == "" excludes
// them. The action alter does not change messages that lack a field.
func (p *Protocol) ParseFaults(script string) (Edit, error) {
	all, err := p.parseFaults(script)
	if err != nil {
		return nil, err
	}
	return func(s *Server) {
		mine := make([]*fault, len(all))
		for i, f := range all {
			mine[i] = f.copy()
			if f.bytes != nil {
				f.bytes.edit(s)
			}
			s.rests = s.rests || f.rest
		}
		s.observe(func(side codec.Side, m *Message) {
			happened := false // the previous fault without "then" was applied
			for _, f := range mine {
				switch {
				case f.then && happened:
					f.inject(m)
				case !f.then:
					happened = f.side == side && f.concerns(m) && f.inject(m)
				}
			}
		})
	}, nil
}

// observe calls do for all messages and events. The side is that of the sender.
func (s *Server) observe(do func(codec.Side, *Message)) {
	s.On("* "+strings.Join([]string{Opened, Illegal, Ended, HalfClosed, Closed}, " "),
		func(m *Message) { do(codec.Peer, m) })
	s.Out("*", func(m *Message) { do(codec.Server, m) })
}

// parseFaults returns the faults of a script.
func (p *Protocol) parseFaults(script string) ([]*fault, error) {
	var all []*fault
	var last *fault
	for line := range strings.Lines(script) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		f, err := p.parseFault(line, last)
		if err != nil {
			return nil, fmt.Errorf("fault %q: %w", line, err)
		}
		all = append(all, f)
		if f.bytes == nil {
			last = f
		}
	}
	return all, nil
}

// concerns reports whether the types of the fault include that of the message. Patterns do not include events.
func (f *fault) concerns(m *Message) bool {
	return slices.ContainsFunc(f.types, func(pattern string) bool {
		for _, name := range m.types() {
			if ok, _ := path.Match(pattern, name); ok && (name[0] != '(' || pattern == name) {
				return true
			}
		}
		return false
	})
}

// types returns the names of the message's type. In a protocol with commands (see [Protocol].Read) these are the
// command and the message type.
func (m *Message) types() []string {
	names := []string{m.nameBefore}
	if m.Frame != nil && m.Frame.Type != nil && m.Frame.Type.Name != m.nameBefore {
		names = append(names, m.Frame.Type.Name)
	}
	return names
}

// inject applies the fault to a message if its condition is true, and reports whether it was applied.
func (f *fault) inject(m *Message) bool {
	env := m.environment()
	return f.applies(m, env) && f.apply(m, env)
}

// applies reports whether the condition of the fault is true for a message, and counts the message if it is.
func (f *fault) applies(m *Message, env map[string]any) bool {
	if f.when != nil {
		yes, err := expr.Run(f.when, env)
		if m.fail(err); yes != true {
			return false
		}
	}
	f.counts[m.Peer]++
	return f.nth == 0 || f.nth == f.counts[m.Peer]
}

// apply performs the action of the fault, and reports whether its list has elements.
func (f *fault) apply(m *Message, env map[string]any) bool {
	if f.after > 0 {
		late := m.kept()
		m.Peer.Later(f.after, func() {
			env := late.environment()
			if f.still != nil {
				yes, err := expr.Run(f.still, env)
				if late.fail(err); yes != true {
					return
				}
			}
			f.perform(late, env)
		})
		return true
	}
	return f.perform(m, env)
}

// perform performs the action now, for each element of the list if there is one, and reports whether the list has
// elements.
func (f *fault) perform(m *Message, env map[string]any) bool {
	if f.each == nil {
		m.fail(f.action.do(f, m, env))
		return true
	}
	list, err := expr.Run(f.each, env)
	m.fail(err)
	all := elements(list)
	for _, it := range all {
		env["it"] = it
		m.fail(f.action.do(f, m, env))
	}
	return len(all) > 0
}

// fail reports the error of an expression that cannot be evaluated, that is, a mistake in the fault script.
func (m *Message) fail(err error) {
	if err != nil && m.Server.Errors != nil {
		m.Server.Errors(err)
	}
}

// doDelay performs "delay". It postpones a message to a peer by a field of the message; it drops a message from a peer
// and passes a copy of it to the machine later, unless the peer is muted by then.
func doDelay(f *fault, m *Message, _ map[string]any) error {
	if f.side == codec.Server {
		m.Delay = f.delay
		return nil
	}
	late := m.kept()
	m.Drop()
	m.Peer.Later(f.delay, func() {
		s := late.Server
		if late.Peer.Ignored {
			return
		}
		cause, request := s.Cause, s.Request
		s.Cause, s.Request = late.Name, late
		late.Pass()
		s.Cause, s.Request = cause, request
	})
	return nil
}

// kept returns a copy of the message that stays valid after the message has been handled.
func (m *Message) kept() *Message {
	c := *m
	if c.done = false; m.Frame != nil {
		frame := m.Frame.Clone()
		c.Frame = &frame
	}
	return &c
}

// doClose closes the connections of "to". Without these it closes that of the message, which is then dropped.
func doClose(f *fault, m *Message, env map[string]any) error {
	if f.peers == nil {
		m.Drop()
	}
	peers, err := f.receivers(m, env)
	for _, p := range peers {
		p.Close()
	}
	return err
}

// doAlter performs "alter": it sets a field, or with [KEY] the argument after the first argument that equals KEY. It
// does nothing if there is no such argument.
func doAlter(f *fault, m *Message, env map[string]any) error {
	i := -1
	if f.pair {
		if i = slices.Index(m.Args, f.field) + 1; i == 0 || i == len(m.Args) {
			return nil
		}
		if f.each == nil {
			env["it"] = m.Args[i]
		}
	}
	v, err := f.value.eval(env)
	if err != nil {
		return err
	}
	if f.pair {
		m.Args[i] = v
	} else {
		m.set(f.field, v)
	}
	return nil
}

func doRemove(f *fault, m *Message, _ map[string]any) error {
	if i := slices.Index(m.Args, f.field); i >= 0 {
		m.Args = slices.Delete(m.Args, i, min(i+2, len(m.Args)))
	}
	return nil
}

// doNote performs "note": it stores a value under a name, in the notes of the connection or of the server.
func doNote(f *fault, m *Message, env map[string]any) error {
	name, err := f.name.eval(env)
	if err != nil {
		return err
	}
	v, err := f.value.any(env)
	if f.own {
		m.Peer.Noted[name] = v
	} else {
		m.Server.Noted[name] = v
	}
	return err
}

func doAnswer(f *fault, m *Message, env map[string]any) error {
	args, err := evalAll(f.args, env)
	if err == nil {
		m.Answer(f.to, args...)
	}
	return err
}

// doFollow performs "follow". The message OTHER is sent after a reply by means of the field Also of that message, and
// after a request when the machine has handled the request.
func doFollow(f *fault, m *Message, env map[string]any) error {
	if f.side == codec.Server && f.peers == nil {
		args, err := evalAll(f.args, env)
		m.Also = m.newMessage(f.to, args)
		return err
	}
	m.Pass()
	return doSend(f, m, env)
}

func doSend(f *fault, m *Message, env map[string]any) error { return f.deliver(m, env, (*Peer).Send) }

func doInject(f *fault, m *Message, env map[string]any) error {
	return f.deliver(m, env, (*Peer).Inject)
}

func doAsk(f *fault, m *Message, env map[string]any) error {
	return f.deliver(m, env, func(p *Peer, name string, args ...string) { p.Ask(name, args...) })
}

// deliver calls do for each receiver of the fault's message.
func (f *fault) deliver(m *Message, env map[string]any, do func(p *Peer, name string, args ...string)) error {
	args, err := evalAll(f.args, env)
	if err != nil {
		return err
	}
	peers, err := f.receivers(m, env)
	for _, p := range peers {
		do(p, f.to, args...)
	}
	return err
}

// receivers returns the connected peers of "to" or "as", or without these the peer of the message.
func (f *fault) receivers(m *Message, env map[string]any) ([]*Peer, error) {
	if f.peers == nil {
		return []*Peer{m.Peer}, nil
	}
	list, err := expr.Run(f.peers, env)
	var peers []*Peer
	for _, p := range elements(list) {
		if p, ok := p.(*Peer); ok && p != nil && p.Conn != nil {
			peers = append(peers, p)
		}
	}
	return peers, err
}

// elements returns the elements of a list. A value that is not a list is its own only element; nil has none.
func elements(list any) []any {
	if list == nil {
		return nil
	}
	v := reflect.ValueOf(list)
	if v.Kind() != reflect.Slice {
		return []any{list}
	}
	all := make([]any, v.Len())
	for i := range all {
		all[i] = v.Index(i).Interface()
	}
	return all
}

// template is a text that contains expressions in braces.
type template struct {
	parts []part
	list  bool // the only part is an expression, and each element of its value is one argument
}

// part is a literal text, or an expression if expr is not nil.
type part struct {
	text string
	expr *vm.Program
}

// eval returns the text with the values of its expressions; env has the variables.
func (t *template) eval(env map[string]any) (string, error) {
	var b strings.Builder
	for _, p := range t.parts {
		if p.expr == nil {
			b.WriteString(p.text)
			continue
		}
		v, err := expr.Run(p.expr, env)
		if err != nil {
			return "", err
		}
		fmt.Fprint(&b, v)
	}
	return b.String(), nil
}

// any returns the value of the expression if the template consists of one expression, otherwise its text.
func (t *template) any(env map[string]any) (any, error) {
	if len(t.parts) == 1 && t.parts[0].expr != nil {
		return expr.Run(t.parts[0].expr, env)
	}
	return t.eval(env)
}

// evalAll returns the values of the arguments of a message. A template that is a list returns one value for each
// element.
func evalAll(all []*template, env map[string]any) ([]string, error) {
	var values []string
	for _, t := range all {
		if t.list {
			v, err := t.any(env)
			if err != nil {
				return nil, err
			}
			for _, e := range elements(v) {
				values = append(values, fmt.Sprint(e))
			}
			continue
		}
		v, err := t.eval(env)
		if err != nil {
			return nil, err
		}
		values = append(values, v)
	}
	return values, nil
}

// set changes all occurrences of a field of the message to the value.
func (m *Message) set(field, value string) {
	if m.commands() || m.Name == Illegal {
		changed := new(codec.Message)
		m.Frame.Message(changed)
		if least, _, _ := m.Frame.Type.Arity(); len(changed.Args) < least {
			return // the missing fields would get values that the peer did not send
		}
		for i := range changed.Args {
			if f := m.Frame.Type.FieldAt(i); f != nil && variable(f) == field {
				changed.Args[i] = []byte(value)
			}
		}
		m.replace(changed)
		return
	}
	t := m.protocol.MustTypeNamed(m.Name)
	for i := range m.Args {
		if f := t.FieldAt(i); f != nil && variable(f) == field {
			m.Args[i] = value
		}
	}
}

// replace replaces a command or an illegal message by another message. The replacement may be illegal, too.
func (m *Message) replace(by *codec.Message) {
	f := new(codec.Frame)
	raw, err := m.nonStrict.Append(nil, codec.Peer, by)
	session := m.nonStrict
	if m.Name == Illegal {
		session = m.protocol.NewSession(codec.Options{Waive: m.protocol.Waive})
	}
	if err == nil {
		_, err = session.Decode(codec.Peer, raw, f)
	}
	e, _ := err.(*codec.Error)
	switch {
	case m.Name == Illegal:
		if m.Drop(); e != nil {
			m.Machine.Reject(m.Peer.Conn, f, e)
		} else if err == nil {
			m.pass(m.Server.message(m.Peer, f), f)
		}
	case err == nil:
		m.Frame = f
		m.protocol.Read(m)
	}
}

// retyped returns a message of another type with the values of frame. Fields with the same name keep their values. The
// last field keeps its value if it is opaque in both types.
func retyped(frame *codec.Frame, to *codec.Type) *codec.Message {
	var was codec.Message
	frame.Message(&was)
	values := map[string][]byte{}
	var last []byte
	for i, v := range was.Args {
		if f := frame.Type.FieldAt(i); f != nil {
			values[f.Name] = v
			last = v
		}
	}
	n := len(frame.Type.Fields)
	opaque := n > 0 && frame.Type.Fields[n-1].Kind == codec.Opaque
	m := &codec.Message{Type: to, CRLF: was.CRLF}
	for i := range to.NumArgs() {
		f := to.FieldAt(i)
		v, ok := values[f.Name]
		switch {
		case ok:
		case f.Optional:
			return m
		case i == to.NumArgs()-1 && f.Kind == codec.Opaque && opaque:
			v = last
		}
		m.Args = append(m.Args, v)
	}
	return m
}
