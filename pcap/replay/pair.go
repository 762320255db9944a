package replay

import (
	"slices"
	"strconv"
	"time"

	"jobwire/codec"
	"jobwire/codec/transcript"
)

// maxTransit is the maximum time in nanoseconds that a message is assumed to take to reach a server.
const maxTransit = int64(300 * time.Microsecond)

// pairing determines the reply to each request. Servers reply in order. A reply for which a peer waited is paired
// only if it is unknown which request the server received first; otherwise the peer also waits for it during a
// replay.
type pairing struct {
	steps       []step
	waiting     map[*session][]int // requests without a reply
	sent        map[*session]int   // the last message of each peer
	last, other asking             // the last request, and the last request of another connection
	unanswered  int                // number of requests without a reply that do not block
	awaited     []int              // replies for which a peer waited
	raced       bool               // a request for which a peer waited was contested
}

// asking is a request.
type asking struct {
	session *session
	at      int
}

// pair sets the fields of the steps that determine where a replay waits: the reply of each request, and the step before
// which the server has received a request. (See pairing.)
func pair(steps []step) {
	p := pairing{steps: steps, waiting: map[*session][]int{}, sent: map[*session]int{}}
	for i := range steps {
		st := &steps[i]
		if len(st.args) > 0 {
			st.scope = st.args[0]
		}
		if st.from == codec.Peer {
			p.sent[st.session] = i
		}
		switch {
		case st.typ == nil:
		case st.from == codec.Server:
			p.reply(i)
		case len(st.typ.Answers) > 0:
			p.request(i)
		}
	}
	for _, i := range p.awaited {
		if st := &steps[i]; !p.raced || st.request == 0 {
			st.request = 0
		} else {
			steps[st.request-1].reply = i
		}
	}
	if p.raced {
		delay(steps)
	}
}

// request adds the request in step i.
func (p *pairing) request(i int) {
	st := &p.steps[i]
	st.contested = p.unanswered > len(p.waiting[st.session])
	if last := p.last; last.session != st.session {
		if last.session != nil && st.at-p.steps[last.at].at < maxTransit {
			p.steps[last.at].contested = true
		}
		p.other = last
	}
	p.last = asking{st.session, i}
	p.waiting[st.session] = append(p.waiting[st.session], i)
	if !st.blocks {
		p.unanswered++
	}
}

// reply pairs the message of the server in step i with the oldest request of its connection, if it can be the reply.
func (p *pairing) reply(i int) {
	st := &p.steps[i]
	queue := p.waiting[st.session]
	if len(queue) == 0 || !st.answers(&p.steps[queue[0]]) {
		return
	}
	at := queue[0]
	request := &p.steps[at]
	p.waiting[st.session] = queue[1:]
	st.request = at + 1
	st.varies = request.does.Varies
	if len(st.args) == 1 { // only an ID, which is unique within the scope of the request
		st.scope = request.scope
	}
	if request.blocks { // pair decides at the end of the capture whether a replay waits for these replies
		p.awaited = append(p.awaited, i)
		p.raced = p.raced || request.contested
		if p.sent[st.session] > at { // the peer sent another message, so it did not wait
			st.request = 0
		}
		return
	}
	p.unanswered--
	request.reply = i
	other := p.last // the last request of another connection
	if other.session == st.session {
		other = p.other
	}
	// If other peers were active, the content may depend on which request the server read first.
	if len(p.sent) > 2 || request.contested || other.session != nil && other.at > at {
		st.varies = st.varies || request.does.Races
	}
}

// answers reports whether a message of the server may be the reply to a request. If replies have no order, an
// assignment may be the reply to any request for a job. A refusal may then also refer to a message without a
// reply, so it is paired only with requests that servers often refuse. (A [codec.Conversation] also pairs replies that
// their requests do not declare, which is wrong after a gap.)
func (st *step) answers(ask *step) bool {
	if does := ask.does.Does; !st.typ.Ordered {
		switch st.typ.Does {
		case codec.Assign:
			return does == codec.Ask
		case codec.Refuse:
			return does == codec.Submit || does == codec.Configure
		}
	}
	return slices.Contains(ask.typ.Answers, st.typ)
}

// delay sets the step before which the server has received each blocking request without a reply: the next message that
// its peer sends, because the reply comes later.
func delay(steps []step) {
	next := map[*session]int{}
	for i := len(steps) - 1; i >= 0; i-- {
		if st := &steps[i]; st.from == codec.Peer {
			if st.blocks && st.reply == 0 {
				st.late = len(steps)
				if n, ok := next[st.session]; ok {
					st.late = n
				}
			}
			next[st.session] = i
		}
	}
}

// jobOf returns the job that a message names, or "".
func jobOf(st *step) string {
	v := st.get(codec.JobID)
	if v != nil && st.session.proto.ScopedIDs {
		return string(st.scope) + " " + string(v)
	}
	return string(v)
}

// get returns the first argument with the meaning, or nil.
func (st *step) get(m codec.Meaning) []byte {
	if st.typ == nil || !st.typ.Has(m) || st.typ.At(m) >= len(st.args) {
		return nil
	}
	return st.args[st.typ.At(m)]
}

// contentOf returns a key that identifies jobs without an ID.
func contentOf(st *step) string {
	if !st.typ.Has(codec.Queue) || !st.typ.Has(codec.Payload) {
		return ""
	}
	return string(st.get(codec.Queue)) + "\x00" + string(st.get(codec.Payload))
}

// numberOf returns the number at the end of a job's handle.
func numberOf(job string) uint64 {
	k := len(job)
	for k > 0 && job[k-1] >= '0' && job[k-1] <= '9' {
		k--
	}
	n, _ := strconv.ParseUint(job[k:], 10, 64)
	return n
}

// ending converts the ends of connections to steps, and omits steps after them. If a peer receives messages
// after its end, it has only half-closed the connection. If no message explains why the server closed a
// connection, and the capture contains no later message, the server has probably exited.
func ending(steps []step) []step {
	// last message of each side, and whether it has ended
	sent, end := [2]map[*session]int{{}, {}}, [2]map[*session]bool{{}, {}}
	last := 0
	for i := range steps {
		if st := &steps[i]; st.verb <= transcript.Raw {
			sent[st.from][st.session], last = i, i
		} else {
			end[st.from][st.session] = true
		}
	}
	over := map[*session]bool{}
	kept := steps[:0]
	for i := range steps {
		st := steps[i]
		if st.cut && !end[st.from][st.session] { // the capture ends within the message
			st.problem = partMessage
		}
		if st.verb > transcript.Raw {
			if over[st.session] {
				continue
			}
			switch {
			case st.from == codec.Server:
				if over[st.session] = true; st.verb != transcript.Resets {
					st.verb = transcript.Closes
				}
				if k, ok := sent[codec.Peer][st.session]; last < i && ok && !explains(&steps[k]) {
					st.problem = "the server closes the connection; no message in the capture explains why"
				}
			case st.verb == transcript.Resets:
				over[st.session] = true
			case sent[codec.Server][st.session] < i:
				over[st.session], st.verb = true, transcript.Closes
			}
		}
		kept = append(kept, st)
	}
	return kept
}

// explains reports whether the last step of a peer is a reason for the server to close the connection.
func explains(st *step) bool {
	return st.verb != transcript.Send || st.does.Does == codec.Leave || st.does.Does == codec.Shutdown
}
