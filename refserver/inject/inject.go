// Package inject makes reference servers faulty. An [Edit] changes the messages that
// reach the machine of a server, and those that the machine sends; a [Row] describes a
// faulty server with its edit, and the conformance cases that it fails.
package inject

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"jobwire/codec"
	"jobwire/internal/mutant"
	"jobwire/internal/target"
	"jobwire/refserver"
)

// Protocol describes a protocol and its reference server. Only Protocol and New must be set.
type Protocol struct {
	*codec.Protocol
	New   func() refserver.Machine
	Waive []codec.RuleID // rules that the server does not enforce

	// Edited is the protocol of a server with an edit. nil: Protocol.
	Edited *codec.Protocol

	// Paired: the type of a reply depends on the request. Replies are then read after the
	// request of the peer, whatever the machine was given.
	Paired bool

	// Read sets m.Name and m.Args of a message of a peer, and reports whether edits may
	// change the message; Write does the reverse. nil: the name of the message type, and
	// the values of its fields. A message without a name is only passed on.
	Read  func(m *Message) bool
	Write func(name string, args []string) *codec.Frame

	Probe  string                  // a type that is not in the past of a peer
	Raw    []string                // a reply, with its arguments, that SendRaw replaces
	Event  func(reply []byte) bool // whether the server sends a message without a request; nil: never
	Record Record
}

// Record updates the peers and jobs of a server. Functions may be nil.
type Record struct {
	Received func(m *Message) // before edits change it
	Passing  func(m *Message) // before the machine handles it
	Passed   func(m *Message) // after that
	Sent     func(m *Message) // before edits change it
	Ended    func(p *Peer)    // the peer has closed its direction, or the connection
	Left     func(p *Peer)    // the connection is closed
}

// Row describes a faulty server.
type Row struct {
	Name, About string        // see [mutant.Mutant]
	Kills       string        // cases that it fails, without the name of the protocol
	Fault       string        // see [refserver.ParseFault]
	Edit        Edit          // may be nil
	Codec       codec.Options // limits, and rules that the server does not enforce
	New         func() refserver.Machine

	// Slow is the time that data waits before the server reads it. The server notices the
	// end of a connection at once, so that it precedes what other peers send after it.
	Slow time.Duration
}

// Mutants returns the servers that the rows describe.
func (p *Protocol) Mutants(rows []Row) []mutant.Mutant {
	var all []mutant.Mutant
	for _, r := range rows {
		m := mutant.Mutant{Name: r.Name, About: r.About, Kills: strings.Fields(r.Kills)}
		for i := range m.Kills {
			m.Kills[i] = p.Name + "." + m.Kills[i]
		}
		m.Start = func(ctx context.Context) (target.Target, error) { return p.start(ctx, &r) }
		all = append(all, m)
	}
	return all
}

// Check returns an error if the row has no fault, or one that cannot be injected.
func (p *Protocol) Check(r *Row) error {
	if r.Fault == "" && r.Edit == nil && r.New == nil && r.Codec.Waive == nil && r.Codec.MaxData == 0 && r.Codec.MaxLine == 0 {
		return fmt.Errorf("%s has no fault", r.Name)
	}
	for _, id := range r.Codec.Waive {
		if p.Rule(id) == nil {
			return fmt.Errorf("%s: unknown rule %s", r.Name, id)
		}
	}
	if r.Edit != nil {
		r.Edit(p.server(p.New()))
	}
	_, err := p.options(r)
	return err
}

// options returns the options of the server that the row describes.
func (p *Protocol) options(r *Row) (refserver.Options, error) {
	o := refserver.Options{Protocol: p.Protocol, Codec: r.Codec}
	o.Codec.Waive = append(o.Codec.Waive[:len(o.Codec.Waive):len(o.Codec.Waive)], p.Waive...)
	if r.Fault != "" {
		f, err := refserver.ParseFault(p.Protocol, r.Fault)
		if err != nil {
			return o, fmt.Errorf("%s: %w", r.Name, err)
		}
		o.Faults = []refserver.Fault{f}
	}
	return o, nil
}

// start starts the server that the row describes in this process.
func (p *Protocol) start(ctx context.Context, r *Row) (target.Target, error) {
	if _, err := p.options(r); err != nil {
		return nil, err
	}
	return target.Func(ctx, r.Name, func(ctx context.Context, ln net.Listener) error { return p.Serve(ctx, ln, r) })
}

// Serve serves the connections that ln accepts with the server that the row describes.
func (p *Protocol) Serve(ctx context.Context, ln net.Listener, r *Row) error {
	o, err := p.options(r)
	if err != nil {
		return err
	}
	machine := p.New()
	if r.New != nil {
		machine = r.New()
	}
	if r.Slow > 0 {
		ln = &listener{ln, func(c net.Conn) net.Conn { return slowed(c, r.Slow) }}
	}
	if r.Edit != nil {
		s := p.server(machine)
		s.Context = ctx
		r.Edit(s)
		if p.Edited != nil {
			o.Protocol = p.Edited
		}
		if s.Decode != nil {
			o.Protocol = decoding(o.Protocol, s.Decode)
		}
		if s.Wrap != nil {
			ln = &listener{ln, s.Wrap}
		}
		machine, o.Intercept = s, s.intercept
	}
	return refserver.New(machine, o).Serve(ctx, ln)
}
