package fuzz

import (
	"errors"
	"time"
)

// transport makes connections to a server.
type transport interface {
	// dial connects. Connecting fails after the timeout. Writes on the connection fail with errTimeout after the
	// timeout.
	dial(timeout time.Duration) (link, error)
}

// link is a connection to a server.
type link interface {
	write(b []byte) error

	// read waits for bytes, and peek does not. Both fail with errTimeout if there are none.
	read(b []byte, within time.Duration) (int, error)
	peek(b []byte) (int, error)

	halfClose()
	close(reset bool) // closes the connection with a reset, or after sending what was written
}

var errTimeout = errors.New("timeout: no data")
