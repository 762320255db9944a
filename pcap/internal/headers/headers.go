// Package headers parses the headers of a packet, with those of tunnels, down to the TCP segment in it.
package headers

import (
	"encoding/binary"
	"net/netip"
)

// TCP flags.
const (
	FIN = 0x01
	SYN = 0x02
	RST = 0x04
	ACK = 0x10
)

// Endpoint is an address and a port. The address is an IPv6 address, or an IPv4-mapped one.
type Endpoint struct {
	hi, lo uint64
	Port   uint16
}

const mapped = 0xffff << 32 // ::ffff:0:0/96, the prefix of IPv4-mapped addresses

// AddrPort returns the endpoint. An IPv4-mapped address becomes an IPv4 address.
func (e Endpoint) AddrPort() netip.AddrPort {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:], e.hi)
	binary.BigEndian.PutUint64(b[8:], e.lo)
	return netip.AddrPortFrom(netip.AddrFrom16(b).Unmap(), e.Port)
}

// Before orders endpoints, first by their ports.
func (e Endpoint) Before(o Endpoint) bool {
	switch {
	case e.Port != o.Port:
		return e.Port < o.Port
	case e.hi != o.hi:
		return e.hi < o.hi
	}
	return e.lo < o.lo
}

// Segment is a TCP segment.
type Segment struct {
	Src, Dst Endpoint
	Seq, Ack uint32
	Flags    byte
	Data     []byte
	Missing  int // number of bytes after Data that were on the wire but not captured

	// Numbers in the headers around the IP packet. Equal addresses in different networks belong to different machines.
	Path    uint64 // hash of all numbers; it may depend on the direction. 0: there are none
	Network uint64 // hash of the numbers of virtual networks, which are equal in both directions
}

// Verdict is the result of parsing a packet.
type Verdict uint8

const (
	IsSegment Verdict = iota
	NotTCP            // another protocol, or a fragment that waits for others
	Broken            // headers that are inconsistent or truncated
	Foreign           // a header that is not understood, and that TCP may follow
)

// maxTunnels limits the nesting depth of packets in packets.
const maxTunnels = 4

// Parser parses packets. It keeps the fragments of incomplete IP packets.
type Parser struct {
	Unknown    Header // of the last packet that is Foreign
	Fragmented bool   // the packet was a fragment; the caller resets it

	fragments     fragments
	tunnels       int
	path, network uint64 // see Segment
}

// Parse finds the TCP segment in a packet that was captured on a link of a type. s.Data aliases b, or the memory of
// fragments, until the next call.
func (p *Parser) Parse(link uint32, b []byte, s *Segment) Verdict {
	p.tunnels, p.path, p.network, p.Unknown = 0, 0, 0, Header{}
	ether, b, ok := p.link(link, b)
	v := Broken
	if ok {
		v = p.packet(ether, b, s)
	}
	if v == Broken && p.Unknown.layer != "" {
		v = Foreign
	}
	s.Path, s.Network = p.path, p.network
	return v
}

// is records a number in a header around an IP packet: the ID of a virtual network, or of a tunnel.
func (p *Parser) is(kind uint64, id uint64, network bool) {
	p.path = mix(p.path, kind, id)
	if network {
		p.network = mix(p.network, kind, id)
	}
}

// mix adds a number to a hash, which is not 0 then.
func mix(h, kind, id uint64) uint64 {
	h = (h ^ kind ^ id<<8) * 0x9e3779b97f4a7c15
	return h ^ h>>29 | 1
}

// packet parses what follows a header with an EtherType.
func (p *Parser) packet(ether uint16, b []byte, s *Segment) Verdict {
	for len(b) > 0 {
		switch version := b[0] >> 4; {
		case version == 4 && (ether == etherIPv4 || ether == 0):
			return p.ipv4(b, s)
		case version == 6 && (ether == etherIPv6 || ether == 0):
			return p.ipv6(b, s)
		case ether == etherIPv4 || ether == etherIPv6 || ether == 0:
			return Broken
		}
		inner, rest, ok := p.inner(ether, b)
		switch {
		case !ok:
			return Broken
		case inner == control:
			return NotTCP
		}
		ether, b = inner, rest
	}
	return Broken
}

// ipv4 parses an IPv4 header and what follows it. It assembles fragments, and returns NotTCP until the last fragment of
// a packet arrives. Bytes that the capture has truncated are counted as missing.
func (p *Parser) ipv4(b []byte, s *Segment) Verdict {
	if len(b) < 20 {
		return Broken
	}
	head, total := int(b[0]&15)*4, int(binary.BigEndian.Uint16(b[2:]))
	if total == 0 { // the field is 0 because the network card computes the length later
		total = len(b)
	}
	if head < 20 || total < head || len(b) < head {
		return Broken
	}
	missing := max(0, total-len(b))
	payload := b[head:min(total, len(b))]
	s.Src.hi, s.Src.lo = 0, mapped|uint64(binary.BigEndian.Uint32(b[12:]))
	s.Dst.hi, s.Dst.lo = 0, mapped|uint64(binary.BigEndian.Uint32(b[16:]))
	if frag := binary.BigEndian.Uint16(b[6:]); frag&0x3fff != 0 {
		key := fragmentKey{p.path, s.Src.hi, s.Src.lo, s.Dst.hi, s.Dst.lo, uint32(binary.BigEndian.Uint16(b[4:])), b[9]}
		p.Fragmented = true
		if missing > 0 {
			return Broken
		}
		payload = p.fragments.add(key, payload, int(frag&0x1fff)*8, frag&0x2000 != 0)
		if payload == nil {
			return NotTCP
		}
	}
	return p.transport(b[9], payload, missing, s)
}

// ipv6 parses an IPv6 header with its extension headers, and what follows them. It assembles fragments, and returns
// NotTCP until the last fragment of a packet arrives.
func (p *Parser) ipv6(b []byte, s *Segment) Verdict {
	if len(b) < 40 {
		return Broken
	}
	total := 40 + int(binary.BigEndian.Uint16(b[4:]))
	if total == 40 { // the length is larger than the field can express
		total = len(b)
	}
	missing := max(0, total-len(b))
	s.Src.hi, s.Src.lo = binary.BigEndian.Uint64(b[8:]), binary.BigEndian.Uint64(b[16:])
	s.Dst.hi, s.Dst.lo = binary.BigEndian.Uint64(b[24:]), binary.BigEndian.Uint64(b[32:])
	next, b := b[6], b[40:min(total, len(b))]
	for {
		var size int
		switch next {
		case 0, 43, 60, 135: // options, routing, mobility
			if len(b) < 8 {
				return Broken
			}
			size = 8 + int(b[1])*8
		case 51: // authentication
			if len(b) < 8 {
				return Broken
			}
			size = 8 + int(b[1])*4
		case 44:
			if len(b) < 8 || missing > 0 {
				return Broken
			}
			frag := binary.BigEndian.Uint16(b[2:])
			key := fragmentKey{p.path, s.Src.hi, s.Src.lo, s.Dst.hi, s.Dst.lo, binary.BigEndian.Uint32(b[4:]), 0}
			next, b = b[0], b[8:]
			if frag&0xfff9 != 0 {
				p.Fragmented = true
				if b = p.fragments.add(key, b, int(frag&0xfff8), frag&1 != 0); b == nil {
					return NotTCP
				}
			}
			continue
		default:
			return p.transport(next, b, missing, s)
		}
		if len(b) < size {
			return Broken
		}
		next, b = b[0], b[size:]
	}
}

// transport parses TCP, or the packet inside a tunnel. proto is the IP protocol number, and missing the number of bytes
// that the capture has truncated. Packets in more than maxTunnels tunnels are not decoded.
func (p *Parser) transport(proto byte, b []byte, missing int, s *Segment) Verdict {
	if proto == protoTCP {
		return s.tcp(b, missing)
	}
	ether, inner, ok := p.tunnel(proto, b, s)
	switch {
	case !ok:
		return Broken
	case ether == control:
		return NotTCP
	}
	if p.tunnels++; p.tunnels > maxTunnels {
		p.notUnderstood("nesting depth", uint32(p.tunnels))
		return Broken
	}
	return p.packet(ether, inner, s)
}

// tcp parses the TCP header. It ignores checksums, which are wrong in packets that were captured before the
// network card computed them.
func (s *Segment) tcp(b []byte, missing int) Verdict {
	if len(b) < 20 {
		return Broken
	}
	head := int(b[12]>>4) * 4
	if head < 20 || len(b)+missing < head {
		return Broken
	}
	s.Src.Port, s.Dst.Port = binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:])
	s.Seq, s.Ack = binary.BigEndian.Uint32(b[4:]), binary.BigEndian.Uint32(b[8:])
	s.Flags = b[13]
	if s.Missing = missing; len(b) < head { // truncated in the options
		s.Missing -= head - len(b)
		head = len(b)
	}
	s.Data = b[head:]
	return IsSegment
}
