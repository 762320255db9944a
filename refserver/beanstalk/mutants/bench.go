package mutants

import (
	"net"
	"slices"
	"strings"
	"time"

	"jobwire/codec"
	protocol "jobwire/codec/beanstalk"
	"jobwire/refserver"
	"jobwire/refserver/mutant"
)

type (
	conn    = refserver.Conn
	frame   = codec.Frame
	verdict = refserver.Verdict
)

// bench holds the reference machine while a hook tampers with what goes in and out. Its
// methods are called under the server's lock, but for those of connections.
type bench struct {
	refserver.Machine
	ledger

	received []func(*conn, *frame)         // by row, instead of pass
	sending  []func(*conn, *frame) verdict // by row, before a reply goes out
	rejected func(*conn, *frame, *codec.Error) (done bool)
	opened   func(*conn)
	leaving  func(*conn) // before the machine is told
	halved   func(*conn) (done bool)
	decode   mutant.Decode // of what peers send
	wrap     func(net.Conn) net.Conn

	inner  *question // what a hook asks the machine by itself
	saying bool      // what is sent comes from a hook
	cause  string    // what the machine does something for: a command, or one of the causes below
	bytes  []byte    // and if not nil, this is sent in its place
	alarms []alarm
	dead   bool           // the server has ended: what was read before is not handled any more
	deaf   map[*conn]bool // nothing more is heard from these
}

// Causes that are no commands.
const (
	byTime  = "time"
	byLeave = "leave"
)

// question is a command that no peer has sent, and whose reply none gets.
type question struct {
	conn           *conn
	command, reply *frame
}

type alarm struct {
	at time.Time
	do func()
}

func newBench(m refserver.Machine) *bench {
	n := len(protocol.Protocol.Types)
	return &bench{
		Machine:  m,
		ledger:   ledger{jobs: map[string]*job{}, peers: map[*conn]*peer{}},
		received: make([]func(*conn, *frame), n),
		sending:  make([]func(*conn, *frame) verdict, n),
		deaf:     map[*conn]bool{},
	}
}

// on sets what is done with commands of these types, instead of passing them on.
func (b *bench) on(types string, do func(c *conn, f *frame)) {
	for _, name := range strings.Fields(types) {
		b.received[row(name).Index] = do
	}
}

// out sets what is done with replies of these types.
func (b *bench) out(types string, do func(c *conn, f *frame) verdict) {
	for _, name := range strings.Fields(types) {
		b.sending[row(name).Index] = do
	}
}

func row(name string) *codec.Type {
	t := protocol.Protocol.TypeNamed(name)
	if t == nil {
		panic("no type " + name)
	}
	return t
}

func (b *bench) Open(c *conn) {
	b.peers[c] = &peer{conn: c, tube: "default"}
	b.Machine.Open(c)
	if b.opened != nil {
		b.opened(c)
	}
}

func (b *bench) Handle(c *conn, f *frame) {
	if b.dead || b.deaf[c] {
		return
	}
	b.met(c, f)
	if do := b.received[f.Type.Index]; do != nil {
		do(c, f)
	} else {
		b.pass(c, f)
	}
}

// pass gives a command to the machine.
func (b *bench) pass(c *conn, f *frame) {
	b.cause = f.Type.Name
	b.Machine.Handle(c, f)
	b.cause = ""
}

func (b *bench) Reject(c *conn, f *frame, e *codec.Error) {
	if b.dead || b.deaf[c] {
		return
	}
	b.met(c, f)
	if b.rejected == nil || !b.rejected(c, f, e) {
		b.Machine.Reject(c, f, e)
	}
}

// feed treats text as if it had come from the peer. It is one message.
func (b *bench) feed(c *conn, text string) {
	f := new(frame)
	_, err := protocol.Protocol.NewSession(codec.Options{}).Decode(codec.Peer, []byte(text), f)
	if e, ok := err.(*codec.Error); ok {
		b.Reject(c, f, e)
	} else if err == nil {
		b.Handle(c, f)
	}
}

func (b *bench) HalfClosed(c *conn) bool {
	if b.halved != nil && b.halved(c) {
		return true
	}
	return b.Machine.HalfClosed(c)
}

func (b *bench) Close(c *conn) {
	if b.leaving != nil {
		b.leaving(c)
	}
	b.left(c)
	b.cause = byLeave
	b.Machine.Close(c)
	b.cause = ""
	delete(b.peers, c)
	delete(b.deaf, c)
}

// die ends the server as a crash would.
func (b *bench) die(c *conn) {
	b.dead = true
	c.Shutdown(false)
}

// after has something done in so much time.
func (b *bench) after(d time.Duration, do func()) {
	b.alarms = append(b.alarms, alarm{time.Now().Add(d), do})
}

func (b *bench) Tick(now time.Time) {
	var due []alarm
	b.alarms = slices.DeleteFunc(b.alarms, func(a alarm) bool {
		if a.at.After(now) {
			return false
		}
		due = append(due, a)
		return true
	})
	for _, a := range due {
		a.do()
	}
	b.cause = byTime
	b.Machine.Tick(now)
	b.cause = ""
}

func (b *bench) Next() time.Time {
	next := b.Machine.Next()
	for _, a := range b.alarms {
		if next.IsZero() || a.at.Before(next) {
			next = a.at
		}
	}
	return next
}

func (b *bench) intercept(c *conn, from codec.Side, f *frame) verdict {
	p := b.peers[c]
	switch {
	case from == codec.Peer || p == nil:
		return verdict{}
	case b.saying:
		p.waits = false
		if b.bytes != nil {
			return raw(b.bytes)
		}
		return verdict{}
	case b.inner != nil && b.inner.conn == c:
		b.inner.reply = read(b.inner.command, f.Raw)
		return drop
	}
	reply := read(&p.request, f.Raw)
	p.waits = false
	if reply.Type == nil {
		return verdict{}
	}
	b.replied(p, reply)
	if do := b.sending[reply.Type.Index]; do != nil {
		return do(c, reply)
	}
	return verdict{}
}

// read reads a reply beside its command.
func read(command *frame, reply []byte) *frame {
	s := protocol.Protocol.NewSession(codec.Options{WaiveAll: true})
	s.Decode(codec.Peer, command.Raw, new(frame))
	f := new(frame)
	s.Decode(codec.Server, slices.Clone(reply), f)
	return f
}

// compose is a command that the hook makes up.
func compose(name string, args ...string) *frame {
	s := protocol.Protocol.NewSession(codec.Options{WaiveAll: true})
	text, err := s.Append(nil, codec.Peer, message(name, args))
	f := new(frame)
	if err == nil {
		_, err = s.Decode(codec.Peer, text, f)
	}
	if err != nil {
		panic(err) // the mutant's fault, not the peer's
	}
	return f
}

// do gives the machine a command for the one that the peer sent.
func (b *bench) do(c *conn, name string, args ...string) {
	f := compose(name, args...)
	b.peers[c].request = f.Clone()
	b.pass(c, f)
}

// ask gives the machine a command that the peer does not know of, and returns the reply.
func (b *bench) ask(c *conn, name string, args ...string) *frame {
	was := b.inner
	q := &question{conn: c, command: compose(name, args...)}
	b.inner = q
	b.Machine.Handle(c, q.command)
	b.inner = was
	return q.reply
}

// figures asks for statistics. There are none if what they are about does not exist.
func (b *bench) figures(c *conn, name string, about ...string) map[string]string {
	f := b.ask(c, name, about...)
	if f == nil || f.Type != row("stats-reply") {
		return nil
	}
	all := map[string]string{}
	for a := args(f); len(a) > 1; a = a[2:] {
		all[a[0]] = a[1]
	}
	return all
}

// say sends a reply.
func (b *bench) say(c *conn, name string, args ...string) {
	b.saying = true
	c.Send(row(name), message(name, args).Args...)
	b.saying = false
}

// blurt sends any bytes.
func (b *bench) blurt(c *conn, text string) {
	b.bytes = []byte(text)
	b.say(c, "INTERNAL_ERROR")
	b.bytes = nil
}

func message(name string, args []string) *codec.Message { return mutant.Message(row(name), args) }
func args(f *frame) []string                            { return mutant.Args(f) }
func arg(f *frame, i int) string                        { return mutant.Arg(f, i) }

// drop keeps a message back.
var drop = verdict{Drop: true}

func replace(name string, args ...string) verdict { return verdict{Replace: message(name, args)} }
func raw(b []byte) verdict                        { return verdict{Raw: &b} }

// changed is a reply with another value.
func changed(f *frame, i int, value string) verdict {
	all := args(f)
	all[i] = value
	return replace(f.Type.Name, all...)
}
