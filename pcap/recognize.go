package pcap

import (
	"encoding/binary"

	"jobwire/codec"
)

// TLS is the protocol of encrypted connections. It has no message types.
var TLS = &codec.Protocol{Name: "tls", Title: "TLS", ServerName: "Server", Roles: []string{"Client"},
	Recognition: codec.Recognition{Begins: beginsTLS}}

// recognized returns the protocols that are recognized by their bytes, in the order in which they are tried.
func recognized() []*codec.Protocol { return append([]*codec.Protocol{TLS}, codec.Protocols()...) }

// begins reports whether b begins with a message of a protocol, and which side sent it if only one side can
// have sent it.
func begins(p *codec.Protocol, b []byte, resumed bool) (m codec.Match, from codec.Side, sided bool) {
	peer, server := p.Begins(codec.Peer, b, nil, resumed), p.Begins(codec.Server, b, nil, resumed)
	if server > peer {
		return server, codec.Server, true
	}
	return peer, codec.Peer, peer > server
}

// beginsTLS reports whether b begins with a record of SSL 3 to TLS 1.3: a handshake, an alert or data.
func beginsTLS(from codec.Side, b, _ []byte, _ bool) codec.Match {
	switch {
	case b[0] < 20 || b[0] > 23 || len(b) > 1 && b[1] != 3 || len(b) > 2 && b[2] > 4:
		return codec.NoMatch
	case len(b) < 6:
		return codec.MayMatch
	case binary.BigEndian.Uint16(b[3:]) > 1<<14+2048:
		return codec.NoMatch
	}
	const handshake, clientHello, serverHello = 22, 1, 2
	if b[0] == handshake && (b[5] == clientHello && from == codec.Server || b[5] == serverHello && from == codec.Peer) {
		return codec.NoMatch
	}
	return codec.Matches
}
