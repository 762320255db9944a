package exec

import (
	"errors"
	"os"
	"time"
)

// transport opens connections to one server.
type transport interface {
	// dial opens a connection. It fails if the connection is not open within the timeout. Writes that take longer than
	// the timeout fail with errTimeout.
	dial(timeout time.Duration) (link, error)
}

// link is a connection to a server.
type link interface {
	write(b []byte) error
	writeUrgent(b []byte) error // writes urgent data of TCP, or returns an error if there is none
	stopReading()               // makes the buffer for received bytes small, because nothing more is read

	// read waits for bytes for at most the given duration. peek does not wait. Both return errTimeout if there are no
	// bytes.
	read(b []byte, within time.Duration) (int, error)
	peek(b []byte) (int, error)

	halfClose()
	close(reset bool) // closes the connection, either with a reset or after sending all written bytes
}

// withReset is an argument of link.close.
const withReset = true

var errTimeout = errors.New("timeout: no data")

// timeout returns errTimeout for the error of a deadline, and other errors unchanged.
func timeout(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return errTimeout
	}
	return err
}
