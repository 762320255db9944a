package audit

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"jobwire/codec/beanstalk"
	"jobwire/internal/lateness"
	"jobwire/internal/target"
	"jobwire/internal/verdict"
	peer "jobwire/refpeer/beanstalk"
	"jobwire/refserver"
	server "jobwire/refserver/beanstalk"
)

// TestLateMachine tests a client that reports time-outs in its first run only: the run is repeated if the machine was
// late.
func TestLateMachine(t *testing.T) {
	for lost, want := range map[time.Duration]verdict.Verdict{0: verdict.FailedCleanly, time.Second: verdict.Completed} {
		synctest.Test(t, func(t *testing.T) {
			l := new(lateness.Meter)
			var starts atomic.Int64
			client := func(ctx context.Context, addr string, tasks io.Reader, answers io.Writer) error {
				if starts.Add(1) > 1 {
					return peer.Drive(ctx, addr, tasks, answers)
				}
				for lines := bufio.NewScanner(tasks); lines.Scan(); {
					l.Note(time.Now(), lost)
					fmt.Fprintln(answers, "error timed-out")
				}
				return nil
			}
			out, err := Stress(t.Context(), StressOptions{Protocol: beanstalk.Protocol,
				FaultProfiles: []*FaultProfile{FaultProfileNamed("plain")},
				Drivers:       map[string]Driver{"Client": client}, Partners: map[string]Driver{"Client": peer.Drive},
				Limit: 20 * time.Second, lateness: l,
				Start: func(ctx context.Context) (target.Target, error) {
					return target.InMemory(ctx, "beanstalk", func(ctx context.Context, ln net.Listener) error {
						return refserver.New(server.New(server.Options{}), refserver.Options{Protocol: beanstalk.Protocol}).Serve(ctx, ln)
					})
				}})
			if err != nil || out[0].Verdict != want {
				t.Errorf("%v lost: expected %s, got %+v, %v", lost, want, out, err)
			}
		})
	}
}
