package fuzz

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
func (x *executor) pipeline(c *input.Input, k *conn, i int) {
	if c.Mode == input.Burst || c.Mode == input.OneByOne && (x.exact || x.thorough) || x.model == nil || len(k.early) > 0 ||
		!x.ready(k) {
		return
	}
	for _, o := range x.conns {
		if o != k && o.open && !(c.Mode == input.Joined && x.ready(o)) {
			return
		}
	}
	n, nonce := 0, x.nonce
	k.bare = 0
	k.earlyIndex = len(x.record.Events)
	k.early = append(k.early, k.pending...) // the preamble
	sess := x.p.NewSession(codec.Options{Waive: x.known.Waive})
	for ; i < len(c.Steps) && n < maxPipelined && len(k.early) < maxPipelinedBytes; i++ {
		s := &c.Steps[i]
		if s.Conn != k.id || s.Verb != transcript.Send || input.MayWait(s.Type) ||
			n > 0 && slices.Contains(x.known.After, s.Type.Name) || !x.valuesKnown(s, n == 0) {
			break
		}
		b := x.encode(s)
		if len(b) == 0 || len(b) > maxPipelinedBytes || x.mustNotSend(k, s, b) {
			break
		}
		if got, err := sess.Decode(codec.Peer, b, &x.frame); err != nil || got != len(b) || x.known.Exceeded(&x.frame) ||
			x.d.Blocks(&x.frame) {
			break
		}
		n++
		if k.early = append(k.early, b...); c.Mode != input.Joined {
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
	if c.Mode == input.Joined {
		k.bare = n - 1
		k.early = x.appendBarrier(k.early, nonceOf(nonce+1))
	}
	if err := k.s.write(k.early); err != nil {
		x.abortPipeline(k)
	}
}

// joins reports whether the next message may follow the message of a step without a barrier. This is the case if the
// message has a reply, which shows that its effects have arrived, or if its effects are immediate. A sleeping worker
// may receive messages at any time, so it needs a barrier.
func (k *conn) joins(s *input.Step) bool {
	return !k.slept && (len(s.Type.Answers) > 0 || s.Type.Does == codec.Register)
}

// valuesKnown reports whether the arguments of a step are known before the replies to the previous steps of the
// pipeline arrive. first is set for the first step of the pipeline.
func (x *executor) valuesKnown(s *input.Step, first bool) bool {
	for i := range s.Args {
		if of := s.Args[i].Of; of > 0 && x.chosen[of] == nil && !first {
			return false
		}
	}
	return true
}

// arrived removes the pending bytes of a step if pipeline has already sent them, so that flush does not send them
// again. It returns false if pipeline has sent nothing.
func (x *executor) arrived(k *conn) bool {
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
func (x *executor) recordPipelined() {
	for _, k := range x.conns {
		if len(k.early) > 0 {
			x.record.add(Event{Conn: k.id, Verb: transcript.Raw, Raw: x.record.keep(k.early), Step: x.step, Ahead: true})
			k.early = k.early[:0]
		}
	}
}

// abortPipeline closes the connection and ends the input, because a reply has changed bytes that pipeline has already
// sent, or because sending failed.
func (x *executor) abortPipeline(k *conn) {
	k.early, k.pending = k.early[:0], k.pending[:0]
	k.s.close(true)
	k.open, x.quit, x.common = false, true, true
}

func nonceOf(n uint64) []byte { return strconv.AppendUint([]byte("nonce"), n, 36) }

// appendBarrier appends the bytes of a barrier with the nonce to a buffer.
func (x *executor) appendBarrier(to, nonce []byte) []byte {
	m := x.barrier.message(nonce)
	b, err := x.nonStrict.Append(to, codec.Peer, &m)
	if err != nil {
		panic(err) // the contract of the protocol defines a barrier that cannot be encoded
	}
	return b
}
