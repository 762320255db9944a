// Package faults contains servers with one injected fault each, which the fuzzer must find. They test the fuzzer as the
// faulty servers of the mutants packages test the conformance suite.
//
// A fault is an edit of the reference server. Some faults end the process, block it or fill its memory, so each faulty
// server must run in a process of its own. The messages of the protocol, their order, and lengths at a limit trigger a
// fault, so that a fuzzer that knows the message types can find it.
package faults

import (
	"context"
	"net"
	"slices"

	"jobwire/refserver/inject"
)

// The oracles that find a fault.
const (
	Exit         = "exit"        // the process ends by itself
	Signal       = "signal"      // a signal ends it
	Sanitizer    = "sanitizer"   // it prints a sanitizer report, and ends or continues
	Hang         = "hang"        // the server does not reply to one connection any more
	ServerHang   = "server-hang" // the server does not reply to any connection, new ones included
	Spin         = "spin"        // a CPU core is busy without requests
	Memory       = "memory"      // memory leaks
	Descriptors  = "descriptors" // file descriptors leak
	Framing      = "framing"     // a reply cannot be decoded
	Rule         = "rule"        // a reply breaks a rule
	Disclosure   = "disclosure"  // a reply contains data of another connection
	Lost         = "lost"        // a job that was acknowledged is never delivered
	Wrong        = "wrong"       // a job is delivered twice, or with other data than the client submitted
	Stray        = "stray"       // a worker is assigned a job that it must not get
	Interference = "disturbance" // what one connection sends affects another connection
)

// Fault is one faulty server.
type Fault struct {
	Name     string      // describes the fault
	Protocol string      // as users type it; set by Register
	Oracle   string      // one of the above
	About    string      // one sentence
	Edit     inject.Edit // nil: no fault
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

// Faultless returns the server without a fault.
func Faultless(protocol string) Fault { return Fault{Name: "none", Protocol: protocol} }

// Serve runs the server until ctx ends, or the fault ends the process.
func (f Fault) Serve(ctx context.Context, ln net.Listener) error {
	return servers[f.Protocol].Serve(ctx, ln, &inject.MutantSpec{Name: f.Name, Edit: f.Edit})
}
