// Package pcap reads conversations in packet captures, and turns conversations into
// captures. A [Decoder] puts the packets of a [Source] together to the messages of all
// protocols, which a [Listing], a [Summary], [Jobs] and others show.
//
// The other way, a conversation is a list of [Event]s, free of packets; a [Writer] makes the
// TCP segments of them that a capture of the same conversation would hold, so that other
// decoders can read what jobwire has recorded or made up.
package pcap

import (
	"fmt"
	"time"

	"jobwire/codec"
)

// Kind is what happens to a connection.
type Kind uint8

const (
	Data       Kind = iota // one end sends bytes
	Opens                  // the peer connects
	Closes                 // one end closes, and the other follows
	HalfCloses             // one end has no more to send, but goes on reading
	Resets                 // one end breaks the connection off
)

func (k Kind) String() string {
	names := [...]string{"data", "open", "close", "half-close", "reset"}
	if int(k) < len(names) {
		return names[k]
	}
	return fmt.Sprintf("kind %d", k)
}

// Event is one thing that happens on a connection.
type Event struct {
	Conn int // which connection; the numbers mean nothing but same and different
	From codec.Side
	Kind Kind
	Data []byte    // of Data
	At   time.Time // the zero time is 1 ms after the event before
}
