package fuzz

import (
	"fmt"
	"time"

	"jobwire/codec"
	"jobwire/codec/transcript"
)

// conn is one connection of a performance.
type conn struct {
	id       int
	s        socket
	open     bool
	sess     codec.Session // strict, and sees both directions
	ours     []byte        // that are not a whole message yet
	said     []byte        // everything of ours, to find the source of what comes back
	told     int           // of ours, that are in the record
	skip     int           // bytes of a refused message of ours that are still to be sent
	out      []byte        // of ours, not sent yet
	early    []byte        // sent ahead of the steps that they belong to
	led      int           // index of the event that leads these
	in       []byte        // what came, unread
	need     int           // bytes of in that are worth another look
	drop     int           // bytes of a refused message of the server's that are still to come
	waiting  int           // sentinels that are not answered
	nonces   [][]byte
	tainted  bool   // something was sent that is no message
	soft     bool   // and nobody can tell what the server makes of it
	lostUs   bool   // where the next message of ours begins, the server cannot know
	deaf     bool   // nothing that comes is understood any more
	ended    bool   // our direction is closed
	queue    []bool // requests that are not answered, where replies keep their order: whether they may wait
	busy     int    // requests on which the server may keep silent
	earlier  int    // requests before the sentinel whose reply is of its type
	muttered int    // steps since it was lost where messages begin

	within time.Duration // how long an answer may take
}

// soon is within what time an answer is expected as long as nobody objects to anything.
const soon = 250 * time.Millisecond

// atOnce is when those who wait look at what else the server has done meanwhile. One that ends a
// connection may do nothing until that was noticed.
const atOnce = 2 * time.Millisecond

// atFirst is how long an answer may take until others are asked.
func (x *performer) atFirst() time.Duration {
	if x.thorough {
		return x.patience
	}
	return min(x.patience, soon)
}

const (
	maxIn   = 64 << 20 // of one reply
	maxIdle = 1 << 20  // of what is kept for the next conversation
)

// ours tells the model that we have ended a connection, or our direction.
func (x *performer) ours(k *conn) {
	if x.model != nil {
		x.model.Closed(k.id)
	}
	x.edge(1, 0, uint64(k.busy))
}

// connect opens a connection, and says what makes it ones own where others use the server.
func (x *performer) connect(k *conn, id int) bool {
	s, err := dial(x.to, x.patience)
	if err != nil {
		x.lost = true
		x.fault(Fault{Oracle: HangAll, Law: "no connection", Text: fmt.Sprintf("a connection could not be made: %v", err), Conn: id})
		return false
	}
	if cap(k.in) > maxIdle {
		k.in = nil
	}
	*k = conn{id: id, s: s, open: true, within: x.atFirst(), in: k.in[:0], out: k.out[:0], ours: k.ours[:0], nonces: k.nonces[:0], early: k.early[:0], said: append(k.said, 0xff), queue: k.queue[:0]}
	k.sess = x.p.NewSession(codec.Options{Waive: x.known.Waive})
	x.record.add(Event{Conn: id, Verb: transcript.Opens, Step: x.step})
	if x.model != nil {
		x.model.Opened(id)
	}
	if x.prefix == "" {
		return true
	}
	for i := range x.introduction {
		b := x.encode(&x.introduction[i])
		x.put(k, b) // to go with the first message
	}
	return true
}

// noticed waits for the server to end a connection whose other direction we have ended, which
// proves that it knows. Some keep it, as a client's who waits for a result: then what others are
// due is not judged any more.
func (x *performer) noticed(k *conn) {
	most := 30 * time.Millisecond
	if x.thorough {
		most = min(x.patience, 300*time.Millisecond)
	}
	for end := time.Now().Add(most); k.open && x.record.Fault == nil && time.Now().Before(end); {
		n, err := k.s.read(k.room(), atOnce)
		k.in = k.in[:len(k.in)+n]
		switch {
		case n > 0:
			x.digest(k)
		case err == errTimeout:
			x.lookRound(k)
		default:
			x.record.add(Event{Conn: k.id, From: codec.Server, Verb: transcript.Closes, Step: x.step})
			k.s.close(true)
			k.open = false
		}
	}
	if k.open {
		x.common = true
	}
}

// end closes a connection of ours. A server that keeps one whose other direction has ended never
// learns of it.
func (x *performer) end(k *conn, reset bool) {
	if k.ended || !reset {
		x.unnoticed++
	}
	k.s.close(reset)
	k.open = false
}
