// Package planted has servers with a fault each that the live fuzzer must find by itself. They
// prove the fuzzer as the mutants prove the conformance suite.
//
// A fault is the reference server with a [Hook]. Some end the process, block it or fill
// its memory, so each is to be served by a process of its own. What brings a fault about
// stands in the messages of the protocol, their order and lengths at a boundary: nothing
// that a fuzzer who knows the rows could not come by.
package planted

import (
	"context"
	"net"
	"slices"

	"jobwire/codec"
	"jobwire/codec/beanstalk"
	"jobwire/codec/danga"
	"jobwire/codec/gearman"
	"jobwire/codec/gearmonkey"
	"jobwire/refserver"
	beanstalkserver "jobwire/refserver/beanstalk"
	dangaserver "jobwire/refserver/danga"
	gearmanserver "jobwire/refserver/gearman"
	gearmonkeyserver "jobwire/refserver/gearmonkey"
)

// Oracles, by which a fault shows.
const (
	Exit        = "exit"        // the process ends by itself
	Signal      = "signal"      // a signal ends it
	Sanitizer   = "sanitizer"   // it prints a sanitizer's report, and ends or goes on
	Hang        = "hang"        // one connection is not answered any more
	ServerHang  = "server-hang" // none is, new ones neither
	Spin        = "spin"        // a core is busy though nobody asks for anything
	Memory      = "memory"      // memory grows and stays
	Descriptors = "descriptors" // and so do descriptors
	Framing     = "framing"     // a reply cannot be read
	Rule        = "rule"        // a reply can, and breaks a rule
	Disclosure  = "disclosure"  // a reply holds bytes that are none of this connection's business
	Lost        = "lost"        // a job that was acknowledged is never delivered
	Wrong       = "wrong"       // it is delivered twice, or otherwise than it was submitted
	Stray       = "stray"       // a worker is given a job that is not for it
	Disturbance = "disturbance" // one connection suffers from what another one does
)

// Fault is one faulty server.
type Fault struct {
	Name     string // says the fault
	Protocol string // as users type it
	Oracle   string // one of the above
	About    string // a sentence
	Hook     Hook   // nil is no fault
}

// And returns a server that has another fault, too.
func (f Fault) And(g Fault) Fault {
	one := f.Hook
	f.Hook = func(b *bench) {
		one(b)
		g.Hook(b)
	}
	return f
}

// All returns the faults, by protocol.
func All() []Fault { return slices.Concat(inGearman, inBeanstalk, inDanga, inGearMonkey) }

// Named returns the fault of that name, or nil.
func Named(name string) *Fault {
	all := All()
	if i := slices.IndexFunc(all, func(f Fault) bool { return f.Name == name }); i >= 0 {
		return &all[i]
	}
	return nil
}

// Faultless is the same server without a fault.
func Faultless(protocol string) Fault { return Fault{Name: "none", Protocol: protocol} }

// Serve runs the server until ctx ends, or the fault ends the process. The protocol must be
// one of the four.
func (f Fault) Serve(ctx context.Context, ln net.Listener) error {
	s := servers[f.Protocol]
	b := newBench(ctx, s.protocol, s.machine(), s.asks)
	if f.Hook != nil {
		f.Hook(b)
	}
	if b.read != nil {
		ln = &listener{ln, b.read}
	}
	return refserver.New(b, refserver.Options{
		Protocol:  s.protocol,
		Codec:     codec.Options{Waive: s.waive},
		Intercept: b.intercept,
	}).Serve(ctx, ln)
}

// listener accepts connections of which a fault changes what is read.
type listener struct {
	net.Listener
	read func(together []byte) []byte
}

func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if tc, ok := c.(*net.TCPConn); ok {
		return &tampered{tc, tc.CloseWrite, l.read}, err
	}
	return c, err
}

// tampered hides that a connection is a socket, so that all is read here.
type tampered struct {
	net.Conn
	closeWrite func() error
	read       func(together []byte) []byte
}

func (t *tampered) Read(b []byte) (int, error) {
	n, err := t.Conn.Read(b)
	return copy(b, t.read(b[:n])), err
}

func (t *tampered) CloseWrite() error { return t.closeWrite() }

var servers = map[string]struct {
	protocol *codec.Protocol
	machine  func() refserver.Machine
	asks     string         // a type that changes nothing: a fuzzer sends it in between, to know that all is well
	waive    []codec.RuleID // as the embedded server lets pass
}{
	"gearman": {gearman.Protocol, func() refserver.Machine { return gearmanserver.New(gearmanserver.Options{}) },
		"ECHO_REQ", []codec.RuleID{gearman.RuleAdminSpacing}},
	"beanstalk":  {beanstalk.Protocol, func() refserver.Machine { return beanstalkserver.New(beanstalkserver.Options{}) }, "list-tube-used", nil},
	"danga":      {danga.Protocol, func() refserver.Machine { return dangaserver.New(dangaserver.Options{}) }, "job_status_req", nil},
	"gearmonkey": {gearmonkey.Protocol, func() refserver.Machine { return gearmonkeyserver.New(gearmonkeyserver.Options{}) }, "command", nil},
}
