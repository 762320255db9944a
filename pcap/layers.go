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

	path, network uint64 // of the [unwrapper]
	frame         int
	at            int64
}

// verdict is the result of parsing a packet.
type verdict uint8

const (
	isSegment verdict = iota
	notTCP            // another protocol, or a fragment that waits for others
	broken            // headers that are inconsistent or truncated
	foreign           // a header that is not understood, and that TCP may follow
)

// maxTunnels limits the nesting depth of packets in packets.
const maxTunnels = 4

// unwrapper parses packets. It keeps the fragments of incomplete IP packets.
type unwrapper struct {
	fragments  fragments
	fragmented bool // the packet was a fragment; the caller resets it
	tunnels    int
	unknown    header // of the last packet that is foreign

	// Numbers in the headers around the IP packet. Equal addresses in different networks belong to different machines.
	path    uint64 // hash of all numbers; it may depend on the direction. 0: there are none
	network uint64 // hash of the numbers of virtual networks, which are equal in both directions
}

// segment finds the TCP segment in a packet. s.data aliases p.Data, or the memory of fragments, until the next
// call.
func (l *unwrapper) segment(p *Packet, s *segment) verdict {
	l.tunnels, l.path, l.network, l.unknown = 0, 0, 0, header{}
	s.frame, s.at = p.Number, p.At
	ether, b, ok := l.link(p.Link, p.Data)
	v := broken
	if ok {
		v = l.packet(ether, b, s)
	}
	if v == broken && l.unknown.layer != "" {
		v = foreign
	}
	s.path, s.network = l.path, l.network
	return v
}

// is records a number in a header around an IP packet: the ID of a virtual network, or of a tunnel.
func (l *unwrapper) is(kind uint64, id uint64, network bool) {
	l.path = mix(l.path, kind, id)
	if network {
		l.network = mix(l.network, kind, id)
	}
}

// mix adds a number to a hash, which is not 0 then.
func mix(h, kind, id uint64) uint64 {
	h = (h ^ kind ^ id<<8) * 0x9e3779b97f4a7c15
	return h ^ h>>29 | 1
}

// packet parses what follows a header with an EtherType.
func (l *unwrapper) packet(ether uint16, b []byte, s *segment) verdict {
	for len(b) > 0 {
		switch version := b[0] >> 4; {
		case version == 4 && (ether == etherIPv4 || ether == 0):
			return l.ipv4(b, s)
		case version == 6 && (ether == etherIPv6 || ether == 0):
			return l.ipv6(b, s)
		case ether == etherIPv4 || ether == etherIPv6 || ether == 0:
			return broken
		}
		inner, rest, ok := l.inner(ether, b)
		switch {
		case !ok:
			return broken
		case inner == control:
			return notTCP
		}
		ether, b = inner, rest
	}
	return broken
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
		key := fragmentKey{l.path, s.src.hi, s.src.lo, s.dst.hi, s.dst.lo, uint32(binary.BigEndian.Uint16(b[4:])), b[9]}
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
			key := fragmentKey{l.path, s.src.hi, s.src.lo, s.dst.hi, s.dst.lo, binary.BigEndian.Uint32(b[4:]), 0}
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
	ether, inner, ok := l.tunnel(proto, b, s)
	switch {
	case !ok:
		return broken
	case ether == control:
		return notTCP
	}
	if l.tunnels++; l.tunnels > maxTunnels {
		l.notUnderstood("nesting depth", uint32(l.tunnels))
		return broken
	}
	return l.packet(ether, inner, s)
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
