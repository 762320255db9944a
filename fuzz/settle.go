package fuzz

import (
	"errors"
	"strings"
	"time"

	"jobwire/fuzz/model"
)

// ready reports whether the connection must answer a sentinel.
func (x *performer) ready(k *conn) bool {
	return k.open && !k.ended && !k.deaf && !k.lostUs && k.skip == 0 && len(k.ours) == 0 && k.busy == 0 &&
		!(x.model != nil && x.model.Blocked(k.id))
}

// sentinel sends the request that proves that those before it were handled.
func (x *performer) sentinel(k *conn) {
	x.nonce++
	nonce := nonceOf(x.nonce)
	b := x.appendSentinel(x.out2[:0], nonce)
	x.out2 = b
	k.waiting++
	k.nonces = append(k.nonces, nonce)
	n := len(x.record.Events)
	x.saying = true
	x.put(k, b)
	x.saying = false
	for i := n; i < len(x.record.Events); i++ {
		x.record.Events[i].Sentinel = true
	}
}

// settle waits until everything has come that the step under way, taken on connection k if
// that is not nil, leads to.
func (x *performer) settle(k *conn) {
	if k != nil && k.open {
		x.settleOne(k)
	}
	if x.record.Fault != nil {
		return
	}
	if !x.exact && x.model != nil && !x.thorough {
		// A message on one connection is mostly seen on the others when its sender has its
		// sentinel back. Where something is missing, or at the end, they are asked too.
		quiet, alone := true, true
		for _, o := range x.conns {
			if o != k && o.open {
				x.drain(o)
				quiet = quiet && x.ready(o)
				alone = false
			}
		}
		vague := x.common || x.model.Tainted() // what is due is not judged
		if vague || quiet && (k == nil || !k.open || x.ready(k)) && x.record.Fault == nil && x.model.Settled() == nil {
			x.edge(3, x.model.State(), 0)
			x.quiet = true
			x.proved = alone && k != nil && k.open && x.ready(k)
			return
		}
	}
	x.settleAll(k, k == nil || !k.open || !x.ready(k))
}

// settleAll has all connections but k prove it. Where one cannot, or what was done cannot be proved
// by anybody, it is unproved, and the server is given time.
func (x *performer) settleAll(k *conn, unproved bool) {
	for _, o := range x.conns {
		if o != k && x.ready(o) {
			x.sentinel(o)
			x.flush(o)
		}
	}
	for _, o := range x.conns {
		if o != k && o.open {
			if o.waiting > 0 {
				x.await(o)
			} else {
				unproved = true
			}
		}
		if x.record.Fault != nil {
			return
		}
	}
	if unproved && (x.thorough || x.model == nil || !x.model.Tainted()) {
		x.handshake()
		for _, o := range x.conns {
			if o.open && !x.ready(o) {
				x.drain(o)
			}
		}
	}
	x.judge(unproved)
}

// judge asks the model whether something is due. Where nobody has proved that all has come,
// it is given time.
func (x *performer) judge(unproved bool) {
	if x.model == nil || x.record.Fault != nil {
		return
	}
	if x.model.Tainted() || x.common {
		return // it cannot tell what is due
	}
	x.tick()
	err := x.model.Settled()
	if x.ofAll(err) {
		x.common = true // and is missing for long
		return
	}
	for end := time.Now().Add(x.patience); err != nil && unproved && time.Now().Before(end) && x.record.Fault == nil; err = x.model.Settled() {
		time.Sleep(200 * time.Microsecond)
		for _, o := range x.conns {
			if o.open {
				x.drain(o)
			}
		}
	}
	x.complain(err)
	x.edge(3, x.model.State(), 0)
}

// settleOne waits for a sentinel on one connection, if it can answer one.
func (x *performer) settleOne(k *conn) {
	if !k.open {
		return
	}
	if x.ready(k) {
		x.sentinel(k)
		x.await(k)
		return
	}
	if k.early = k.early[:0]; len(k.in) > 0 { // the server is to leave: what was sent ahead it does not read
		x.digest(k)
	}
	x.drain(k)
}

// finishBurst proves that all was handled.
func (x *performer) finishBurst() {
	for _, k := range x.conns {
		if x.ready(k) {
			x.sentinel(k)
		}
		x.flush(k)
	}
	for _, k := range x.conns {
		if k.open && k.waiting > 0 && x.record.Fault == nil {
			x.await(k)
		}
	}
}

// await reads until the connection's sentinels are answered. A server that says other
// things without end does not answer them.
func (x *performer) await(k *conn) {
	until := time.Now().Add(4 * x.patience)
	x.flush(k)
	if len(k.in) > 0 && k.open {
		x.digest(k) // it came with what was sent ahead
	}
	for k.open && k.waiting > 0 && !k.deaf && x.record.Fault == nil {
		if !x.receive(k, true) {
			return
		}
		if time.Now().After(until) {
			x.silent(k)
			return
		}
	}
}

// drain reads what has come already.
func (x *performer) drain(k *conn) {
	for x.flush(k); k.open && x.record.Fault == nil && x.receive(k, false); {
	}
}

func (x *performer) complain(err error) {
	if err == nil || x.common {
		return
	}
	var c *model.Complaint
	if !errors.As(err, &c) || x.ofAll(err) {
		return
	}
	x.fault(Fault{Oracle: Law, Rule: c.Rule, Law: c.Law, Text: c.Text, Conn: c.Conn})
}

// ofAll reports whether a complaint is about what all who use a server have a part in.
func (x *performer) ofAll(err error) bool {
	var c *model.Complaint
	return x.prefix != "" && x.d.ofAll != "" && errors.As(err, &c) && strings.HasPrefix(string(c.Rule), x.d.ofAll)
}

// leave ends all connections, and judges whether the server is still there.
func (x *performer) leave() {
	x.noteAhead()
	for _, k := range x.conns {
		if x.flush(k); k.open {
			x.end(k, x.nonce%64 != 0)
			if x.model != nil {
				x.model.Closed(k.id)
			}
		}
	}
	x.record.Vague = x.model == nil || x.model.Tainted()
	if x.model != nil && !x.model.Tainted() && !x.common {
		fresh := x.newModel()
		x.record.Clean = fresh != nil && fresh.State() == x.model.State()
	}
	if f := x.record.Fault; f != nil && f.Oracle != HangConn && f.Oracle != HangAll && !x.lost && !x.thorough {
		return
	}
	if x.lost || x.thorough || x.record.Fault != nil || x.nonce%8 == 0 {
		x.visit()
	}
}
