// Package mutants contains Redis servers with one deliberate fault each. They test the cases of GearMonkey's
// suite that are about servers: a case that none of them fails tests nothing.
package mutants

import (
	"embed"
	"slices"
	"strings"

	"jobwire/codec"
	protocol "jobwire/codec/gearmonkey"
	"jobwire/internal/mutant"
	"jobwire/refserver"
	"jobwire/refserver/gearmonkey"
	"jobwire/refserver/inject"
)

type (
	mutantSpec = inject.MutantSpec
	message    = inject.Message
	peer       = inject.Peer
)

// System makes the reference server faulty. A message of a peer has the name and the words of a command; a
// reply consists of its bytes.
var System = inject.Protocol{
	Protocol: protocol.Protocol,
	New:      func() refserver.Machine { return gearmonkey.New(gearmonkey.Options{}) },
	Read:     read,
	PeerFrame: func(name string, args []string) *codec.Frame {
		return &codec.Frame{From: codec.Peer, Raw: []byte(list(append([]string{name}, args...)...))}
	},
	Raw:    []string{"simple", "OK"},
	Event:  isPush,
	Record: inject.Record{Received: received},
	Functions: map[string]any{
		"kind":      kind,     // kind(peer, key)
		"waits_for": waitsFor, // waits_for(peer)
	},
}

// All returns the mutants.
func All() []mutant.Mutant { return System.Mutants(all()) }

// Observe starts the reference server and observes the faults of all mutants.
var Observe = System.Observe(all)

//go:embed *.yaml
var files embed.FS

var all = inject.Specs(files, waits)

// least is the number of arguments that some commands must have. Edits do not change shorter commands.
var least = map[string]int{"LPUSH": 2, "ZADD": 3, "EXPIRE": 2, "PUBLISH": 2, "EVALSHA": 3, "ZRANGE": 3, "LRANGE": 3}

// read splits a command into words.
func read(m *message) bool {
	w := cut(m.Text())
	if len(w) == 0 {
		m.Name = ""
		return true
	}
	m.Name, m.Args = strings.ToUpper(w[0]), w[1:]
	return len(m.Args) >= least[m.Name] && (inline(m) || len(m.Args) > 0)
}

// inline is a condition: the command is a line, not an array.
func inline(m *message) bool { return m.Frame.Raw[0] != '*' }

// received records subscriptions.
func received(m *message) {
	p := m.Peer
	for _, c := range m.Args {
		switch i := slices.Index(p.Channels, c); {
		case m.Name == "SUBSCRIBE" && i < 0:
			p.Channels = append(p.Channels, c)
		case m.Name == "UNSUBSCRIBE" && i >= 0:
			p.Channels = slices.Delete(p.Channels, i, i+1)
		}
	}
}

func isPush(reply []byte) bool { return strings.HasPrefix(string(reply), "*3\r\n$7\r\nmessage\r\n") }
