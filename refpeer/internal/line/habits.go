package line

import (
	"time"

	"jobwire/codec"
)

// Habits are how a program takes what comes. The zero value has no fault.
type Habits struct {
	Read  func(*Conn) (*codec.Message, error) // the next message; nil is Read
	Heard func(*codec.Message) error          // if it is set, may alter a message that has come

	Patience time.Duration // the longest wait; 0 is for ever
	Stubborn bool          // the end of a connection is not noticed
	Clings   bool          // a connection that has broken is used again
	Falls    bool          // the end of a connection ends the driver, without an answer
	Hopes    bool          // the end of a connection is taken for that of the job
}
