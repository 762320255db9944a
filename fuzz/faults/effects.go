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

// all returns a condition that is true if all conditions are true.
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

// is returns a condition that is true if the field has the value.
func is(label, value string) inject.When {
	return func(m *message) bool { return m.Value(label) == value }
}

// sized returns a condition that is true if the value of the field has n bytes.
func sized(label string, n int) inject.When {
	return func(m *message) bool { return len(m.Value(label)) == n }
}

// atLeast returns a condition that is true if the field contains a number of at least n.
func atLeast(label string, n uint64) inject.When {
	return func(m *message) bool {
		v, err := strconv.ParseUint(m.Value(label), 10, 64)
		return err == nil && v >= n
	}
}

// after returns a condition that is true if the last messages of the peer were of these types, separated by spaces, in
// this order.
func after(types string) inject.When {
	n := len(strings.Fields(types))
	return func(m *message) bool {
		past := m.Peer.Past
		return strings.Join(past[max(0, len(past)-n):], " ") == types
	}
}

// breaks returns a condition that is true for an illegal message that breaks the rule.
func breaks(rule codec.RuleID) inject.When {
	return func(m *message) bool { return m.Err.Rule == rule }
}

// exits returns an effect that prints output to standard error and ends the process with an exit status.
func exits(status int, output string) func(*message) {
	return func(*message) {
		fmt.Fprint(os.Stderr, output)
		os.Exit(status)
	}
}

// killedBy returns an effect that prints output to standard error and ends the process by a signal. The process
// executes a shell that sends the signal to itself, because the Go runtime handles signals.
func killedBy(signal, output string) func(*message) {
	return func(*message) {
		fmt.Fprint(os.Stderr, output)
		syscall.Exec("/bin/sh", []string{"sh", "-c", "ulimit -c 0; kill -" + signal + " $$"}, nil)
		os.Exit(1)
	}
}

// prints returns an effect that prints a sanitizer report to standard error. The process continues.
func prints(output string) func(*message) {
	return func(*message) { fmt.Fprint(os.Stderr, output) }
}

// blocks returns an edit after which the server handles no more messages, from any connection, from the first event or
// message of the types for which the condition is true.
func blocks(types string, when inject.When) inject.Edit {
	return func(s *inject.Server) {
		blocked := false
		inject.On(types, when, func(m *message) {
			blocked = true
			m.Drop()
		})(s)
		inject.Ignore("*", func(*message) bool { return blocked })(s)
	}
}

// spins returns an edit that keeps one CPU core busy until the server ends, from the first event or message of the types
// for which the condition is true. With more busy loops, the server would hang instead.
func spins(types string, when inject.When) inject.Edit {
	return func(s *inject.Server) {
		busy := false
		inject.On(types, when, func(m *message) {
			if busy {
				return
			}
			busy = true
			go func() {
				for m.Context.Err() == nil {
				}
			}()
		})(s)
	}
}

// Limits of the leaks, in bytes and file descriptors, so that a long run does not exhaust the machine.
const (
	maxLeak        = 512 << 20
	maxDescriptors = 2000
)

// leak is the number of bytes of one leak.
const leak = 256 << 10

// leaks returns an edit that leaks memory for each message of the types for which the condition is true.
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

// leaksDescriptor returns an edit that leaks a file descriptor for each message of the types for which the condition is
// true.
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

// other returns another peer that has sent a message, the oldest one, or nil if there is none.
func other(m *message) *peer {
	for _, o := range m.Peers {
		if o != m.Peer && len(o.Count) > 0 {
			return o
		}
	}
	return nil
}

// closesOther closes the connection of another peer.
func closesOther(m *message) {
	if o := other(m); o != nil {
		o.Close()
	}
}

// notes returns an edit that records, for messages of the server of the given types, which job the peer has: the job
// that the named field contains, or no job if field is "".
func notes(types, field string) inject.Edit {
	return inject.Out(types, nil, func(m *message) {
		m.Peer.Notes["job"] = ""
		if field != "" {
			m.Peer.Notes["job"] = m.Value(field)
		}
	})
}

// job returns the handle or the ID of the job that notes has recorded for the peer, or "".
func job(p *peer) string { return p.Notes["job"] }

// hasJob is a condition that is true if the peer has a job.
func hasJob(m *message) bool { return job(m.Peer) != "" }

// recent contains the last 256 values that were added to it. The limit prevents a memory leak, which would be another
// fault than the injected one.
type recent []string

func (r *recent) add(v string) {
	if len(*r) == 256 {
		*r = (*r)[1:]
	}
	*r = append(*r, v)
}
