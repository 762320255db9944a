// Package faults contains servers with one injected fault each, which the fuzzer must find. They test the fuzzer as the
// faulty servers of the mutants packages test the conformance suite.
//
// A fault is an edit of the reference server. Only protocol messages trigger the faults: their types, their order, and lengths
// near a limit. A fuzzer that knows the message types can therefore find them.
package faults

import (
	"context"
	"net"
	"slices"

	"jobwire/refserver/inject"
)

// The oracles of faults, each with the behavior that the oracle detects.
const (
	Exit         = "exit"        // the process exits
	Signal       = "signal"      // a signal ends the process
	Sanitizer    = "sanitizer"   // the process prints a sanitizer report, and ends or continues
	Hang         = "hang"        // the server no longer replies on one connection
	ServerHang   = "server-hang" // the server no longer replies on any connection, including new ones
	Spin         = "spin"        // the server keeps a CPU core busy without requests
	Memory       = "memory"      // the server leaks memory
	Descriptors  = "descriptors" // the server leaks file descriptors
	Framing      = "framing"     // a reply cannot be decoded
	Rule         = "rule"        // a reply breaks a rule
	Disclosure   = "disclosure"  // a reply contains data of another connection
	Lost         = "lost"        // a job that was acknowledged is never delivered
	Wrong        = "wrong"       // a job is delivered twice, or with other data than the client submitted
	Stray        = "stray"       // a worker is assigned a job that it must not get
	Interference = "disturbance" // the messages on one connection disturb another connection
)

// Fault is a reference server with one injected fault.
type Fault struct {
	Name     string      // unique name, which describes the fault
	Protocol string      // name of the protocol; set by Register
	Oracle   string      // one of the oracles above
	About    string      // description in one sentence
	Edit     inject.Edit // nil: no fault
}

// NeedsProcess reports whether the fault ends the process of the server, blocks a processor, prints to standard error or
// uses up memory or descriptors, so that the server needs a process of its own.
func (f *Fault) NeedsProcess() bool {
	switch f.Oracle {
	case Exit, Signal, Sanitizer, Spin, Memory, Descriptors:
		return true
	}
	return false
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

// Named returns the fault with the name, or nil.
func Named(name string) *Fault {
	if i := slices.IndexFunc(registered, func(f Fault) bool { return f.Name == name }); i >= 0 {
		return &registered[i]
	}
	return nil
}

// Faultless returns the server without a fault.
func Faultless(protocol string) Fault { return Fault{Name: "none", Protocol: protocol} }

// Serve runs the faulty server until ctx ends or the fault ends the process.
func (f Fault) Serve(ctx context.Context, ln net.Listener) error {
	return servers[f.Protocol].Serve(ctx, ln, &inject.MutantSpec{Name: f.Name, Edit: f.Edit})
}
