// Package pcap decodes conversations in packet captures, and writes conversations as captures. A [Decoder]
// reassembles the packets of a [Source] into messages of all protocols. The package report shows these messages;
// the packages jobs and replay use them further.
//
// For writing, a conversation is a list of [Event]s without packets. A [Writer] generates the TCP segments that
// a capture of this conversation would contain, so that other programs can decode conversations that jobwire
// recorded or generated.
package pcap

import (
	"fmt"
	"time"

	"jobwire/codec"
)

// Kind is the kind of an [Event].
type Kind uint8

const (
	Data       Kind = iota // one end sends bytes
	Opens                  // the peer connects
	Closes                 // one end closes the connection, then the other end does
	HalfCloses             // one end shuts down its sending direction and continues to read
	Resets                 // one end resets the connection
)

func (k Kind) String() string {
	names := [...]string{"data", "open", "close", "half-close", "reset"}
	if int(k) < len(names) {
		return names[k]
	}
	return fmt.Sprintf("kind %d", k)
}

// Event is one event on a connection.
type Event struct {
	Conn int // identifies the connection; the value has no other meaning
	From codec.Side
	Kind Kind
	Data []byte    // of Data
	At   time.Time // the zero time means 1 ms after the previous event

	// comments of the first packet of the event; for a connection that opens, of the first packet after the handshake
	Comments []string
}
