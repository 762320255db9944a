package exec

import (
	"bytes"
	"slices"
	"strconv"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/fuzz/input"
)

// Limits of the bytes that pipeline sends in one write. The executor reads no replies during the write, so more bytes
// could block the server.
const (
	maxPipelined      = 8 // messages
	maxPipelinedBytes = 8 << 10
)

// pipeline sends the messages of step i and the following steps in one write, if their bytes do not depend on replies.
// The executor then executes these steps one by one, each after the replies to the previous steps, so that the session
// and the model process the messages in the usual order. A barrier follows each message. In a Joined input, only one
// barrier follows, after the last message. Pipelining saves most of the execution time of an input.
func (x *execution) pipeline(k *conn, i int) {
	if !x.mayPipeline(k) {
		return
	}
	n, nonce := 0, x.nonce
	k.bare = 0
	k.earlyIndex = len(x.record.Events)
	k.early = append(k.early, k.pending...) // the preamble
	sess := x.p.NewSession(codec.Options{Waive: x.known.Waive})
	for ; i < len(x.c.Steps) && n < maxPipelined && len(k.early) < maxPipelinedBytes; i++ {
		s := &x.c.Steps[i]
		b := x.early(k, s, n == 0, sess)
		if b == nil {
			break
		}
		n++
		if k.early = append(k.early, b...); x.c.Mode != input.Joined {
			nonce++
			k.early = x.appendBarrier(k.early, nonceOf(nonce))
		} else if !k.joins(s) {
			break
		}
	}
	if n < 2 {
		k.early = k.early[:0]
		return
	}
	if x.c.Mode == input.Joined {
		k.bare = n - 1
		k.early = x.appendBarrier(k.early, nonceOf(nonce+1))
	}
	if err := k.s.write(k.early); err != nil {
		x.abortPipeline(k)
	}
}

// mayPipeline reports whether messages on the connection may be sent before the replies to earlier messages have arrived.
func (x *execution) mayPipeline(k *conn) bool {
	if x.c.Mode == input.Burst || x.c.Mode == input.OneByOne && (x.exact || x.Thorough) || x.model == nil || len(k.early) > 0 ||
		!x.ready(k) {
		return false
	}
	return !slices.ContainsFunc(x.conns, func(o *conn) bool {
		return o != k && o.open && !(x.c.Mode == input.Joined && x.ready(o))
	})
}

// early returns the bytes of a step if the connection may send them early, because they do not depend on replies, and
// the server replies at once. Otherwise it returns nil. first is set for the first step of the pipeline.
func (x *execution) early(k *conn, s *input.Step, first bool, sess codec.Session) []byte {
	if s.Conn != k.id || s.Verb != transcript.Send || input.MayWait(s.Type) ||
		!first && (slices.Contains(x.known.After, s.Type.Name) || !x.valuesKnown(s)) {
		return nil
	}
	b := x.encode(s)
	if len(b) == 0 || len(b) > maxPipelinedBytes || x.mustNotSend(k, s, b) {
		return nil
	}
	if n, err := sess.Decode(codec.Peer, b, &x.frame); err != nil || n != len(b) || x.known.Exceeded(&x.frame) ||
		x.traits.Blocks(&x.frame) {
		return nil
	}
	return b
}

// joins reports whether the next message may follow the message of a step without a barrier. This is the case if the
// message has a reply, which shows that its effects have arrived, or if its effects are immediate. A sleeping worker
// may receive messages at any time, so it needs a barrier.
func (c *conn) joins(s *input.Step) bool {
	return !c.slept && (len(s.Type.Answers) > 0 || s.Type.Does == codec.Register)
}

// valuesKnown reports whether the server has chosen all values that the arguments of a step refer to.
func (x *execution) valuesKnown(s *input.Step) bool {
	return !slices.ContainsFunc(s.Args, func(a input.Arg) bool { return a.Of > 0 && x.chosen[a.Of] == nil })
}

// arrived removes the pending bytes of a step if pipeline has already sent them, so that flush does not send them
// again. It returns false if pipeline has sent nothing.
func (x *execution) arrived(k *conn) bool {
	if len(k.early) == 0 {
		return false
	}
	if !bytes.HasPrefix(k.early, k.pending) {
		x.abortPipeline(k) // a reply has changed the bytes of a later step
		return true
	}
	k.early = k.early[:copy(k.early, k.early[len(k.pending):])]
	k.pending = k.pending[:0]
	return true
}

// recordPipelined records the bytes that pipeline has sent for steps that were not executed.
func (x *execution) recordPipelined() {
	for _, k := range x.conns {
		if len(k.early) > 0 {
			x.record.add(Event{Conn: k.id, Verb: transcript.Raw, Raw: x.record.keep(k.early), Step: x.step, Ahead: true})
			k.early = k.early[:0]
		}
	}
}

// abortPipeline closes the connection and ends the input, because a reply has changed bytes that pipeline has already
// sent, or because sending failed.
func (x *execution) abortPipeline(k *conn) {
	k.early, k.pending = k.early[:0], k.pending[:0]
	k.s.close(withReset)
	k.open, x.quit, x.common = false, true, true
}

// Nonces returns the nonces of all barriers that the executor has sent.
func (x *Executor) Nonces() [][]byte {
	all := make([][]byte, x.nonce)
	for i := range all {
		all[i] = nonceOf(uint64(i) + 1)
	}
	return all
}

func nonceOf(n uint64) []byte { return strconv.AppendUint([]byte("nonce"), n, 36) }

// appendBarrier appends the bytes of a barrier with the nonce to a buffer.
func (x *execution) appendBarrier(to, nonce []byte) []byte {
	m := x.barrier.Message(nonce)
	b, err := x.session.Append(to, codec.Peer, &m)
	if err != nil {
		panic(err) // the contract of the protocol defines a barrier that cannot be encoded
	}
	return b
}
