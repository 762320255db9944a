//go:build unix

package refserver

import "syscall"

// prepare makes the function that writes to a socket without waiting. It is
// called only while nobody else writes to it.
func (c *Conn) prepare() {
	c.once = func(fd uintptr) bool {
		for {
			n, err := syscall.Write(int(fd), c.writing[c.sent:])
			switch err {
			case nil:
				c.tried = n
			case syscall.EINTR:
				continue
			case syscall.EAGAIN:
			default:
				c.tryFail = err
			}
			return true
		}
	}
}
