// Package faults contains servers with one injected fault each, which the fuzzer must find. They test the fuzzer as the
// faulty servers of the mutants packages test the conformance suite.
//
// A fault is a fault script for the reference server: a row of PROTOCOL.yaml. Only protocol messages trigger the
// faults: their types, their order, and lengths near a limit. A fuzzer that knows the message types can therefore find
// them.
package faults

import (
	"context"
	"embed"
	"net"
	"slices"
	"sync"

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
	Name     string `yaml:"name"` // unique name, which describes the fault
	Protocol string `yaml:"-"`
	Oracle   string `yaml:"oracle"` // one of the oracles above
	About    string `yaml:"about"`  // description in one sentence
	Script   string `yaml:"fault"`  // see [inject.Protocol.ParseFaults]; "": no fault
	Effect   string `yaml:"effect"` // what the action "crash" does to the process; see [effect]. "": it ends the server
	Output   string `yaml:"output"` // printed to standard error before the effect
}

// NeedsProcess reports whether the fault ends the process of the server, blocks a processor, prints to standard error
// or uses up memory or descriptors, so that the server needs a process of its own.
func (f *Fault) NeedsProcess() bool {
	switch f.Oracle {
	case Exit, Signal, Sanitizer, Spin, Memory, Descriptors:
		return true
	}
	return false
}

//go:embed *.yaml
var files embed.FS

var servers []*inject.Protocol

// Register adds the reference server of a protocol. Its faults are in the file PROTOCOL.yaml.
func Register(server *inject.Protocol) {
	if len(server.Barriers) > 0 {
		server.Probe = server.Barriers[0].Request[0]
	}
	servers = append(servers, server)
}

// All returns the faults, by protocol.
var All = sync.OnceValue(func() (all []Fault) {
	for _, server := range servers {
		for _, f := range inject.Rows[Fault](files, server.Name+".yaml") {
			f.Protocol = server.Name
			all = append(all, f)
		}
	}
	return all
})

// Named returns the fault with the name, or nil.
func Named(name string) *Fault {
	all := All()
	if i := slices.IndexFunc(all, func(f Fault) bool { return f.Name == name }); i >= 0 {
		return &all[i]
	}
	return nil
}

// Faultless returns the server without a fault.
func Faultless(protocol string) Fault { return Fault{Name: "none", Protocol: protocol} }

// Serve runs the faulty server until ctx ends or the fault ends the process. It returns an error if the script is
// invalid.
func (f Fault) Serve(ctx context.Context, ln net.Listener) error {
	i := slices.IndexFunc(servers, func(p *inject.Protocol) bool { return p.Name == f.Protocol })
	spec := &inject.MutantSpec{Name: f.Name, Fault: f.Script}
	if f.Effect != "" {
		spec.Edit = func(s *inject.Server) { s.Effect = f.effect(ctx) }
	}
	return servers[i].Serve(ctx, ln, spec)
}
