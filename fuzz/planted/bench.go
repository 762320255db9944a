package planted

import (
	"context"
	"os"
	"slices"
	"strings"

	"jobwire/codec"
	"jobwire/refserver"
)

type (
	frame   = codec.Frame
	verdict = refserver.Verdict
)

// Hook changes what a server does. It is called once for each life of a server, and keeps
// what it must remember in its closures.
type Hook func(*bench)

// bench holds the reference machine while a hook tampers with what goes in and out. Its
// methods are called under the server's lock.
type bench struct {
	refserver.Machine
	ctx   context.Context // the server's life
	proto *codec.Protocol
	asks  string // the type that is no part of a peer's past

	received map[string]func(p *peer, f *frame)         // by type, instead of pass
	sending  map[string]func(p *peer, f *frame) verdict // by type, before it goes out
	rejected func(p *peer, f *frame, e *codec.Error)    // before the machine is told
	halved   func(p *peer)                              // likewise
	left     func(p *peer)                              // likewise
	read     func(together []byte) []byte               // what is made of bytes that come together; not under the lock

	peers  []*peer // that are connected, the oldest first
	muted  bool    // what the machine sends is for nobody
	saying bool    // what is sent comes from a hook
	bytes  *[]byte // and if not nil, this is sent in its place

	kept [][]byte   // what has leaked
	open []*os.File // likewise
}

// peer is one connection.
type peer struct {
	*refserver.Conn
	used bool     // it has said something
	past []string // the types of its messages, without the one that is being handled
	now  string   // and the type of that
	deaf bool     // nothing more is heard of it
	job  string   // the handle or the ID of the job that it has, where a hook follows that
	mark bool     // whatever a hook has to remember
}

// recent holds the last few values that it was given: what is remembered for ever would be a
// leak, and another fault than the one that is planted.
type recent []string

func (r *recent) add(v string) {
	if len(*r) == 256 {
		*r = slices.Delete(*r, 0, 1)
	}
	*r = append(*r, v)
}

func (r recent) has(v string) bool { return slices.Contains(r, v) }

// maxPast is how many messages of a peer are remembered.
const maxPast = 4

func newBench(ctx context.Context, p *codec.Protocol, m refserver.Machine, asks string) *bench {
	return &bench{
		Machine:  m,
		ctx:      ctx,
		proto:    p,
		asks:     asks,
		received: map[string]func(*peer, *frame){},
		sending:  map[string]func(*peer, *frame) verdict{},
	}
}

// on sets what is done with messages of these types, instead of passing them on.
func (b *bench) on(types string, do func(p *peer, f *frame)) {
	for name := range strings.FieldsSeq(types) {
		b.received[b.row(name).Name] = do
	}
}

// out sets what is done with messages of these types that the server sends.
func (b *bench) out(types string, do func(p *peer, f *frame) verdict) {
	for name := range strings.FieldsSeq(types) {
		b.sending[b.row(name).Name] = do
	}
}

func (b *bench) row(name string) *codec.Type {
	t := b.proto.TypeNamed(name)
	if t == nil {
		panic("no type " + name)
	}
	return t
}

func (b *bench) Open(c *refserver.Conn) {
	b.peers = append(b.peers, &peer{Conn: c})
	b.Machine.Open(c)
}

// of returns the peer of a connection, or nil.
func (b *bench) of(c *refserver.Conn) *peer {
	for _, p := range b.peers {
		if p.Conn == c {
			return p
		}
	}
	return nil
}

// other returns the oldest of the other peers that have said something, or nil.
func (b *bench) other(p *peer) *peer {
	for _, o := range b.peers {
		if o != p && o.used {
			return o
		}
	}
	return nil
}

func (b *bench) Handle(c *refserver.Conn, f *frame) {
	p := b.of(c)
	if p.deaf {
		return
	}
	p.now = f.Type.Name
	if do := b.received[p.now]; do != nil {
		do(p, f)
	} else {
		b.pass(p, f)
	}
	if p.now != b.asks {
		p.past = append(p.past, p.now)
		p.past = p.past[max(0, len(p.past)-maxPast):]
	}
	p.used, p.now = true, ""
}

// pass gives a message to the machine.
func (b *bench) pass(p *peer, f *frame) { b.Machine.Handle(p.Conn, f) }

func (b *bench) Reject(c *refserver.Conn, f *frame, e *codec.Error) {
	p := b.of(c)
	if p.deaf {
		return
	}
	if b.rejected != nil {
		b.rejected(p, f, e)
	}
	b.Machine.Reject(c, f, e)
}

func (b *bench) HalfClosed(c *refserver.Conn) bool {
	if b.halved != nil {
		b.halved(b.of(c))
	}
	return b.Machine.HalfClosed(c)
}

func (b *bench) Close(c *refserver.Conn) {
	p := b.of(c)
	if b.left != nil {
		b.left(p)
	}
	b.Machine.Close(c)
	b.peers = slices.DeleteFunc(b.peers, func(o *peer) bool { return o == p })
}

func (b *bench) intercept(c *refserver.Conn, from codec.Side, f *frame) verdict {
	switch {
	case from == codec.Peer:
		return verdict{}
	case b.muted:
		return verdict{Drop: true}
	case b.saying:
		return verdict{Raw: b.bytes}
	case f.Type == nil:
		return verdict{}
	}
	if do := b.sending[f.Type.Name]; do != nil {
		if p := b.of(c); p != nil {
			return do(p, f)
		}
	}
	return verdict{}
}

// give has the machine take a message that the hook makes up for one of the peer's.
func (b *bench) give(p *peer, name string, args ...string) {
	loose := b.proto.NewSession(codec.Options{WaiveAll: true})
	raw, err := loose.Append(nil, codec.Peer, b.message(name, args))
	f := new(frame)
	if err == nil {
		_, err = loose.Decode(codec.Peer, raw, f)
	}
	if err != nil {
		panic(err) // the hook's fault, not the peer's
	}
	b.pass(p, f)
}

// secretly has the machine do something of which no peer hears.
func (b *bench) secretly(do func()) {
	b.muted = true
	do()
	b.muted = false
}

// say sends the peer a message.
func (b *bench) say(p *peer, name string, args ...string) {
	b.saying = true
	p.Send(b.row(name), b.message(name, args).Args...)
	b.saying = false
}

// blurt sends the peer any bytes, in the place of a message of that type.
func (b *bench) blurt(p *peer, name, text string) {
	b.bytes = raw(text).Raw
	b.say(p, name)
	b.bytes = nil
}

func (b *bench) message(name string, args []string) *codec.Message {
	m := &codec.Message{Type: b.row(name)}
	for _, a := range args {
		m.Args = append(m.Args, []byte(a))
	}
	return m
}

// args are the values that a message has, without sizes.
func args(f *frame) []string {
	m := new(codec.Message)
	f.Message(m)
	all := make([]string, len(m.Args))
	for i, a := range m.Args {
		all[i] = string(a)
	}
	return all
}

// arg is the value of a field, by its label, or "".
func arg(f *frame, label string) string {
	for i := range f.Spans {
		if f.Spans[i].Field.Name == label {
			return string(f.Value(i))
		}
	}
	return ""
}

// changed is what the frame says with another value in its i-th argument.
func (b *bench) changed(f *frame, i int, value string) verdict {
	all := args(f)
	all[i] = value
	return verdict{Replace: b.message(f.Type.Name, all)}
}

func raw(text string) verdict {
	b := []byte(text)
	return verdict{Raw: &b}
}
