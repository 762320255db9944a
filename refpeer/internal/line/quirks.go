package line

import (
	"time"

	"jobwire/codec"
)

// Quirks are how a program sends and receives. The zero value has no fault.
type Quirks struct {
	// Pieces is the size in bytes of the first writes, with pauses between them; 0: one write sends everything. It is not a
	// fault.
	Pieces int

	Read func(*Conn) (*codec.Message, error) // returns the next message; nil: Read
	Edit func(*codec.Message) error          // if it is set, may change a received message

	Timeout      time.Duration // the longest wait for a message; 0: no limit
	IgnoresEOF   bool          // the end of a connection is not noticed
	ReusesFailed bool          // a connection that has failed is used again
	ExitsOnEOF   bool          // the end of a connection ends the driver without an answer
	EOFEndsJob   bool          // the end of a connection is taken for the end of the job
}
