package faults

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"jobwire/codec"
	"jobwire/refserver/inject"
)

type (
	message = inject.Message
	peer    = inject.Peer
)

// all requires that all conditions are true.
func all(conds ...inject.When) inject.When {
	return func(m *message) bool {
		for _, c := range conds {
			if !c(m) {
				return false
			}
		}
		return true
	}
}

// is requires a field to have a value.
func is(label, value string) inject.When {
	return func(m *message) bool { return m.Value(label) == value }
}

// sized requires a field to have n bytes.
func sized(label string, n int) inject.When {
	return func(m *message) bool { return len(m.Value(label)) == n }
}

// atLeast requires a field to contain a number of at least n.
func atLeast(label string, n uint64) inject.When {
	return func(m *message) bool {
		v, err := strconv.ParseUint(m.Value(label), 10, 64)
		return err == nil && v >= n
	}
}

// after requires that the last messages of the peer were of these types, in this order.
func after(types string) inject.When {
	n := len(strings.Fields(types))
	return func(m *message) bool {
		past := m.Peer.Past
		return strings.Join(past[max(0, len(past)-n):], " ") == types
	}
}

// breaks requires an illegal message that breaks the rule.
func breaks(rule codec.RuleID) inject.When {
	return func(m *message) bool { return m.Err.Rule == rule }
}

// exits ends the process with an exit status, after printing the output.
func exits(status int, output string) func(*message) {
	return func(*message) {
		fmt.Fprint(os.Stderr, output)
		os.Exit(status)
	}
}

// killedBy ends the process by a signal, as the kernel or the C library would. A Go program cannot do that itself, so the
// process executes a shell that can.
func killedBy(signal, output string) func(*message) {
	return func(*message) {
		fmt.Fprint(os.Stderr, output)
		syscall.Exec("/bin/sh", []string{"sh", "-c", "ulimit -c 0; kill -" + signal + " $$"}, nil)
		os.Exit(1)
	}
}

// prints prints a sanitizer report without ending the process.
func prints(output string) func(*message) {
	return func(*message) { fmt.Fprint(os.Stderr, output) }
}

// blocks blocks the server until it is stopped: no connection is served any more.
func blocks(m *message) { <-m.Context.Done() }

// spins keeps a core busy until the server ends.
func spins(m *message) {
	go func() {
		for m.Context.Err() == nil {
		}
	}()
}

// Limits on what leaks, so that a long run does not exhaust the machine.
const (
	maxLeak        = 512 << 20
	maxDescriptors = 2000
)

// leak is the number of bytes that leak at once.
const leak = 256 << 10

// leaks leaks memory each time that the condition is true.
func leaks(types string, when inject.When) inject.Edit {
	return func(s *inject.Server) {
		var kept [][]byte
		inject.On(types, when, func(*message) {
			if len(kept)*leak >= maxLeak {
				return
			}
			page := make([]byte, leak)
			for i := 0; i < leak; i += 512 {
				page[i] = 1 // pages that are not written take no memory
			}
			kept = append(kept, page)
		})(s)
	}
}

// leaksDescriptor leaks a file descriptor each time that the condition is true.
func leaksDescriptor(types string, when inject.When) inject.Edit {
	return func(s *inject.Server) {
		var open []*os.File
		inject.On(types, when, func(*message) {
			if len(open) < maxDescriptors {
				if f, err := os.Open(os.DevNull); err == nil {
					open = append(open, f)
				}
			}
		})(s)
	}
}

// other returns the oldest of the other peers that have sent a message, or nil.
func other(m *message) *peer {
	for _, o := range m.Peers {
		if o != m.Peer && len(o.Count) > 0 {
			return o
		}
	}
	return nil
}

// closesOther closes the oldest of the other connections in use.
func closesOther(m *message) {
	if o := other(m); o != nil {
		o.Close()
	}
}

// notes returns an edit that notes which job a peer has, or none if the field is "".
func notes(types, field string) inject.Edit {
	return inject.Out(types, nil, func(m *message) {
		m.Peer.Notes["job"] = ""
		if field != "" {
			m.Peer.Notes["job"] = m.Value(field)
		}
	})
}

// job returns the handle or the ID of the job that the peer has, or "".
func job(p *peer) string { return p.Notes["job"] }

// hasJob requires that the peer has a job.
func hasJob(m *message) bool { return job(m.Peer) != "" }

// recent contains the last values that were added to it. It is limited, since a memory leak would be
// another fault than the injected one.
type recent []string

func (r *recent) add(v string) {
	if len(*r) == 256 {
		*r = (*r)[1:]
	}
	*r = append(*r, v)
}
