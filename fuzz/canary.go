package fuzz

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/internal/target"
)

// canaryID is the connection number of the canary in records.
const canaryID = 99

// handshake sends a ping, or two pings if the executor is thorough. After the replies, the server has most likely
// processed the earlier messages on other connections.
func (x *executor) handshake() {
	for n := 0; n < 2 && (n == 0 || x.thorough) && x.ping(); n++ {
	}
}

// ping sends a barrier on the canary connection, which belongs to a client that takes no part in the input. It reports
// whether the server replied as it must. The record does not contain the ping.
func (x *executor) ping() bool { ok, _ := x.pinged(); return ok }

// pinged is like ping, and returns what the server sent in place of the reply, or "" if it sent nothing.
func (x *executor) pinged() (ok bool, instead string) {
	if x.isOver() {
		return false, ""
	}
	k := x.canary
	m, r := x.model, len(x.record.Events)
	x.model = nil // the canary takes no part in the input
	defer func() {
		x.model = m
		x.record.Events = x.record.Events[:r]
	}()
	fault, features := x.record.Fault, len(x.record.features)
	defer func() { x.record.features = x.record.features[:features] }()
	if k == nil || !k.open {
		s, err := x.to.dial(x.timeout)
		if err != nil {
			x.lost = true
			return false, ""
		}
		k = &conn{id: canaryID, s: s, open: true, within: x.timeout, streams: x.streams()}
		x.canary = k
	}
	x.record.Fault = nil
	x.sendBarrier(k)
	x.await(k)
	bad := x.record.Fault
	x.record.Fault = fault
	for i := r; i < len(x.record.Events); i++ {
		e := &x.record.Events[i]
		if e.From == codec.Server && e.Verb != transcript.Closes && !e.Barrier && instead == "" {
			instead = fmt.Sprintf("%.60q", e.Raw)
		}
	}
	return k.open && k.waiting == 0 && bad == nil, instead
}

// checkServer checks, after an input, that the server still replies to other clients: on the canary connection, which
// the executor opened before the input, or on a new connection. A server that sends something else does not hang.
func (x *executor) checkServer() {
	had := x.canary != nil && x.canary.open
	if x.ping() {
		if f := x.record.Fault; f != nil && f.Oracle == HangAll {
			x.record.Fault = nil // the server replied after the timeout, so it does not hang
		}
		return
	}
	x.closeCanary()
	ok, instead := x.pinged()
	if ok {
		if had {
			x.fault(Fault{Oracle: Disturbed, Law: "other connection disturbed",
				Text: "the server closed the idle connection of another client, or did not reply on it", Conn: canaryID})
		}
		return
	}
	x.closeCanary()
	if x.isOver() {
		return
	}
	f := Fault{Oracle: HangAll, Law: "no connection answered", Step: x.step, Conn: -1,
		Text: fmt.Sprintf("the server did not reply to %s on a new connection within %v", x.barrier.request.Name, x.timeout)}
	if instead != "" {
		if x.record.Fault != nil {
			return
		}
		f.Oracle, f.Law = Law, "wrong reply on a new connection"
		f.Text = fmt.Sprintf("expected the reply to %s on a new connection, got %s", x.barrier.request.Name, instead)
	}
	x.record.Fault = &f
}

// closeCanary closes the canary connection.
func (x *executor) closeCanary() {
	if x.canary != nil && x.canary.open {
		x.canary.s.close(true)
	}
	x.canary = nil
}

// calibrate chooses the first barrier of the protocol that a new server answers as it must, before any input. A server
// may lack a barrier or answer it wrongly, and still work. An error says what the server answers to each.
func (f *Fuzzer) calibrate(ctx context.Context) error {
	t, err := f.cfg.Start(ctx)
	if err != nil {
		return err
	}
	if !f.cfg.Fixed {
		defer target.Kill(t)
	}
	if err := target.Alive(ctx, t); err != nil {
		return err
	}
	to, err := transportOf(t)
	if err != nil {
		return err
	}
	f.servers.Add(1)
	var all []string
	for _, b := range f.cfg.Protocol.Barriers {
		x := newExecutor(newBarrier(f.cfg.Protocol, b), to, &f.cfg.Known, f.cfg.Timeout)
		x.over = func() bool { return ctx.Err() != nil }
		ok, instead := x.pinged()
		if ok {
			ok, instead = x.pinged() // with another nonce
		}
		x.closeCanary()
		if errors.Is(ctx.Err(), context.Canceled) {
			return ctx.Err()
		}
		if ok {
			if f.cfg.barrier = x.barrier; len(all) > 0 {
				f.logf("the probe is %s, because the server does not answer %s", x.barrier.name(), strings.Join(all, " and "))
			}
			return nil
		}
		if len(all) == 0 && f.cfg.Check != nil {
			if err := f.cfg.Check(ctx, t); err != nil {
				return err
			}
		}
		all = append(all, x.barrier.name()+" (got "+cmp.Or(instead, "no reply")+")")
	}
	return &target.Error{Target: t.String(), Reason: fmt.Sprintf(
		"cannot be fuzzed as a server of %s: it does not answer %s", f.cfg.Protocol.Title, strings.Join(all, ", "))}
}
