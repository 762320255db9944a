//go:build !unix

package refserver

// prepare does nothing: here every write waits, in a goroutine of its own.
func (c *Conn) prepare() {}
