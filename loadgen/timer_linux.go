package loadgen

import (
	"context"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// preciseTimer waits with a Linux timer file descriptor, which wakes a goroutine about 25 us late. A time.Timer is
// about 0.5 ms late, because the Go scheduler sleeps for whole milliseconds. If a system call fails, preciseTimer
// waits as sleep does.
type preciseTimer struct {
	f   *os.File
	fd  int
	buf [8]byte
}

func newPreciseTimer() *preciseTimer {
	a := &preciseTimer{}
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err == nil {
		a.fd, a.f = fd, os.NewFile(uintptr(fd), "timer")
	}
	return a
}

// wait returns true after d, or false if ctx is done earlier.
func (a *preciseTimer) wait(ctx context.Context, d time.Duration) bool {
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(max(d, 1)))}
	if a.f == nil || unix.TimerfdSettime(a.fd, 0, &spec, nil) != nil {
		return sleep(ctx, d)
	}
	if d > time.Millisecond {
		defer context.AfterFunc(ctx, func() { a.f.SetReadDeadline(time.Unix(1, 0)) })()
	}
	_, err := a.f.Read(a.buf[:])
	return err == nil && ctx.Err() == nil
}

func (a *preciseTimer) close() {
	if a.f != nil {
		a.f.Close()
	}
}
