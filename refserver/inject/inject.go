// Package inject injects faults into reference servers. An [Edit] changes the messages that the state machine
// of a server (called the machine in this package) receives and sends.
// A [MutantSpec] describes a faulty server: its fault, and the conformance cases that it fails.
package inject

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"

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

	// Paired is set if the type of a reply depends on the request. Each reply is then decoded as a reply to the last
	// message that the peer sent, even if the machine got another one.
	Paired bool

	// Read sets m.Name and m.Args of a message from a peer, and reports whether edits may change the message. Messages for
	// which it sets no name are passed to the machine unchanged. PeerFrame is the reverse function. If they are nil, the name
	// is that of the message type, and the arguments are the values of its fields.
	Read      func(m *Message) bool
	PeerFrame func(name string, args []string) *codec.Frame

	Functions map[string]any // additional functions of expressions in fault scripts

	Probe  string                  // a message type that is not recorded in [Peer].Past
	Raw    []string                // type and arguments of any reply; SendRaw sends it and replaces its bytes
	Event  func(reply []byte) bool // whether the server sends a message that is not a reply to a request; nil: never
	Record Record
}

// Record has the functions that update the peers and jobs of a server. Each may be nil.
type Record struct {
	Received func(m *Message) // called for a message of a peer, before faults change the message
	Passing  func(m *Message) // called before the machine handles the message
	Passed   func(m *Message) // called after the machine has handled the message
	Sent     func(m *Message) // called for a message of the server, before faults change the message
	Ended    func(p *Peer)    // the peer has closed its direction or the connection
	Left     func(p *Peer)    // the connection is closed
}

// MutantSpec describes a faulty server.
type MutantSpec struct {
	Name  string `yaml:"name"`  // see [mutant.Mutant]
	About string `yaml:"about"` // see [mutant.Mutant]
	// conformance cases that it fails, separated by spaces, without the protocol name
	KilledBy string                   `yaml:"killed-by"`
	Fault    string                   `yaml:"fault"`    // a fault script: see [Protocol.ParseFaults]
	Edit     Edit                     `yaml:"-"`        // may be nil
	Waive    []codec.RuleID           `yaml:"waive"`    // rules that the server does not enforce
	MaxLine  int                      `yaml:"max-line"` // see [codec.Options]; 0: the default
	MaxData  int                      `yaml:"max-data"` // see [codec.Options]; 0: the default
	New      func() refserver.Machine `yaml:"-"`        // returns the machine; nil: Protocol.New
}

// Mutants returns the faulty servers that the rows describe.
func (p *Protocol) Mutants(specs []MutantSpec) []mutant.Mutant {
	var all []mutant.Mutant
	for _, r := range specs {
		m := mutant.Mutant{Name: r.Name, About: r.About, KilledBy: strings.Fields(r.KilledBy)}
		for i := range m.KilledBy {
			m.KilledBy[i] = p.Name + "." + m.KilledBy[i]
		}
		edit := sync.OnceValues(func() (Edit, error) { return p.edit(&r) })
		m.Start = func(ctx context.Context) (target.Target, error) { return p.start(ctx, &r, edit) }
		all = append(all, m)
	}
	return all
}

// Check returns an error if the row has no fault, or an invalid fault script or rule. It panics if its edit has an
// unknown message type.
func (p *Protocol) Check(r *MutantSpec) error {
	if r.Fault == "" && r.Edit == nil && r.New == nil && r.Waive == nil && r.MaxData == 0 && r.MaxLine == 0 {
		return fmt.Errorf("%s has no fault", r.Name)
	}
	for _, id := range r.Waive {
		if p.Rule(id) == nil {
			return fmt.Errorf("%s: unknown rule %s", r.Name, id)
		}
	}
	edit, err := p.edit(r)
	if err == nil && edit != nil {
		edit(p.server(p.New()))
	}
	return err
}

// edit combines the fault script and the edit of a row. It returns nil if the row has neither.
func (p *Protocol) edit(r *MutantSpec) (Edit, error) {
	if r.Fault == "" {
		return r.Edit, nil
	}
	script, err := p.ParseFaults(r.Fault)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.Name, err)
	}
	if r.Edit == nil {
		return script, nil
	}
	return Both(script, r.Edit), nil
}

// start starts the server in memory.
func (p *Protocol) start(ctx context.Context, r *MutantSpec, edit func() (Edit, error)) (target.Target, error) {
	e, err := edit()
	if err != nil {
		return nil, err
	}
	return target.InMemory(ctx, r.Name, func(ctx context.Context, ln net.Listener) error { return p.serve(ctx, ln, r, e) })
}

// Serve runs the server that the row describes on the connections that ln accepts. It returns like
// [refserver.Server.Serve], or with an error if the fault script is invalid.
func (p *Protocol) Serve(ctx context.Context, ln net.Listener, r *MutantSpec) error {
	edit, err := p.edit(r)
	if err != nil {
		return err
	}
	return p.serve(ctx, ln, r, edit)
}

// serve runs the server of a row with an edit, which may be nil, on the connections that ln accepts.
func (p *Protocol) serve(ctx context.Context, ln net.Listener, r *MutantSpec, edit Edit) error {
	machine := p.New()
	if r.New != nil {
		machine = r.New()
	}
	limits := codec.Options{MaxLine: r.MaxLine, MaxData: r.MaxData, Waive: slices.Concat(r.Waive, p.Waive)}
	o := refserver.Options{Protocol: p.Protocol, Codec: limits}
	if edit != nil {
		machine = p.wrap(machine, &o, edit)
	}
	return refserver.New(machine, o).Serve(ctx, ln)
}

// Wrap adds the faults of a script to a state machine. In o it sets the options that the faults need; o is for the
// [refserver.Server] that runs the result. It returns an error if the script is invalid; see [Protocol.ParseFaults].
func (p *Protocol) Wrap(machine refserver.Machine, o *refserver.Options, script string) (*Server, error) {
	edit, err := p.ParseFaults(script)
	if err != nil {
		return nil, err
	}
	return p.wrap(machine, o, edit), nil
}

// wrap adds an edit to a machine. In o it sets the functions through which the faults see and change the messages of
// the server, and if a fault needs it, another decoder.
func (p *Protocol) wrap(machine refserver.Machine, o *refserver.Options, edit Edit) *Server {
	s := p.server(machine)
	edit(s)
	if s.Decode != nil || s.rests {
		o.Protocol = decoding(o.Protocol, s.decoder())
	}
	o.Intercept, o.Wrap = s.intercept, s.Wrap
	return s
}
