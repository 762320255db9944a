package exec

import (
	"context"
	"errors"
	"jobwire/internal/target"
	"testing"
	"testing/synctest"
	"time"
)

// TestEndWhileStarting tests that begin stops a server that is still starting at the end of a run, and does not stop a
// server that has started.
func TestEndWhileStarting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var server context.Context
		s := begin(ctx, func(ctx context.Context) (target.Target, error) {
			server = ctx
			return nil, nil
		})
		if s.err != nil {
			t.Fatal(s.err)
		}
		slow := begin(ctx, func(ctx context.Context) (target.Target, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		if !errors.Is(slow.err, context.Canceled) || ctx.Err() == nil {
			t.Errorf("a server that is starting: %v; the run: %v", slow.err, ctx.Err())
		}
		if server.Err() != nil {
			t.Error("the server that had started was ended")
		}
	})
}
