package fuzz

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"jobwire/codec/beanstalk"
	"jobwire/fuzz/triage"
	"jobwire/internal/target"
)

// TestServerThatDoesNotStart tests that a run fails if it ends before the server has started.
func TestServerThatDoesNotStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, err := Run(t.Context(), Config{Protocol: beanstalk.Protocol, Duration: 10 * time.Second, Server: triage.Server{Start: func(ctx context.Context) (target.Target, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}}})
		if !errors.Is(err, target.ErrUnreachable) {
			t.Errorf("got %v, want the error of a target that cannot be reached", err)
		}
	})
}
