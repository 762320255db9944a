package mutants

import (
	"net"
	"strings"
	"time"

	"jobwire/codec"
	protocol "jobwire/codec/gearman"
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
	sending  []func(*conn, *frame) verdict // by row, before a message goes out
	rejected func(*conn, *frame, *codec.Error) (done bool)
	leaving  func(*conn)   // before the machine is told
	decode   mutant.Decode // of what peers send
	wrap     func(net.Conn) net.Conn
	slow     time.Duration
	loose    codec.Session
	ticking  bool
	alarm    time.Time // when ring is due; zero if it is not
	due      time.Time // when the last alarm was due
	ring     func()
	dead     bool           // the server has ended: what was read before is not handled any more
	deaf     map[*conn]bool // nothing more is heard from these
}

func newBench(m refserver.Machine, slow time.Duration) *bench {
	n := len(protocol.Protocol.Types)
	return &bench{
		Machine:  m,
		ledger:   ledger{jobs: map[string]*job{}, peers: map[*conn]*peer{}},
		received: make([]func(*conn, *frame), n),
		sending:  make([]func(*conn, *frame) verdict, n),
		slow:     slow,
		deaf:     map[*conn]bool{},
		loose:    protocol.Protocol.NewSession(codec.Options{WaiveAll: true}),
	}
}

// on sets what is done with messages of these types, instead of passing them on.
func (b *bench) on(types string, do func(c *conn, f *frame)) {
	for _, name := range strings.Fields(types) {
		b.received[row(name).Index] = do
	}
}

// out sets what is done with messages of these types that the server sends.
func (b *bench) out(types string, do func(c *conn, f *frame) verdict) {
	for _, name := range strings.Fields(types) {
		b.sending[row(name).Index] = do
	}
}

// Sets of types.
const (
	submissions = "SUBMIT_JOB SUBMIT_JOB_HIGH SUBMIT_JOB_LOW SUBMIT_JOB_BG SUBMIT_JOB_HIGH_BG SUBMIT_JOB_LOW_BG"
	grabs       = "GRAB_JOB GRAB_JOB_UNIQ GRAB_JOB_ALL"
	assignments = "JOB_ASSIGN JOB_ASSIGN_UNIQ JOB_ASSIGN_ALL"
	results     = "WORK_COMPLETE WORK_FAIL WORK_EXCEPTION"
	reports     = "WORK_DATA WORK_WARNING WORK_STATUS " + results
)

func row(name string) *codec.Type {
	t := protocol.Protocol.TypeNamed(name)
	if t == nil {
		panic("no type " + name)
	}
	return t
}

func (b *bench) Open(c *conn) {
	b.peers[c] = &peer{conn: c, abilities: map[string]bool{}}
	b.Machine.Open(c)
}

func (b *bench) Handle(c *conn, f *frame) {
	if b.dead || b.deaf[c] {
		return
	}
	if do := b.received[f.Type.Index]; do != nil {
		do(c, f)
	} else {
		b.pass(c, f)
	}
}

// pass gives a message to the machine and keeps the ledger.
func (b *bench) pass(c *conn, f *frame) {
	b.met(c, f)
	b.request = f
	b.take(before, c, f)
	b.Machine.Handle(c, f)
	b.take(after, c, f)
	b.request = nil
}

func (b *bench) Reject(c *conn, f *frame, e *codec.Error) {
	b.met(c, f)
	if !b.dead && !b.deaf[c] && (b.rejected == nil || !b.rejected(c, f, e)) {
		b.Machine.Reject(c, f, e)
	}
}

// die ends the server as a crash would.
func (b *bench) die(c *conn) {
	b.dead = true
	c.Shutdown(false)
}

func (b *bench) Close(c *conn) {
	if b.leaving != nil {
		b.leaving(c)
	}
	b.left(c)
	b.Machine.Close(c)
	delete(b.peers, c)
	delete(b.deaf, c)
}

func (b *bench) Tick(now time.Time) {
	b.ticking = true
	if !b.alarm.IsZero() && !b.alarm.After(now) {
		b.due, b.alarm = b.alarm, time.Time{}
		b.ring()
	}
	b.Machine.Tick(now)
	b.ticking = false
}

func (b *bench) Next() time.Time {
	next := b.Machine.Next()
	if next.IsZero() || !b.alarm.IsZero() && b.alarm.Before(next) {
		return b.alarm
	}
	return next
}

func (b *bench) intercept(c *conn, from codec.Side, f *frame) (v verdict) {
	if from == codec.Server && f.Type != nil {
		if do := b.sending[f.Type.Index]; do != nil {
			v = do(c, f)
		}
		b.take(sent, c, f)
	}
	return v
}

// as makes a frame of a message from a peer.
func (b *bench) as(m *codec.Message) *frame {
	raw, err := b.loose.Append(nil, codec.Peer, m)
	f := new(frame)
	if err == nil {
		_, err = b.loose.Decode(codec.Peer, raw, f)
	}
	if err != nil {
		panic(err) // the mutant's fault, not the peer's
	}
	return f
}

// compose is a message that the hook makes up for a peer.
func (b *bench) compose(name string, args ...string) *frame {
	m := &codec.Message{Type: row(name)}
	for _, a := range args {
		m.Args = append(m.Args, []byte(a))
	}
	return b.as(m)
}

// with is the frame with another value in its i-th field.
func (b *bench) with(f *frame, i int, value string) *frame { return b.as(changed(f, i, value)) }

// to is the frame as a message of another type.
func (b *bench) to(f *frame, name string) *frame { return b.as(refserver.Retyped(f, row(name))) }

// changed is what the frame says, with another value in its i-th field.
func changed(f *frame, i int, value string) *codec.Message {
	m := new(codec.Message)
	f.Message(m)
	m.Args[i] = []byte(value)
	return m
}

// say sends a message.
func say(c *conn, name string, args ...string) {
	var values [][]byte
	for _, a := range args {
		values = append(values, []byte(a))
	}
	c.Send(row(name), values...)
}

func arg(f *frame, i int) string { return string(f.Arg(i)) }

// drop keeps a message back.
var drop = verdict{Drop: true}

func replace(m *codec.Message) verdict { return verdict{Replace: m} }
func raw(b []byte) verdict             { return verdict{Raw: &b} }

// cut returns s up to the first sep.
func cut(s, sep string) string {
	s, _, _ = strings.Cut(s, sep)
	return s
}
