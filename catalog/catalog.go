// Package catalog lists the protocols that jobwire supports, with everything that belongs to each of them: the
// contract, the reference server, client and worker, faulty variants of these, and the code that checks, fuzzes
// and measures servers of the protocol. Packages for all protocols do not name any protocol; [Add] registers
// the parts of an entry with them.
package catalog

import (
	"flag"
	"fmt"
	"io/fs"
	"net"
	"slices"
	"strings"
	"time"

	"jobwire/audit"
	"jobwire/codec"
	"jobwire/corpus"
	"jobwire/fuzz/faults"
	"jobwire/fuzz/model"
	"jobwire/internal/mutant"
	"jobwire/judge"
	"jobwire/loadgen"
	"jobwire/refserver"
	"jobwire/refserver/inject"
)

// Entry is a protocol with everything that belongs to it. Only Protocol and Server are required.
type Entry struct {
	Protocol *codec.Protocol

	// Server declares the flags that only the reference server of this protocol has. The function that it
	// returns creates the server's state machine, after the flags have been parsed.
	Server  func(Flags) func() refserver.Machine
	Lenient []codec.RuleID // rules that the reference server does not enforce, unless it is strict

	// Login logs in on a new connection, before its first message. The user name may be empty. It reads no bytes after
	// the reply of the server. Without a password it returns an error only if the server replies that it requires a
	// login; the connection must not be used after that. nil: the protocol has no login.
	Login func(nc net.Conn, user, password string) error

	Checker func(*judge.Monitor) judge.Checker // checks the rules about several messages
	Stress  audit.Scenario                     // what clients and workers do under fault profiles
	Effects audit.Effects                      // what fault profiles do

	Programs map[string]mutant.Program // the reference client and worker, by role
	// fault injection for the reference server; nil: faults have no information about jobs
	Inject      *inject.Protocol
	Mutants     func() []mutant.Mutant // faulty servers and programs, which must fail test cases
	Observe     mutant.Observe         // observes the faults of Mutants; may be nil
	PeerMutants func() []mutant.Mutant // faulty clients and workers, which must fail in a stress test

	Model *model.Adapter   // a model of the queue, to check replies; nil: the fuzzer checks only the format of messages
	Load  *loadgen.Adapter // the load for this protocol; nil: the load is derived from the message types

	// Files holds test vectors, and test cases in the folder cases. It is nil if they are in
	// corpus/NAME and conform/cases/NAME.
	Files fs.FS
}

// New creates the state machine of the reference server, with the defaults of its flags.
func (e *Entry) New() refserver.Machine {
	return e.Server(flag.NewFlagSet(e.Protocol.Name, flag.ContinueOnError))()
}

// Injector returns the fault injection for the reference server.
func (e *Entry) Injector() *inject.Protocol {
	if e.Inject != nil {
		return e.Inject
	}
	return &inject.Protocol{Protocol: e.Protocol, New: e.New, Waive: e.Lenient}
}

// Flags declares command-line flags. The type FlagSet of the packages flag and pflag implements it.
type Flags interface {
	Bool(name string, value bool, usage string) *bool
	Uint(name string, value uint, usage string) *uint
	Duration(name string, value time.Duration, usage string) *time.Duration
}

var entries []*Entry

// Add adds a protocol and registers its parts. It must be called before a part is used.
func Add(e Entry) {
	codec.RegisterProtocol(e.Protocol)
	if e.Checker != nil {
		judge.Register(e.Protocol, e.Checker)
	}
	audit.Register(e.Protocol, e.Stress, e.Effects)
	if e.Load == nil {
		e.Load = &loadgen.Adapter{Protocol: e.Protocol}
	}
	loadgen.Register(e.Load)
	if e.Files != nil {
		corpus.Register(e.Protocol.Name, e.Files)
	}
	if e.Model != nil {
		model.Register(e.Protocol, e.Model)
	}
	faults.Register(&inject.Protocol{Protocol: e.Protocol, New: e.New, Waive: e.Lenient})
	entries = append(entries, &e)
}

// All returns the entries in the order in which they were added.
func All() []*Entry { return entries }

// Names returns the names of all protocols.
func Names() []string {
	var names []string
	for _, e := range entries {
		names = append(names, e.Protocol.Name)
	}
	return names
}

// Named returns the entry of the protocol with the name.
func Named(name string) (*Entry, error) {
	if i := slices.Index(Names(), name); i >= 0 {
		return entries[i], nil
	}
	return nil, fmt.Errorf("unknown protocol %q: expected %s", name, strings.Join(Names(), ", "))
}
