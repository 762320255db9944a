package headers

import "encoding/binary"

// Numbers of link types, EtherTypes, IP protocols and ports. Numbers that occur once are where they occur.
const (
	linkEthernet = 1
	linkPKTAP    = 258

	etherIPv4     = 0x0800
	etherIPv6     = 0x86dd
	etherVLAN     = 0x8100
	etherEthernet = 0x6558 // Ethernet in another protocol
	etherPPP      = 0x880b
	etherMPLS     = 0x8847
	etherMirror   = 0x88be // ERSPAN I and II
	maxLength     = 1500   // up to here, the number is the length of an LLC packet instead of an EtherType
	control       = 0x05dd // no EtherType: a packet that cannot contain TCP

	protoTCP  = 6
	protoIPv4 = 4
	protoIPv6 = 41
	protoGRE  = 47
)

// Names of the layers whose numbers users know.
const (
	linkType  = "link type"
	etherType = "EtherType"
)

// notUnderstood ends the parsing of a packet at a header.
func (p *Parser) notUnderstood(layer string, number uint32) (uint16, []byte, bool) {
	p.Unknown = Header{layer, number}
	return 0, nil, false
}

// after removes a header of n bytes, after which a packet of an EtherType follows. 0 means that it is IP, whose version
// decides.
func after(n int, ether uint16, b []byte) (uint16, []byte, bool) {
	if len(b) < n {
		return 0, nil, false
	}
	return ether, b[n:], true
}

// named is like after. The EtherType is in the header, at an offset.
func named(n, at int, b []byte) (uint16, []byte, bool) {
	if len(b) < n {
		return 0, nil, false
	}
	return binary.BigEndian.Uint16(b[at:]), b[n:], true
}

// link removes a link header.
func (p *Parser) link(number uint32, b []byte) (ether uint16, rest []byte, ok bool) {
	switch number {
	case linkEthernet:
		return named(14, 12, b)
	case 0, 108: // the address family may be in the byte order of the capturing machine
		return after(4, 0, b)
	case 12, 14, 101, 228, 229:
		return 0, b, true
	case 9, 50:
		return p.ppp(b)
	case 51: // PPPoE
		return p.inner(0x8864, b)
	case 100: // ATM
		return llc(b)
	case 104: // C-HDLC
		return named(4, 2, b)
	case 109: // ENC
		return after(12, 0, b)
	case 113: // Linux's "cooked" capture
		return named(16, 14, b)
	case 276:
		return named(20, 0, b)
	case 117: // PFLOG
		if len(b) == 0 {
			return 0, nil, false
		}
		return after((int(b[0])+3)&^3, 0, b)
	case 219:
		return p.mpls(b)
	case 239:
		return nflog(b)
	case linkPKTAP:
		if len(b) < 12 || int64(len(b)) < int64(binary.LittleEndian.Uint32(b)) {
			return 0, nil, false
		}
		inner := binary.LittleEndian.Uint32(b[8:])
		if inner == linkPKTAP {
			return 0, nil, false
		}
		return p.link(inner, b[binary.LittleEndian.Uint32(b):])
	}
	return p.notUnderstood(linkType, number)
}

// nflog finds the packet in a message of Linux's netfilter log, which is a list of attributes. Their lengths and
// types are in the byte order of the capturing machine; all types are below 256.
func nflog(b []byte) (ether uint16, rest []byte, ok bool) {
	for b = b[min(4, len(b)):]; len(b) >= 4; {
		var order binary.ByteOrder = binary.LittleEndian
		if b[3] != 0 {
			order = binary.BigEndian
		}
		size := int(order.Uint16(b))
		if size < 4 || size > len(b) {
			return 0, nil, false
		}
		switch value := b[4:size]; order.Uint16(b[2:]) {
		case 1: // the EtherType, or 0
			if len(value) >= 2 {
				ether = binary.BigEndian.Uint16(value)
			}
		case 9:
			return ether, value, true
		}
		b = b[min((size+3)&^3, len(b)):]
	}
	return 0, nil, false
}

// inner removes the header after an EtherType other than those of IP.
func (p *Parser) inner(ether uint16, b []byte) (next uint16, rest []byte, ok bool) {
	switch ether {
	case etherVLAN, 0x88a8, 0x9100, 0x9200:
		if len(b) < 4 {
			return 0, nil, false
		}
		if id := binary.BigEndian.Uint16(b) & 0xfff; id != 0 { // 0 is a priority without a VLAN
			p.is('v', uint64(id), true)
		}
		return named(4, 2, b)
	case etherEthernet:
		return named(14, 12, b)
	case 0x8864: // PPPoE session
		if len(b) < 6 {
			return 0, nil, false
		}
		p.is('p', uint64(binary.BigEndian.Uint16(b[2:])), false)
		return p.ppp(b[6:])
	case etherPPP:
		return p.ppp(b)
	case etherMPLS, 0x8848:
		return p.mpls(b)
	case 0x88e7: // provider backbone bridge
		if len(b) < 4 {
			return 0, nil, false
		}
		p.is('b', uint64(binary.BigEndian.Uint32(b)&0xffffff), true)
		return after(4, etherEthernet, b)
	case 0x8926: // VN-Tag
		return named(6, 4, b)
	case etherMirror:
		return after(8, etherEthernet, b)
	case 0x22eb: // ERSPAN III
		if len(b) < 12 {
			return 0, nil, false
		}
		return after(12+int(b[11]&1)*8, etherEthernet, b)
	// ARP, wake on LAN, RARP, slow protocols, PPPoE discovery, 802.1X, PROFINET, EtherCAT, LLDP, MRP, PTP, CFM,
	// loopback
	case 0x0806, 0x0842, 0x8035, 0x8809, 0x8863, 0x888e, 0x8892, 0x88a4, 0x88cc, 0x88e3, 0x88f7, 0x8902, 0x9000:
		return control, nil, true
	}
	if ether <= maxLength {
		return llc(b)
	}
	return p.notUnderstood(etherType, uint32(ether))
}

// llc removes a header of IEEE 802.2. Only SNAP and IP may contain TCP.
func llc(b []byte) (ether uint16, rest []byte, ok bool) {
	switch {
	case len(b) < 3:
		return 0, nil, false
	case b[0] == 6:
		return after(3, etherIPv4, b)
	case b[0] != 0xaa || len(b) >= 6 && (b[3] != 0 || b[4] != 0 || b[5] != 0 && b[5] != 0xf8):
		return control, nil, true
	}
	return named(8, 6, b)
}

// ppp removes a header of PPP. Numbers below 0x4000 are those of network protocols.
func (p *Parser) ppp(b []byte) (ether uint16, rest []byte, ok bool) {
	if len(b) >= 2 && b[0] == 0xff && b[1] == 3 { // HDLC
		b = b[2:]
	}
	if len(b) < 2 {
		return 0, nil, false
	}
	number, size := uint32(b[0]), 1
	if number&1 == 0 { // not compressed
		number, size = number<<8|uint32(b[1]), 2
	}
	switch {
	case number == 0x21:
		return after(size, etherIPv4, b)
	case number == 0x57:
		return after(size, etherIPv6, b)
	case number == 0x281 || number == 0x283:
		return after(size, etherMPLS, b)
	case number >= 0x4000:
		return control, nil, true
	}
	return p.notUnderstood("PPP protocol", number)
}

// mpls removes all labels. What follows has no type: IP, or Ethernet, which may be after a control word that is 0 or a
// sequence number.
func (p *Parser) mpls(b []byte) (ether uint16, rest []byte, ok bool) {
	for last := false; !last; b = b[4:] {
		if len(b) < 4 {
			return 0, nil, false
		}
		p.is('m', uint64(binary.BigEndian.Uint32(b)>>12), false)
		last = b[2]&1 != 0
	}
	switch {
	case len(b) == 0:
		return 0, nil, false
	case b[0]>>4 == 4 || b[0]>>4 == 6:
		return 0, b, true
	case b[0]>>4 == 1: // the control channel of a path
		return control, nil, true
	case b[0] == 0 && (len(b) < 14 || !likelyEther(binary.BigEndian.Uint16(b[12:]))):
		return after(4, etherEthernet, b)
	}
	return etherEthernet, b, true
}

func likelyEther(n uint16) bool { return n == etherIPv4 || n == etherIPv6 || n == etherVLAN }

// tunnel removes the header of an IP protocol other than TCP. It returns control if the packet contains no other
// packet.
func (p *Parser) tunnel(proto byte, b []byte, s *Segment) (ether uint16, inner []byte, ok bool) {
	switch proto {
	case protoIPv4, protoIPv6:
		p.is('i', s.Src.lo+s.Dst.lo, false)
		return 0, b, true
	case protoGRE:
		return p.gre(b, s)
	case 17: // UDP
		return p.udp(b)
	case 97: // EtherIP
		return after(2, etherEthernet, b)
	case 137:
		return p.mpls(b)
	case 50, 108, 115: // ESP, IPComp, L2TP
		return p.notUnderstood("IP protocol", uint32(proto))
	}
	return control, nil, true
}

// gre removes a GRE header of version 0, or 1 for PPTP, and adds its key and the addresses to the path, so that equal
// addresses in different tunnels are different connections. Source routes are not decoded.
func (p *Parser) gre(b []byte, s *Segment) (ether uint16, inner []byte, ok bool) {
	const hasChecksum, hasRoute, hasKey, hasNumber, hasAck = 0x80, 0x40, 0x20, 0x10, 0x80
	if len(b) < 4 {
		return 0, nil, false
	}
	version := b[1] & 7
	if version > 1 || b[0]&hasRoute != 0 {
		return p.notUnderstood("GRE flags", uint32(binary.BigEndian.Uint16(b)))
	}
	size, key := 4, uint64(0)
	if b[0]&hasChecksum != 0 {
		size += 4
	}
	if b[0]&hasKey != 0 {
		if size += 4; len(b) < size {
			return 0, nil, false
		}
		if key = uint64(binary.BigEndian.Uint32(b[size-4:])) + 1; version == 1 { // PPTP: a length and the ID of the call
			key = key & 0xffff
		}
	}
	if b[0]&hasNumber != 0 {
		size += 4
	}
	if version == 1 && b[1]&hasAck != 0 {
		size += 4
	}
	ether = binary.BigEndian.Uint16(b[2:])
	switch {
	case ether == etherMirror && b[0]&hasNumber == 0:
		ether = etherEthernet // ERSPAN I has no header
	case ether != etherMirror && ether != 0x22eb:
		p.is('g', key+s.Src.lo+s.Dst.lo, false)
	}
	return after(size, ether, b)
}

// udp removes the headers of UDP and of a tunnel with a known port.
func (p *Parser) udp(b []byte) (ether uint16, inner []byte, ok bool) {
	if len(b) < 16 {
		return control, nil, true
	}
	port, b := binary.BigEndian.Uint16(b[2:]), b[8:]
	switch {
	case (port == 4789 || port == 8472) && b[0]&8 != 0: // VXLAN
		p.is('x', uint64(binary.BigEndian.Uint32(b[4:])>>8), true)
		return after(8, etherEthernet, b)
	case port == 6081 && b[0]>>6 == 0: // GENEVE
		p.is('x', uint64(binary.BigEndian.Uint32(b[4:])>>8), true)
		return named(8+int(b[0]&0x3f)*4, 2, b)
	case port == 6635:
		return p.mpls(b)
	case port == 2152 && b[0]>>4 == 3 && b[1] == 0xff: // GTP-U, version 1, with user data
		p.is('t', uint64(binary.BigEndian.Uint32(b[4:])), false)
		return gtp(b)
	}
	return control, nil, true
}

// gtp removes a header of GTP-U with its extensions.
func gtp(b []byte) (ether uint16, inner []byte, ok bool) {
	const anyOptional, extended = 7, 4
	size := 8
	if b[0]&anyOptional == 0 {
		return after(size, 0, b)
	}
	size += 4
	for more := b[0]&extended != 0; more && len(b) >= size && b[size-1] != 0; {
		if len(b) == size || b[size] == 0 {
			return 0, nil, false
		}
		size += int(b[size]) * 4
	}
	return after(size, 0, b)
}
