package loadgen

import (
	"context"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// preciseTimer waits. A file of the kernel's that becomes readable in time wakes a goroutine some
// 25 us late; a time.Timer, half a millisecond, since the scheduler sleeps in milliseconds.
type preciseTimer struct {
	f   *os.File
	fd  int
	buf [8]byte
	coarseTimer
}

func newPreciseTimer() *preciseTimer {
	a := &preciseTimer{coarseTimer: newCoarseTimer()}
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err == nil {
		a.fd, a.f = fd, os.NewFile(uintptr(fd), "timer")
	}
	return a
}

// wait returns true after the time, and false if ctx ends before.
func (a *preciseTimer) wait(ctx context.Context, d time.Duration) bool {
	if a.f == nil {
		return a.coarseTimer.wait(ctx, d)
	}
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(max(d, 1)))}
	if unix.TimerfdSettime(a.fd, 0, &spec, nil) != nil {
		return a.coarseTimer.wait(ctx, d)
	}
	if d > time.Millisecond {
		defer context.AfterFunc(ctx, func() { a.f.SetReadDeadline(time.Unix(1, 0)) })()
	}
	_, err := a.f.Read(a.buf[:])
	return err == nil && ctx.Err() == nil
}

func (a *preciseTimer) close() {
	a.coarseTimer.close()
	if a.f != nil {
		a.f.Close()
	}
}
