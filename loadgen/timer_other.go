//go:build !linux

package loadgen

import (
	"context"
	"net"
	"time"
)

// timer waits as sleep does.
type timer struct{}

func newTimer(net.Conn) *timer { return nil }

func (*timer) wait(ctx context.Context, d time.Duration) bool { return sleep(ctx, d) }

func (*timer) close() {}
