package fuzz

import (
	"bytes"
	"strconv"

	"jobwire/codec"
	"jobwire/codec/transcript"
)

// Bounds of what is sent ahead: no server is to be stuck with replies that nobody reads.
const (
	maxAhead   = 8 // messages
	aheadBytes = 8 << 10
)

// ahead sends the messages of several steps at once, each with its sentinel, where they are alone
// with the server: the steps that follow i on connection k. They are taken one by one nevertheless,
// each when the replies to those before it have been read: for session and model nothing changes.
// Most of what a conversation costs is waiting for each other.
func (x *performer) ahead(c *Conv, k *conn, i int) {
	if !c.Ahead && (x.exact || x.thorough) || c.Burst || x.model == nil || len(k.early) > 0 || !x.ready(k) {
		return
	}
	for _, o := range x.conns {
		if o != k && o.open {
			return
		}
	}
	n, nonce := 0, x.nonce
	k.led = len(x.record.Events)
	k.early = append(k.early, k.out...) // how it introduces itself
	sess := x.p.NewSession(codec.Options{Waive: x.known.Waive})
	for ; i < len(c.Steps) && n < maxAhead && len(k.early) < aheadBytes; i++ {
		s := &c.Steps[i]
		if s.Conn != k.id || s.Verb != transcript.Send || has(x.d.waits, s.Type.Name) || n > 0 && has(x.known.Behind, s.Type.Name) || !x.settles(s, n == 0) {
			break
		}
		b := x.encode(s)
		if len(b) == 0 || len(b) > aheadBytes || x.barred(k, b) {
			break
		}
		if got, err := sess.Decode(codec.Peer, b, &x.frame); err != nil || got != len(b) || x.known.exceeded(&x.frame) || x.d.blocks != nil && x.d.blocks(&x.frame) {
			break
		}
		nonce++
		k.early = append(k.early, b...)
		k.early = x.appendSentinel(k.early, nonceOf(nonce))
		n++
	}
	if n < 2 {
		k.early = k.early[:0]
		return
	}
	if err := k.s.write(k.early); err != nil {
		x.giveUp(k)
	}
}

// settles reports whether the values of a step are known before those ahead of it are answered.
func (x *performer) settles(s *Step, first bool) bool {
	for i := range s.Args {
		if of := s.Args[i].Of; of > 0 && x.chosen[of] == nil && !first {
			return false
		}
	}
	return true
}

// arrived takes what is to be sent out of what was sent ahead. It reports whether it was.
func (x *performer) arrived(k *conn) bool {
	if len(k.early) == 0 {
		return false
	}
	if !bytes.HasPrefix(k.early, k.out) {
		x.giveUp(k) // it has led elsewhere
		return true
	}
	k.early = k.early[:copy(k.early, k.early[len(k.out):])]
	k.out = k.out[:0]
	return true
}

// noteAhead records what was sent ahead of steps that were not taken any more.
func (x *performer) noteAhead() {
	for _, k := range x.conns {
		if len(k.early) > 0 {
			x.record.add(Event{Conn: k.id, Verb: transcript.Raw, Raw: x.record.keep(k.early), Step: x.step, Ahead: true})
			k.early = k.early[:0]
		}
	}
}

// giveUp ends a conversation that did not go as was thought.
func (x *performer) giveUp(k *conn) {
	k.early, k.out = k.early[:0], k.out[:0]
	k.s.close(true)
	k.open, x.quit, x.common = false, true, true
}

func nonceOf(n uint64) []byte { return strconv.AppendUint([]byte("nonce"), n, 36) }

// appendSentinel appends the bytes of a sentinel.
func (x *performer) appendSentinel(to, nonce []byte) []byte {
	m := codec.Message{Type: x.p.TypeNamed(x.d.sentinel), Args: x.d.sentinelArgs(nonce)}
	b, err := x.loose.Append(to, codec.Peer, &m)
	if err != nil {
		panic(err) // a row of ours
	}
	return b
}
