package conform_test

import (
	"strings"
	"testing"

	"jobwire/catalog"
	"jobwire/conform"
	"jobwire/conform/mutanttest"
)

// TestOtherProtocol tests each reference server with the suite of each other protocol: the run ends at once and reports the
// protocol of the server.
func TestOtherProtocol(t *testing.T) {
	t.Parallel()
	for _, server := range catalog.All() {
		for _, tested := range catalog.All() {
			t.Run(server.Protocol.Name+" as "+tested.Protocol.Name, func(t *testing.T) {
				t.Parallel()
				suite, err := mutanttest.Load(t, tested.Protocol).About("")
				if err != nil {
					t.Fatal(err)
				}
				suite.Cases = suite.Cases[:3]
				report := &conform.Report{Protocol: tested.Protocol, Results: run(t, conform.Runner{Start: serving(server)}, suite)}
				want := ""
				if server != tested {
					want = "answers as a server of " + server.Protocol.Title
				}
				if got := report.Unreachable(); (got == "") != (want == "") || !strings.Contains(got, want) {
					t.Errorf("%q, want %q", got, want)
				}
			})
		}
	}
}
