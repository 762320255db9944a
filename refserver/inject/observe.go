package inject

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"

	"jobwire/codec"
	"jobwire/internal/mutant"
	"jobwire/internal/target"
	"jobwire/refserver"
)

// Observe returns a function that starts the faultless server in memory and evaluates the conditions of all fault
// scripts at each message, without effect. A server behaves like the faultless one until the condition of one of its
// faults is true for the first time, so a conversation in which it never is cannot show the fault. The faults of rows
// without a script, about segments, or with an edit in Go, count as effective from the start.
func (p *Protocol) Observe(specs func() []MutantSpec) mutant.Observe {
	parsed := sync.OnceValues(func() (*observer, error) { return p.observer(specs()) })
	return func(ctx context.Context) (target.Target, func() map[string]bool, error) {
		all, err := parsed()
		if err != nil {
			return nil, nil, err
		}
		o := all.copy()
		t, err := target.InMemory(ctx, "the reference server", func(ctx context.Context, ln net.Listener) error {
			options := refserver.Options{Protocol: p.Protocol, Codec: codec.Options{Waive: p.Waive}}
			machine := p.wrap(p.New(), &options, o.edit)
			return refserver.New(machine, options).Serve(ctx, ln)
		})
		return t, func() map[string]bool { return o.effective }, err
	}
}

// observer evaluates fault scripts.
type observer struct {
	scripts   []*script
	misreads  []*script            // those that replace bytes before they are decoded
	about     map[string][]*script // scripts with faults about a side and types, as in [observer.concerned]
	effective map[string]bool      // names of the rows whose faults would have had an effect
}

// observer returns an observer of the faults of the rows.
func (p *Protocol) observer(specs []MutantSpec) (*observer, error) {
	o := &observer{effective: map[string]bool{}}
	for _, r := range specs {
		faults, err := p.parseFaults(r.Fault)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.Name, err)
		}
		segments := func(f *fault) bool { return f.bytes != nil && f.bytes.segment }
		if r.Edit != nil || r.New != nil || r.Waive != nil || r.MaxData > 0 || r.MaxLine > 0 ||
			slices.ContainsFunc(faults, segments) {
			o.effective[r.Name] = true
			continue
		}
		o.scripts = append(o.scripts, &script{name: r.Name, faults: faults})
	}
	return o, nil
}

// copy returns an observer for one start of a server.
func (o *observer) copy() *observer {
	c := &observer{about: map[string][]*script{}, effective: maps.Clone(o.effective)}
	for _, sc := range o.scripts {
		mine := &script{name: sc.name, noted: map[string]any{}, ofPeers: map[*Peer]map[string]any{}}
		for _, f := range sc.faults {
			mine.faults = append(mine.faults, f.copy())
		}
		if slices.ContainsFunc(sc.faults, func(f *fault) bool { return f.bytes != nil }) {
			c.misreads = append(c.misreads, mine)
		}
		c.scripts = append(c.scripts, mine)
	}
	return c
}

// script is a fault script with what its notes have stored.
type script struct {
	name    string
	faults  []*fault
	noted   map[string]any
	ofPeers map[*Peer]map[string]any
}

// edit makes a server evaluate the scripts.
func (o *observer) edit(s *Server) {
	s.rests = true
	s.Decode = func(session codec.Session, b []byte, f *codec.Frame) (int, error) {
		for _, sc := range o.misreads {
			for _, f := range sc.faults {
				if f.bytes != nil && !o.effective[sc.name] && f.bytes.pattern.Match(b) {
					o.effective[sc.name] = true
				}
			}
		}
		return session.Decode(codec.Peer, b, f)
	}
	s.observe(o.see)
}

// see evaluates the faults about a message or an event.
func (o *observer) see(side codec.Side, m *Message) {
	var env map[string]any
	for _, sc := range o.concerned(side, m) {
		if o.effective[sc.name] {
			continue
		}
		if env == nil {
			env = m.environment()
		}
		if sc.effective(side, m, env) {
			o.effective[sc.name] = true
		}
	}
}

// concerned returns the scripts with faults about the types of the message.
func (o *observer) concerned(side codec.Side, m *Message) []*script {
	key := side.String() + " " + strings.Join(m.types(), " ")
	all, ok := o.about[key]
	if !ok {
		for _, sc := range o.scripts {
			for _, f := range sc.faults {
				if !f.then && f.side == side && f.concerns(m) {
					all = append(all, sc)
					break
				}
			}
		}
		o.about[key] = all
	}
	return all
}

// effective reports whether one of the faults would change what the server does, and stores the values of notes, which
// change nothing by themselves.
func (sc *script) effective(side codec.Side, m *Message, env map[string]any) bool {
	before := m.Server.Noted
	defer func() { m.Server.Noted = before }()
	m.Server.Noted, env["notes"] = sc.noted, sc.noted
	for _, p := range append(slices.Clip(m.Server.Peers), m.Peer) {
		if sc.ofPeers[p] == nil {
			sc.ofPeers[p] = map[string]any{}
		}
		p.Noted = sc.ofPeers[p]
	}
	happened := false
	for _, f := range sc.faults {
		if f.then && !happened || !f.then && (f.side != side || !f.concerns(m)) {
			happened = happened && f.then
			continue
		}
		applies := f.asks || f.applies(m, env)
		switch {
		case applies && (f.asks || f.name == nil):
			return true
		case applies:
			f.apply(m, env)
		}
		if !f.then {
			happened = applies
		}
	}
	return false
}
