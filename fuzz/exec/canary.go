package exec

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/fuzz/input"
	"jobwire/internal/target"
)

// canaryID is the connection number of the canary in records.
const canaryID = 99

// handshake sends a ping, or two pings if the executor is thorough. After the replies, the server has most likely
// processed the earlier messages on other connections.
func (x *execution) handshake() {
	for n := 0; n < 2 && (n == 0 || x.Thorough) && x.ping(); n++ {
	}
}

// ping sends a barrier on the canary connection, which belongs to a client that takes no part in the input. It reports
// whether the server replied as it must. The record does not contain the ping.
func (x *execution) ping() bool { ok, _ := x.pinged(); return ok }

// pinged is like ping, and returns what the server sent in place of the reply, or "" if it sent nothing.
func (x *execution) pinged() (ok bool, instead string) {
	if x.isOver() {
		return false, ""
	}
	x.pings.reset()
	p := *x // the canary takes no part in the input
	p.model, p.record = nil, &x.pings
	k := x.canary
	if k == nil || !k.open {
		s, err := x.to.dial(x.Timeout)
		if err != nil {
			x.lost = true
			return false, ""
		}
		k = &conn{id: canaryID, s: s, open: true, within: x.Timeout, streams: x.streams()}
		x.canary = k
	}
	p.sendBarrier(k)
	p.await(k)
	x.lost, x.common, x.quit, x.delayed = p.lost, p.common, p.quit, p.delayed
	for i := range p.record.Events {
		e := &p.record.Events[i]
		if e.From == codec.Server && e.Verb != transcript.Closes && !e.Barrier && instead == "" {
			instead = fmt.Sprintf("%.60q", e.Raw)
		}
	}
	return k.open && k.waiting == 0 && p.record.Fault == nil, instead
}

// Ping sends a barrier on the canary connection between two inputs, and reports whether the server replied as it must.
func (x *Executor) Ping() bool { ok, _ := x.pinged(); return ok }

func (x *Executor) pinged() (ok bool, instead string) {
	return x.execution(&input.Input{}, &x.pings).pinged()
}

// checkServer checks, after an input, that the server still replies to other clients: on the canary connection, which
// the executor opened before the input, or on a new connection. A server that sends something else does not hang.
func (x *execution) checkServer() {
	had := x.canary != nil && x.canary.open
	if x.ping() {
		if f := x.record.Fault; f != nil && f.Oracle == HangAll && f.Law != unread {
			x.record.Fault = nil // the server replied after the timeout, so it does not hang
		}
		return
	}
	x.CloseCanary()
	ok, instead := x.pinged()
	if ok {
		if had && x.extraTime() == 0 {
			x.fault(Fault{Oracle: Disturbed, Law: "other connection disturbed",
				Text: "the server closed the idle connection of another client, or did not reply on it", Conn: canaryID})
		}
		return
	}
	x.CloseCanary()
	if x.isOver() || x.extraTime() == maxExtraTime {
		return
	}
	f := Fault{Oracle: HangAll, Law: "no connection answered", Step: x.step, Conn: -1,
		Text: fmt.Sprintf("the server did not reply to %s on a new connection within %v", x.barrier.request.Name, x.Timeout)}
	if instead != "" {
		if x.record.Fault != nil {
			return
		}
		f.Oracle, f.Law = Law, "wrong reply on a new connection"
		f.Text = fmt.Sprintf("expected the reply to %s on a new connection, got %s", x.barrier.request.Name, instead)
	}
	x.record.Fault = &f
}

// CloseCanary closes the canary connection.
func (x *Executor) CloseCanary() {
	if x.canary != nil && x.canary.open {
		x.canary.s.close(withReset)
	}
	x.canary = nil
}

// askMaxData asks the server for the largest size of a job's data that it accepts, if the contract has such a request.
func (x *Executor) askMaxData() {
	if x.p.Framing.Lines == nil || x.p.Framing.Lines.Body[codec.Peer].MaxOf == nil {
		return
	}
	ask := x.p.Framing.Lines.Body[codec.Peer].MaxOf
	in := &input.Input{Steps: []input.Step{{ID: 1, Verb: transcript.Send, Type: x.p.MustTypeNamed(ask[0])}}}
	for _, e := range x.Execute(in, "").Events {
		for i := 0; i+1 < len(e.Args); i += 2 {
			if n, ok := codec.ParseNumber(e.Args[i+1]); ok && string(e.Args[i]) == ask[1] {
				x.maxData = int(min(n, math.MaxInt32))
			}
		}
	}
}

// FindBarrier returns the first barrier of the protocol that a new server answers as it must, before any input. A
// server may lack a barrier or answer it wrongly, and still work: refused says what the server answers to each barrier
// before the result, and an error what it answers to all. If the server does not answer the first barrier, FindBarrier
// calls check, which may be nil and may return an error that says why.
func FindBarrier(ctx context.Context, t target.Target, p *codec.Protocol, known *input.Known, timeout time.Duration,
	check func(context.Context, target.Target) error) (found *Barrier, refused []string, err error) {
	for _, b := range p.Barriers {
		x, err := NewExecutor(t, 0, NewBarrier(p, b), known, timeout)
		if err != nil {
			return nil, nil, err
		}
		x.Over = func() bool { return ctx.Err() != nil }
		ok, instead := x.pinged()
		if ok {
			ok, instead = x.pinged() // with another nonce
		}
		x.CloseCanary()
		if errors.Is(ctx.Err(), context.Canceled) {
			return nil, nil, ctx.Err()
		}
		if ok {
			return x.barrier, refused, nil
		}
		if len(refused) == 0 && check != nil {
			if err := check(ctx, t); err != nil {
				return nil, nil, err
			}
		}
		refused = append(refused, x.barrier.Name()+" (got "+cmp.Or(instead, "no reply")+")")
	}
	return nil, nil, &target.Error{Target: t.String(), Reason: fmt.Sprintf(
		"cannot be fuzzed as a server of %s: it does not answer %s", p.Title, strings.Join(refused, ", "))}
}
