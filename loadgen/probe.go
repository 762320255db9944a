package loadgen

import "jobwire/codec"

// question is a request that the server answers itself, in the order of asking.
type question struct {
	row    *codec.Type
	args   [][]byte // but for the payload
	echoes bool     // the payload is its last argument, and that of the answer
}

// probe is a client that asks questions instead of submitting jobs.
type probe struct {
	*conn
	question
	waiting queue
	said    codec.Message
}

func newProbe(c *conn, _ *Scenario, q question) *probe {
	return &probe{conn: c, question: question{q.row, append([][]byte(nil), q.args...), q.echoes}}
}

func (p *probe) begin() { p.fill() }

func (p *probe) submit(s *slot, payload []byte) {
	p.waiting.push(s)
	if p.echoes {
		p.send(p.row, append(p.args[:len(p.args):len(p.args)], payload)...)
		return
	}
	p.send(p.row, p.args...)
}

func (p *probe) handle(f *codec.Frame) {
	s := p.waiting.pop()
	if s == nil {
		p.note(&p.run.ledger.twice, f, "nothing was asked")
		return
	}
	if p.echoes {
		f.Message(&p.said)
		number, whole := uint64(0), false
		if n := len(p.said.Args); n > 0 {
			number, whole = numberOf(p.said.Args[n-1])
		}
		if !whole || number != s.number.Load() {
			p.note(&p.run.ledger.corrupted, f, "the answer is not what was sent")
		}
	}
	s.created = p.now
	p.finish(s)
}
