// Package faults has servers with one injected fault each that the live fuzzer must find. They
// prove the fuzzer as the mutants prove the conformance suite.
//
// A fault is an edit of the reference server. Some end the process, block it or fill
// its memory, so each is to be served by a process of its own. The messages of the protocol,
// their order, and lengths at a limit trigger a fault, so that a fuzzer that knows the declarations of
// message types can find it.
package faults

import (
	"context"
	"net"
	"slices"

	"jobwire/refserver/inject"
)

// Oracles, by which a fault shows.
const (
	Exit        = "exit"        // the process ends by itself
	Signal      = "signal"      // a signal ends it
	Sanitizer   = "sanitizer"   // it prints a sanitizer's report, and ends or goes on
	Hang        = "hang"        // the server does not reply to one connection any more
	ServerHang  = "server-hang" // the server does not reply to any connection, new ones included
	Spin        = "spin"        // a core is busy without requests
	Memory      = "memory"      // memory grows and stays
	Descriptors = "descriptors" // and so do descriptors
	Framing     = "framing"     // a reply cannot be read
	Rule        = "rule"        // a reply can, and breaks a rule
	Disclosure  = "disclosure"  // a reply contains data of another connection
	Lost        = "lost"        // a job that was acknowledged is never delivered
	Wrong       = "wrong"       // it is delivered twice, or otherwise than it was submitted
	Stray       = "stray"       // a worker is given a job that is not for it
	Disturbance = "disturbance" // one connection suffers from what another one does
)

// Fault is one faulty server.
type Fault struct {
	Name     string      // says the fault
	Protocol string      // as users type it; set by Register
	Oracle   string      // one of the above
	About    string      // a sentence
	Edit     inject.Edit // nil is no fault
}

// And returns a server that has another fault, too.
func (f Fault) And(g Fault) Fault {
	f.Edit = inject.Both(f.Edit, g.Edit)
	return f
}

var (
	servers    = map[string]*inject.Protocol{}
	registered []Fault
)

// Register adds the reference server of a protocol, and the faults that can be injected into it.
func Register(server *inject.Protocol, faults []Fault) {
	if barrier := server.Barrier.Request; len(barrier) > 0 {
		server.Probe = barrier[0]
	}
	servers[server.Name] = server
	for _, f := range faults {
		f.Protocol = server.Name
		registered = append(registered, f)
	}
}

// All returns the faults, by protocol.
func All() []Fault { return registered }

// Named returns the fault of that name, or nil.
func Named(name string) *Fault {
	if i := slices.IndexFunc(registered, func(f Fault) bool { return f.Name == name }); i >= 0 {
		return &registered[i]
	}
	return nil
}

// Faultless is the same server without a fault.
func Faultless(protocol string) Fault { return Fault{Name: "none", Protocol: protocol} }

// Serve runs the server until ctx ends, or the fault ends the process.
func (f Fault) Serve(ctx context.Context, ln net.Listener) error {
	return servers[f.Protocol].Serve(ctx, ln, &inject.Row{Name: f.Name, Edit: f.Edit})
}
