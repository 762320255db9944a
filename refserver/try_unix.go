//go:build unix

package refserver

import (
	"io"
	"syscall"
)

// prepare makes the functions that read from a socket and write to it without
// waiting. once is called only while nobody else writes to it.
func (c *Conn) prepare() {
	c.once = func(fd uintptr) bool {
		c.tried, c.tryFail = try(syscall.SYS_WRITE, fd, c.writing[c.sent:])
		if c.tryFail == syscall.EAGAIN {
			c.tryFail = nil
		}
		return true
	}
	c.arrive = func(fd uintptr) bool {
		c.got, c.gotFail = try(syscall.SYS_READ, fd, c.buf[c.top:])
		if c.gotFail == nil && c.got == 0 {
			c.gotFail = io.EOF
		}
		return c.gotFail != syscall.EAGAIN
	}
}
