package mutants

import (
	"net"
	"strings"
	"time"

	"jobwire/codec"
	protocol "jobwire/codec/danga"
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
	mutant.Alarms

	received []func(p *peer, f *frame, j *job)         // by row, instead of pass; j is the job that it is about, or nil
	sending  []func(p *peer, f *frame, j *job) verdict // by row, before it goes out
	rejected func(p *peer, f *frame, e *codec.Error) (done bool)
	ending   func(p *peer)             // when it has ended its direction; it may never leave before the server does
	leaving  func(p *peer) (deaf bool) // before the machine is told, which it is not if deaf
	decode   mutant.Decode             // of what peers send
	wrap     func(net.Conn) net.Conn

	cause  string // what the machine does something for: a peer's packet, or its leaving
	about  *job   // which job that is about, or nil
	saying bool   // what is sent comes from a hook
	bytes  []byte // and if not nil, this is sent in its place
	muted  bool   // what the machine sends is for nobody
}

const byLeave = "leave" // a cause that is no packet

func newBench(m refserver.Machine) *bench {
	n := len(protocol.Protocol.Types)
	return &bench{
		Machine:  m,
		ledger:   ledger{peers: map[*conn]*peer{}},
		received: make([]func(*peer, *frame, *job), n),
		sending:  make([]func(*peer, *frame, *job) verdict, n),
	}
}

// on sets what is done with packets of these types, instead of passing them on.
func (b *bench) on(types string, do func(p *peer, f *frame, j *job)) {
	for _, name := range strings.Fields(types) {
		b.received[row(name).Index] = do
	}
}

// out sets what is done with packets of these types that the server sends.
func (b *bench) out(types string, do func(p *peer, f *frame, j *job) verdict) {
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
	p := &peer{conn: c}
	b.peers[c] = p
	b.all = append(b.all, p)
	b.Machine.Open(c)
}

func (b *bench) Handle(c *conn, f *frame) {
	p := b.peers[c]
	b.cause = f.Type.Name
	b.about = heard[b.cause](&b.ledger, p, f)
	if do := b.received[f.Type.Index]; do != nil {
		do(p, f, b.about)
	} else {
		b.pass(p, f)
	}
	p.last = b.cause
	b.cause, b.about = "", nil
}

// pass gives a packet to the machine.
func (b *bench) pass(p *peer, f *frame) { b.Machine.Handle(p.conn, f) }

func (b *bench) Reject(c *conn, f *frame, e *codec.Error) {
	if b.rejected == nil || !b.rejected(b.peers[c], f, e) {
		b.Machine.Reject(c, f, e)
	}
}

func (b *bench) HalfClosed(c *conn) bool {
	b.end(b.peers[c])
	return b.Machine.HalfClosed(c)
}

// end notes that a peer says nothing more.
func (b *bench) end(p *peer) {
	if p.ended {
		return
	}
	if b.ending != nil {
		b.ending(p)
	}
	b.ledger.ends(p)
}

func (b *bench) Close(c *conn) {
	p := b.peers[c]
	b.end(p)
	deaf := b.leaving != nil && b.leaving(p)
	b.cause, b.about = byLeave, p.job
	b.ledger.leaves(p)
	if !deaf {
		b.Machine.Close(c)
	}
	b.cause, b.about = "", nil
}

func (b *bench) Tick(now time.Time) {
	b.Ring(now)
	b.Machine.Tick(now)
}

func (b *bench) Next() time.Time { return b.Alarms.Next(b.Machine.Next()) }

func (b *bench) intercept(c *conn, from codec.Side, f *frame) (v verdict) {
	p := b.peers[c]
	switch {
	case from == codec.Peer || p == nil || f.Type == nil:
		return verdict{}
	case b.muted:
		return drop
	case b.saying:
		if b.bytes != nil {
			return raw(b.bytes)
		}
		return verdict{}
	}
	// The ledger learns first what the machine did, whatever the peer is told of it.
	woken := p.woken
	if learn := said[f.Type.Name]; learn != nil {
		learn(&b.ledger, p, f, b.about)
	}
	if f.Type.Name == "noop" && woken == p.woken {
		p.told++
	}
	do := b.sending[f.Type.Index]
	if do == nil {
		return verdict{}
	}
	if v = do(p, f, b.about); v.Replace != nil {
		// It goes out with the connection's own magic.
		text := encode(codec.Server, v.Replace)
		copy(text, f.Raw[:4])
		v.Replace, v.Raw = nil, &text
	}
	return v
}

// compose is a packet that the hook makes up for a peer.
func compose(name string, args ...string) *frame {
	f := new(frame)
	if _, err := loose().Decode(codec.Peer, encode(codec.Peer, message(name, args)), f); err != nil {
		panic(err) // the mutant's fault, not the peer's
	}
	return f
}

// encode writes a packet with the default magic.
func encode(from codec.Side, m *codec.Message) []byte {
	text, err := loose().Append(nil, from, m)
	if err != nil {
		panic(err)
	}
	return text
}

func loose() codec.Session { return protocol.Protocol.NewSession(codec.Options{WaiveAll: true}) }

// give has the machine take a packet for one of the peer's.
func (b *bench) give(p *peer, name string, args ...string) { b.pass(p, compose(name, args...)) }

// consume makes the machine forget the first job of a name. p, who is leaving, does it.
func (b *bench) consume(p *peer, name string) {
	b.muted = true
	b.give(p, "worker_connect", name)
	b.give(p, "job_assign_req")
	b.give(p, "job_complete_announce", "\x00", "")
	b.muted = false
}

// say sends a packet.
func (b *bench) say(p *peer, name string, args ...string) {
	b.saying = true
	p.conn.Send(row(name), message(name, args).Args...)
	b.saying = false
}

// blurt sends any bytes.
func (b *bench) blurt(p *peer, text string) {
	b.bytes = []byte(text)
	b.say(p, "noop")
	b.bytes = nil
}

func message(name string, args []string) *codec.Message { return mutant.Message(row(name), args) }
func args(f *frame) []string                            { return mutant.Args(f) }
func arg(f *frame, i int) string                        { return mutant.Arg(f, i) }

// drop keeps a packet back.
var drop = verdict{Drop: true}

func replace(name string, args ...string) verdict { return verdict{Replace: message(name, args)} }
func raw(b []byte) verdict                        { return verdict{Raw: &b} }

// changed is what the packet says with another value.
func changed(f *frame, i int, value string) verdict {
	all := args(f)
	all[i] = value
	return replace(f.Type.Name, all...)
}
