package conform_test

import (
	"context"
	"net"
	"strings"
	"testing"

	"jobwire/catalog"
	"jobwire/codec"
	"jobwire/conform"
	"jobwire/conform/mutanttest"
	"jobwire/internal/target"
	"jobwire/refserver"
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
				start := func(ctx context.Context) (target.Target, error) {
					return target.Func(ctx, server.Protocol.Name, func(ctx context.Context, ln net.Listener) error {
						o := refserver.Options{Protocol: server.Protocol, Codec: codec.Options{Waive: server.Lenient}}
						return refserver.New(server.New(), o).Serve(ctx, ln)
					})
				}
				report := &conform.Report{Protocol: tested.Protocol, Results: (&conform.Runner{Start: start}).Run(t.Context(), suite, nil)}
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
