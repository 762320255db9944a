package pcap

import (
	"bytes"
	"net/netip"

	"jobwire/codec"
)

// Conn describes a TCP connection.
type Conn struct {
	ID       int // from 1, in the order in which connections begin to carry data
	Peer     netip.AddrPort
	Server   netip.AddrPort
	Protocol *codec.Protocol // nil if none was recognized; [TLS] if the connection is encrypted
	Role     codec.Role      // the roles that the peer may have, given its messages so far
	Last     int64           // time of the previous message, 0 if there is none

	// Uncertain is set when bytes are missing. From then on, it is a guess to which request a reply belongs.
	Uncertain bool

	server int8   // index of the server in the ends of the connection, or unknown
	first  []byte // beginning of the first message, at most maxMagic bytes; nil if no message has been decoded
	state  *conn
}

const unknown int8 = -1

// Service identifies a server: servers in different virtual networks can have the same address.
type Service struct {
	netip.AddrPort
	network uint64
}

// Service returns the server of the connection.
func (c *Conn) Service() Service { return Service{c.Server, c.state.tcp.Network} }

// Midway reports whether the connection began before the capture.
func (c *Conn) Midway() bool { return c.server == unknown || !c.state.tcp.HasSYN(1-c.server) }

// Name returns the address of an end.
func (c *Conn) Name(from codec.Side) string {
	if from == codec.Server {
		return c.Server.String()
	}
	return c.Peer.String()
}

// side returns whether an end of the connection is the peer or the server.
func (c *Conn) side(end int8) codec.Side {
	if end == c.server {
		return codec.Server
	}
	return codec.Peer
}

// setServer sets which end is the server.
func (c *Conn) setServer(end int8) {
	ends := &c.state.tcp.Ends
	c.server, c.Server, c.Peer = end, ends[end].AddrPort(), ends[1-end].AddrPort()
}

// ItemKind is the kind of an [Item].
type ItemKind uint8

const (
	Message   ItemKind = iota // a message, in Frame
	Violates                  // a message, in Frame and Raw, that violates the rule of Err
	Unread                    // Raw: bytes that are not part of a complete message
	Gap                       // Missing is a number of bytes that are not in the capture
	Ends                      // From has closed its direction
	Breaks                    // From has reset the connection
	Skipped                   // Missing is a number of captured bytes in which no message boundary is proved
	Likely                    // a message, in Frame, whose boundaries are not proved but likely
	Conflicts                 // Raw: bytes of a retransmission that differ from those of Conflict
)

// Item is a part of a stream. It is valid only during the call of the handler.
type Item struct {
	Kind        ItemKind
	Conn        *Conn
	From        codec.Side
	Frame       *codec.Frame
	Raw         []byte
	Err         *codec.Error
	Missing     int
	Conflict    *Conflict // of Conflicts
	Omitted     int       // number of bytes after Raw that belong to the message and are skipped, because it is large
	Cut         bool      // of Unread: Raw is the beginning of an incomplete message
	Unproved    bool      // of Unread: after a gap, no message boundary is proved in Raw
	Unpaired    bool      // of Message: it is unknown to which request it is the reply
	Resumed     bool      // of Message: the first message of its direction after a gap and unproved bytes
	First, Last int       // numbers of the packets that contain it
	At          int64
}

// Conflict describes data that was sent twice with different bytes. Raw of the item is the later version.
type Conflict struct {
	Earlier []byte // the earlier version, which is decoded, from the first byte that differs
	Offset  uint32 // position of this byte relative to the first captured byte of its direction, modulo 2^32
}

func (it *Item) isMessage() bool { return it.Kind <= Violates || it.Kind == Likely }

// Clone returns a copy that is valid after the call of the handler.
func (it *Item) Clone() *Item {
	c := *it
	conn := *it.Conn // keep the current value of Last, which changes with each message
	c.Conn = &conn
	c.Raw = bytes.Clone(it.Raw)
	if it.Conflict != nil {
		c.Conflict = &Conflict{bytes.Clone(it.Conflict.Earlier), it.Conflict.Offset}
	}
	if it.Frame != nil {
		f := it.Frame.Clone()
		c.Frame = &f
	}
	return &c
}

// Size returns the length of a message in bytes.
func (it *Item) Size() int { return len(it.Raw) + it.Omitted }
