package mutants

import (
	"net"
	"strconv"
	"strings"
	"time"

	"jobwire/codec"
	protocol "jobwire/codec/gearmonkey"
	"jobwire/refserver"
	"jobwire/refserver/mutant"
)

type (
	conn    = refserver.Conn
	frame   = codec.Frame
	verdict = refserver.Verdict
)

// bench holds the reference machine while a hook tampers with what goes in and out. A
// command is its words here, the first of them in capitals, and a reply the bytes of it.
// Methods are called under the server's lock, but for those of connections.
type bench struct {
	refserver.Machine
	mutant.Alarms

	peers    map[*conn]*peer
	received map[string]func(p *peer, w []string) // by command, instead of pass
	replied  func(p *peer, reply string) string   // changes what goes out, unless a hook says it; "" is nothing
	rejected func(p *peer, raw string, e *codec.Error) (done bool)
	leaving  func(p *peer)             // before the machine is told
	halved   func(p *peer) (stay bool) // a peer has ended its direction
	opened   func(p *peer)
	wrap     func(net.Conn) net.Conn

	inner *question // what a hook asks the machine by itself
	bytes *string   // what a hook says
}

// peer is one connection.
type peer struct {
	*conn
	words  []string // its last command
	waits  bool     // for the reply to that
	heard  int      // commands
	spelt  string   // its first word, as it was written
	inline bool     // it was a line
	before bool     // and so was the one before

	channels []string          // subscribed to, in the order in which it did
	noted    map[string]string // whatever a hook has to remember
	members  []string
}

// question is a command that no peer has sent, and whose reply none gets.
type question struct {
	conn  *conn
	reply string
}

func newBench(m refserver.Machine) *bench {
	return &bench{Machine: m, peers: map[*conn]*peer{}, received: map[string]func(*peer, []string){}}
}

// on sets what is done with these commands, instead of passing them on.
func (b *bench) on(commands string, do func(p *peer, w []string)) {
	for name := range strings.FieldsSeq(commands) {
		b.received[name] = do
	}
}

func (b *bench) Open(c *conn) {
	p := &peer{conn: c, noted: map[string]string{}}
	b.peers[c] = p
	b.Machine.Open(c)
	if b.opened != nil {
		b.opened(p)
	}
}

func (b *bench) Handle(c *conn, f *frame) {
	p := b.peers[c]
	w := words(string(f.Raw))
	if len(w) == 0 {
		b.Machine.Handle(c, f)
		return
	}
	p.spelt, w[0] = w[0], strings.ToUpper(w[0])
	p.words, p.waits = w, true
	p.before, p.inline = p.inline, f.Raw[0] != '*'
	p.heard++
	p.subscribes(w)
	if do := b.received[w[0]]; do != nil && len(w) >= max(2, least[w[0]]) || do != nil && p.inline {
		do(p, w)
		return
	}
	b.Machine.Handle(c, f)
}

// least is how many words some commands have at least. What is shorter is left to the machine.
var least = map[string]int{"LPUSH": 3, "ZADD": 4, "EXPIRE": 3, "PUBLISH": 3, "EVALSHA": 4, "ZRANGE": 4, "LRANGE": 4}

// words cuts a request. An inline one is cut at its blanks.
func words(raw string) (w []string) {
	if !strings.HasPrefix(raw, "*") {
		return strings.Fields(raw)
	}
	for strings.HasPrefix(raw, "*") || strings.HasPrefix(raw, "$") {
		head, rest, _ := strings.Cut(raw, "\r\n")
		if raw = rest; head[0] == '$' {
			n, _ := strconv.Atoi(head[1:])
			w, raw = append(w, rest[:n]), rest[n+2:]
		}
	}
	return w
}

// pass gives a command to the machine.
func (b *bench) pass(p *peer, w ...string) {
	b.Machine.Handle(p.conn, &frame{From: codec.Peer, Raw: []byte(list(w...))})
}

// ask gives the machine a command that the peer does not know of, and returns the reply. The
// peer must not wait for anything.
func (b *bench) ask(p *peer, w ...string) string {
	was := b.inner
	b.inner = &question{conn: p.conn}
	b.pass(p, w...)
	reply := b.inner.reply
	b.inner = was
	return reply
}

// say sends a reply.
func (b *bench) say(p *peer, reply string) {
	b.bytes = &reply
	p.Send(simple, []byte("OK"))
	b.bytes = nil
}

var simple = protocol.Protocol.TypeNamed("simple")

func (b *bench) Reject(c *conn, f *frame, e *codec.Error) {
	p := b.peers[c]
	if b.rejected == nil || !b.rejected(p, string(f.Raw), e) {
		b.Machine.Reject(c, f, e)
	}
}

func (b *bench) HalfClosed(c *conn) bool {
	if b.halved != nil && b.halved(b.peers[c]) {
		return true
	}
	return b.Machine.HalfClosed(c)
}

func (b *bench) Close(c *conn) {
	if b.leaving != nil {
		b.leaving(b.peers[c])
	}
	b.Machine.Close(c)
	delete(b.peers, c)
}

func (b *bench) Tick(now time.Time) {
	b.Ring(now)
	b.Machine.Tick(now)
}

func (b *bench) Next() time.Time { return b.Alarms.Next(b.Machine.Next()) }

func (b *bench) intercept(c *conn, from codec.Side, f *frame) verdict {
	p := b.peers[c]
	switch {
	case from == codec.Peer || p == nil:
		return verdict{}
	case b.bytes != nil:
		p.waits = false
		return raw(*b.bytes)
	case b.inner != nil && b.inner.conn == c:
		b.inner.reply += string(f.Raw)
		return verdict{Drop: true}
	}
	if !isPush(string(f.Raw)) {
		p.waits = false
	}
	if b.replied == nil {
		return verdict{}
	}
	return raw(b.replied(p, string(f.Raw)))
}

func raw(text string) verdict {
	if text == "" {
		return verdict{Drop: true}
	}
	b := []byte(text)
	return verdict{Raw: &b}
}

func isPush(reply string) bool { return strings.HasPrefix(reply, "*3\r\n$7\r\nmessage\r\n") }

// freely is GearMonkey with a server that may say anything: hooks have the machine answer
// other commands than those that came.
var freely = func() *codec.Protocol {
	p := *protocol.Protocol
	p.NewSession = func(o codec.Options) codec.Session {
		loose := o
		loose.WaiveAll = true
		return session{protocol.Protocol.NewSession(o), protocol.Protocol.NewSession(loose)}
	}
	return &p
}()

// session reads what peers send as any, and what servers send without judging it.
type session struct{ peers, server codec.Session }

func (s session) of(from codec.Side) codec.Session {
	if from == codec.Peer {
		return s.peers
	}
	return s.server
}

func (s session) Decode(from codec.Side, b []byte, f *frame) (int, error) {
	return s.of(from).Decode(from, b, f)
}

func (s session) Append(dst []byte, from codec.Side, m *codec.Message) ([]byte, error) {
	return s.of(from).Append(dst, from, m)
}
