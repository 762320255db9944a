package pcap

import (
	"encoding/binary"
	"net/netip"
)

// TCP flags.
const (
	flagFIN = 0x01
	flagSYN = 0x02
	flagRST = 0x04
	flagACK = 0x10
)

// endpoint is an address and a port. The address is an IPv6 address, or an IPv4-mapped one.
type endpoint struct {
	hi, lo uint64
	port   uint16
}

const mapped = 0xffff << 32 // ::ffff:0:0/96, the prefix of IPv4-mapped addresses

func (e endpoint) addrPort() netip.AddrPort {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:], e.hi)
	binary.BigEndian.PutUint64(b[8:], e.lo)
	return netip.AddrPortFrom(netip.AddrFrom16(b).Unmap(), e.port)
}

// before orders endpoints.
func (e endpoint) before(o endpoint) bool {
	switch {
	case e.port != o.port:
		return e.port < o.port
	case e.hi != o.hi:
		return e.hi < o.hi
	}
	return e.lo < o.lo
}

// segment is a TCP segment.
type segment struct {
	src, dst endpoint
	seq, ack uint32
	flags    byte
	data     []byte
	missing  int // number of bytes after data that were on the wire but not captured
	frame    int
	at       int64
}

// verdict is the result of parsing a packet.
type verdict uint8

const (
	isSegment verdict = iota
	notTCP            // another protocol, or a fragment that waits for others
	broken            // headers that are inconsistent or truncated
	unknownLink
)

// maxTunnels limits the nesting depth of packets in packets.
const maxTunnels = 4

// Numbers of protocols.
const (
	etherIPv4 = 0x0800
	etherIPv6 = 0x86dd
	etherTEB  = 0x6558 // Ethernet in GRE

	protoTCP  = 6
	protoUDP  = 17
	protoIPv4 = 4
	protoIPv6 = 41
	protoGRE  = 47

	portVXLAN = 4789
)

// linkHeader removes a link header. It returns the EtherType of the rest, or 0 if the version in the IP header
// decides.
type linkHeader func(b []byte) (ether uint16, rest []byte, ok bool)

// links maps link types to their headers.
var links = map[uint32]linkHeader{
	0:   nullHeader,
	1:   ethernetHeader,
	12:  noHeader,
	14:  noHeader,
	101: noHeader,
	108: nullHeader,
	113: func(b []byte) (uint16, []byte, bool) { return cooked(b, 14, 16) },
	228: noHeader,
	229: noHeader,
	276: func(b []byte) (uint16, []byte, bool) { return cooked(b, 0, 20) },
}

func noHeader(b []byte) (uint16, []byte, bool) { return 0, b, true }

// nullHeader removes an address family, which is in the byte order of the capturing machine.
func nullHeader(b []byte) (uint16, []byte, bool) {
	if len(b) < 4 {
		return 0, nil, false
	}
	return 0, b[4:], true
}

func ethernetHeader(b []byte) (uint16, []byte, bool) {
	if len(b) < 14 {
		return 0, nil, false
	}
	return tags(binary.BigEndian.Uint16(b[12:]), b[14:])
}

// cooked removes a header of Linux's "cooked" capture, with the protocol at offset at.
func cooked(b []byte, at, size int) (uint16, []byte, bool) {
	if len(b) < size {
		return 0, nil, false
	}
	return tags(binary.BigEndian.Uint16(b[at:]), b[size:])
}

// tags removes all VLAN tags.
func tags(ether uint16, b []byte) (uint16, []byte, bool) {
	for ether == 0x8100 || ether == 0x88a8 || ether == 0x9100 {
		if len(b) < 4 {
			return 0, nil, false
		}
		ether, b = binary.BigEndian.Uint16(b[2:]), b[4:]
	}
	return ether, b, true
}

// unwrapper parses packets. It keeps the fragments of incomplete IP packets.
type unwrapper struct {
	fragments  fragments
	fragmented bool // the packet was a fragment; the caller resets it
	tunnels    int

	link uint32 // of the last packet
	open linkHeader
}

// segment finds the TCP segment in a packet. s.data aliases p.Data, or the memory of fragments, until the next
// call.
func (l *unwrapper) segment(p *Packet, s *segment) verdict {
	if p.Link != l.link || l.open == nil {
		l.link, l.open = p.Link, links[p.Link]
	}
	if l.open == nil {
		return unknownLink
	}
	ether, b, ok := l.open(p.Data)
	if !ok {
		return broken
	}
	s.frame, s.at = p.Number, p.At
	l.tunnels = 0
	return l.network(ether, b, s)
}

func (l *unwrapper) network(ether uint16, b []byte, s *segment) verdict {
	if len(b) == 0 {
		return broken
	}
	switch version := b[0] >> 4; {
	case version == 4 && (ether == etherIPv4 || ether == 0):
		return l.ipv4(b, s)
	case version == 6 && (ether == etherIPv6 || ether == 0):
		return l.ipv6(b, s)
	case ether == etherIPv4 || ether == etherIPv6:
		return broken
	}
	return notTCP
}

func (l *unwrapper) ipv4(b []byte, s *segment) verdict {
	if len(b) < 20 {
		return broken
	}
	head, total := int(b[0]&15)*4, int(binary.BigEndian.Uint16(b[2:]))
	if total == 0 { // the field is 0 because the network card computes the length later
		total = len(b)
	}
	if head < 20 || total < head || len(b) < head {
		return broken
	}
	missing := max(0, total-len(b))
	payload := b[head:min(total, len(b))]
	s.src.hi, s.src.lo = 0, mapped|uint64(binary.BigEndian.Uint32(b[12:]))
	s.dst.hi, s.dst.lo = 0, mapped|uint64(binary.BigEndian.Uint32(b[16:]))
	if frag := binary.BigEndian.Uint16(b[6:]); frag&0x3fff != 0 {
		key := fragmentKey{s.src.hi, s.src.lo, s.dst.hi, s.dst.lo, uint32(binary.BigEndian.Uint16(b[4:])), b[9]}
		l.fragmented = true
		if missing > 0 {
			return broken
		}
		payload = l.fragments.add(key, payload, int(frag&0x1fff)*8, frag&0x2000 != 0)
		if payload == nil {
			return notTCP
		}
	}
	return l.transport(b[9], payload, missing, s)
}

func (l *unwrapper) ipv6(b []byte, s *segment) verdict {
	if len(b) < 40 {
		return broken
	}
	total := 40 + int(binary.BigEndian.Uint16(b[4:]))
	if total == 40 { // the length is larger than the field can express
		total = len(b)
	}
	missing := max(0, total-len(b))
	s.src.hi, s.src.lo = binary.BigEndian.Uint64(b[8:]), binary.BigEndian.Uint64(b[16:])
	s.dst.hi, s.dst.lo = binary.BigEndian.Uint64(b[24:]), binary.BigEndian.Uint64(b[32:])
	next, b := b[6], b[40:min(total, len(b))]
	for {
		var size int
		switch next {
		case 0, 43, 60, 135: // options, routing, mobility
			if len(b) < 8 {
				return broken
			}
			size = 8 + int(b[1])*8
		case 51: // authentication
			if len(b) < 8 {
				return broken
			}
			size = 8 + int(b[1])*4
		case 44:
			if len(b) < 8 || missing > 0 {
				return broken
			}
			frag := binary.BigEndian.Uint16(b[2:])
			key := fragmentKey{s.src.hi, s.src.lo, s.dst.hi, s.dst.lo, binary.BigEndian.Uint32(b[4:]), 0}
			next, b = b[0], b[8:]
			if frag&0xfff9 != 0 {
				l.fragmented = true
				if b = l.fragments.add(key, b, int(frag&0xfff8), frag&1 != 0); b == nil {
					return notTCP
				}
			}
			continue
		default:
			return l.transport(next, b, missing, s)
		}
		if len(b) < size {
			return broken
		}
		next, b = b[0], b[size:]
	}
}

func (l *unwrapper) transport(proto byte, b []byte, missing int, s *segment) verdict {
	if proto == protoTCP {
		return s.tcp(b, missing)
	}
	ether, inner, ok := tunnel(proto, b)
	if l.tunnels++; !ok || l.tunnels > maxTunnels {
		return notTCP
	}
	return l.network(ether, inner, s)
}

// tunnel removes the header of a packet that contains another packet.
func tunnel(proto byte, b []byte) (ether uint16, inner []byte, ok bool) {
	switch proto {
	case protoIPv4, protoIPv6:
		return 0, b, true
	case protoUDP:
		if len(b) < 16 || binary.BigEndian.Uint16(b[2:]) != portVXLAN || b[8]&0x08 == 0 {
			return 0, nil, false
		}
		return ethernetHeader(b[16:])
	case protoGRE:
		if len(b) < 4 || b[1]&7 != 0 {
			return 0, nil, false
		}
		size := 4
		for _, bit := range [...]byte{0x80, 0x20, 0x10} { // checksum, key, sequence number
			if b[0]&bit != 0 {
				size += 4
			}
		}
		if len(b) < size {
			return 0, nil, false
		}
		if ether = binary.BigEndian.Uint16(b[2:]); ether == etherTEB {
			return ethernetHeader(b[size:])
		}
		return tags(ether, b[size:])
	}
	return 0, nil, false
}

// tcp parses the TCP header. It ignores checksums, which are wrong in packets that were captured before the
// network card computed them.
func (s *segment) tcp(b []byte, missing int) verdict {
	if len(b) < 20 {
		return broken
	}
	head := int(b[12]>>4) * 4
	if head < 20 || len(b)+missing < head {
		return broken
	}
	s.src.port, s.dst.port = binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:])
	s.seq, s.ack = binary.BigEndian.Uint32(b[4:]), binary.BigEndian.Uint32(b[8:])
	s.flags = b[13]
	if s.missing = missing; len(b) < head { // truncated in the options
		s.missing -= head - len(b)
		head = len(b)
	}
	s.data = b[head:]
	return isSegment
}
