package conform_test

import (
	"slices"
	"strings"
	"testing"

	"jobwire/codec"
	"jobwire/conform"
	"jobwire/conform/mutanttest"
)

// needs lists the messages that each capability of a server allows clients to send. If that is one message, a profile may
// state the message type instead of the capability.
var needs = map[string][]string{
	"reserve-job": {"reserve-job"},
}

// settings are capabilities that depend on how the server was started, not on messages.
var settings = []string{"no-binlog"}

// sends returns the names of the messages that the peers of a case send.
func sends(c *conform.Case) (names []string) {
	for _, st := range c.Script.Steps {
		if t := st.Choices[0].Type; st.From == codec.Peer && t != nil {
			names = append(names, t.Name)
		}
	}
	return names
}

// TestCasesNeedWhatTheySend checks that a case needs a capability if, and only if, it sends the messages of the capability.
// Then a server does not fail because of a capability that it lacks, and every case runs on a server that has the
// capability.
func TestCasesNeedWhatTheySend(t *testing.T) {
	t.Parallel()
	for _, p := range protocols {
		s := mutanttest.Load(t, p.protocol)
		for _, c := range s.Cases {
			sent := sends(c)
			for capability, names := range needs {
				uses := slices.ContainsFunc(names, func(n string) bool { return slices.Contains(sent, n) })
				switch named := slices.Contains(c.Needs, capability); {
				case uses && !named:
					t.Errorf("%s sends one of %s and does not need %s", c.ID, strings.Join(names, ", "), capability)
				case named && !uses:
					t.Errorf("%s needs %s and sends none of %s", c.ID, capability, strings.Join(names, ", "))
				}
			}
		}
		for _, capability := range s.Capabilities() {
			if needs[capability] == nil && !slices.Contains(settings, capability) {
				t.Errorf("what the capability %s stands for is not listed here", capability)
			}
		}
	}
}
