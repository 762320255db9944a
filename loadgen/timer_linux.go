package loadgen

import (
	"context"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"jobwire/internal/memnet"
)

// timer waits with a Linux timer file descriptor, which wakes a goroutine about 25 us late. A time.Timer is about
// 0.5 ms late, because the Go scheduler sleeps for whole milliseconds. If a system call fails, timer waits as sleep
// does.
type timer struct {
	f   *os.File
	fd  int
	buf [8]byte
}

// newTimer returns a timer for runs over connections such as nc. If nc is in memory, the timer waits as sleep does,
// because the timers of Linux do not follow virtual time.
func newTimer(nc net.Conn) *timer {
	t := &timer{}
	if _, ok := nc.RemoteAddr().(memnet.Addr); ok {
		return t
	}
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err == nil {
		t.fd, t.f = fd, os.NewFile(uintptr(fd), "timer")
	}
	return t
}

// wait returns true after d, or false if ctx is done earlier.
func (t *timer) wait(ctx context.Context, d time.Duration) bool {
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(max(d, 1)))}
	if t.f == nil || unix.TimerfdSettime(t.fd, 0, &spec, nil) != nil {
		return sleep(ctx, d)
	}
	if d > time.Millisecond {
		defer context.AfterFunc(ctx, func() { t.f.SetReadDeadline(time.Unix(1, 0)) })()
	}
	_, err := t.f.Read(t.buf[:])
	return err == nil && ctx.Err() == nil
}

func (t *timer) close() {
	if t.f != nil {
		t.f.Close()
	}
}
