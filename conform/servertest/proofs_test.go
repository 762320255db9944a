package servertest

import (
	"context"
	"net"
	"slices"
	"testing"
	"testing/synctest"

	"jobwire/catalog"
	"jobwire/codec/transcript"
	"jobwire/conform"
	"jobwire/internal/target"
	"jobwire/play"
	"jobwire/refserver"
)

// TestProofs tests the proofs of the setups: each passes on the reference server, and fails there without the steps
// of the setup.
func TestProofs(t *testing.T) {
	for _, e := range catalog.All() {
		suite, err := conform.Load(e.Protocol)
		if err != nil {
			t.Fatal(err)
		}
		for _, setup := range suite.Setups.All() {
			for way := range setup.Ways {
				proof, err := suite.Setups.Proof(setup.Name, transcript.Ways{setup.Name: way})
				if err != nil {
					t.Fatal(err)
				}
				if proof == nil {
					continue
				}
				without := *proof
				without.Steps = slices.DeleteFunc(slices.Clone(proof.Steps), func(st transcript.Step) bool { return st.Setup == setup.Name })
				synctest.Test(t, func(t *testing.T) {
					server, err := target.InMemory(t.Context(), "reference", func(ctx context.Context, ln net.Listener) error {
						return refserver.New(e.New(), refserver.Options{Protocol: e.Protocol}).Serve(ctx, ln)
					})
					if err != nil {
						t.Fatal(err)
					}
					defer server.Stop()
					dial := func(ctx context.Context, _ transcript.Actor) (net.Conn, error) { return target.Dial(ctx, server) }
					if f := play.Peers(t.Context(), proof, dial, play.Options{}).Failure; f != nil {
						t.Errorf("%s: setup %s (%s): %v", e.Protocol.Name, setup.Name, setup.Ways[way], f)
					}
					if play.Peers(t.Context(), &without, dial, play.Options{}).Failure == nil {
						t.Errorf("%s: the proof of %s (%s) passes without the setup", e.Protocol.Name, setup.Name, setup.Ways[way])
					}
				})
			}
		}
	}
}
