package pcap

import (
	"encoding/binary"
	"io"
	"math/bits"
)

// The block types of pcapng that are read. All other blocks are skipped.
const (
	blockSection   = 0x0a0d0d0a
	blockInterface = 1
	blockObsolete  = 2 // a packet, as written by older programs
	blockSimple    = 3 // a packet without a time
	blockPacket    = 6
	blockSecrets   = 10

	secretsTLS = 0x544c534b // a key log, in a block of secrets

	blockFrame = 12 // type, length, and the length again
)

// Options of an interface.
const (
	optionEnd        = 0
	optionResolution = 9
	optionOffset     = 14
)

// iface is an interface of a pcapng section.
type iface struct {
	link   uint32
	snap   uint32
	num    uint64 // the unit of its clock is num/den nanoseconds
	den    uint64
	digits byte  // decimal digits of a second that express the unit, at most 9
	offset int64 // nanoseconds to add to each time
}

// nextBlock reads blocks up to the next packet.
func (f *File) nextBlock(p *Packet) error {
	for {
		b, err := f.peek(blockFrame)
		if err != nil {
			return err
		}
		if len(b) == 0 {
			return io.EOF
		}
		if len(b) < blockFrame {
			return f.errorf(0, nil, "the file is truncated in a block header")
		}
		kind := f.u32(b)
		if kind == blockSection {
			if err := f.byteOrder(b); err != nil {
				return err
			}
		}
		size := f.u32(b[4:])
		if size < blockFrame || size%4 != 0 {
			return f.errorf(4, nil, "a block has an invalid size of %d bytes; the file is corrupt", size)
		}
		read := readers[kind]
		if read == nil || kind == blockSection {
			if kind == blockSection {
				f.ifs = f.ifs[:0]
			}
			if err := f.skip(int64(size)); err != nil {
				return err
			}
			continue
		}
		if size > maxPacket {
			return f.errorf(4, nil, "a block has an invalid size of %d bytes; the file is corrupt", size)
		}
		if b, err = f.peek(int(size)); err != nil {
			return err
		}
		if len(b) < int(size) {
			return f.errorf(0, nil, "the file is truncated after packet %d: expected a block of %d bytes, got %d", f.count, size,
				len(b))
		}
		if again := f.u32(b[size-4:]); again != size {
			return f.errorf(int64(size)-4, nil, "a block has two sizes: %d bytes at its start, %d at its end; the file is corrupt", size, again)
		}
		found, bad := read(f, b[8:size-4], p)
		if bad != "" {
			return f.errorf(0, nil, "%s", bad)
		}
		f.take(int(size))
		if found {
			return nil
		}
	}
}

// byteOrder sets the byte order of a section.
func (f *File) byteOrder(b []byte) error {
	switch string(b[8:12]) {
	case "\x4d\x3c\x2b\x1a":
		f.setOrder(binary.LittleEndian)
	case "\x1a\x2b\x3c\x4d":
		f.setOrder(binary.BigEndian)
	default:
		return f.errorf(8, nil, "invalid byte-order magic % x; the file is corrupt", b[8:12])
	}
	return nil
}

// readers decode the bodies of blocks by type. They report whether the block contains a packet, or return a
// description of the error.
var readers = map[uint32]func(f *File, b []byte, p *Packet) (found bool, bad string){
	blockSection:   nil,
	blockInterface: (*File).readInterface,
	blockObsolete:  func(f *File, b []byte, p *Packet) (bool, string) { return f.readPacket(b, p, true) },
	blockSimple:    (*File).readSimple,
	blockPacket:    func(f *File, b []byte, p *Packet) (bool, string) { return f.readPacket(b, p, false) },
	blockSecrets:   (*File).readSecrets,
}

// readSecrets keeps a TLS key log for the next packet. It ignores other secrets, and a block whose sizes do not fit.
func (f *File) readSecrets(b []byte, p *Packet) (bool, string) {
	if len(b) >= 8 && f.u32(b) == secretsTLS && int64(f.u32(b[4:])) <= int64(len(b)-8) {
		p.Secrets = append(append(p.Secrets, b[8:8+f.u32(b[4:])]...), '\n')
	}
	return false, ""
}

// readInterface reads an interface description block of a pcapng file: the link type, the maximum packet length, and
// the resolution and offset of timestamps.
func (f *File) readInterface(b []byte, _ *Packet) (bool, string) {
	if len(b) < 8 {
		return false, "an interface description block is too short; the file is corrupt"
	}
	i := iface{link: uint32(f.order.Uint16(b)), snap: f.u32(b[4:]), num: 1000, den: 1, digits: 6}
	for b = b[8:]; len(b) >= 4; {
		code, n := f.order.Uint16(b), int(f.order.Uint16(b[2:]))
		padded := (n + 3) &^ 3
		if code == optionEnd || 4+padded > len(b) {
			break
		}
		v := b[4 : 4+n]
		switch {
		case code == optionResolution && n == 1:
			i.num, i.den = resolution(v[0])
			i.digits = min(v[0], nanoDigits) // also of powers of two
		case code == optionOffset && n == 8:
			i.offset = int64(f.order.Uint64(v)) * 1e9
		}
		b = b[4+padded:]
	}
	f.ifs = append(f.ifs, i)
	return false, ""
}

// resolution returns the unit of a clock in nanoseconds as a fraction. v is a negative power of ten, or of two
// if its highest bit is set.
func resolution(v byte) (num, den uint64) {
	num, den = 1e9, 1
	if v&0x80 != 0 {
		return num, 1 << min(v&0x7f, 63)
	}
	for range min(v, 9) {
		num /= 10
	}
	for i := byte(9); i < min(v, 19); i++ {
		den *= 10
	}
	return num, den
}

// time converts a timestamp to nanoseconds.
func (i *iface) time(hi, lo uint32) int64 {
	t := uint64(hi)<<32 | uint64(lo)
	h, l := bits.Mul64(t, i.num)
	if h >= i.den {
		return 0 // not a valid date
	}
	ns, _ := bits.Div64(h, l, i.den)
	return int64(ns) + i.offset
}

const (
	noInterface = "a packet names an interface without a description block; the file is corrupt"
	shortBlock  = "a packet is longer than its block; the file is corrupt"
)

// readPacket reads a packet with a time. In an obsolete block, the number of the interface has 16 bits instead of 32.
func (f *File) readPacket(b []byte, p *Packet, obsolete bool) (bool, string) {
	if len(b) < 20 {
		return false, shortBlock
	}
	id, head, data := f.u32(b), b[4:], b[20:]
	if obsolete {
		id = uint32(f.order.Uint16(b))
	}
	if int64(id) >= int64(len(f.ifs)) {
		return false, noInterface
	}
	i := &f.ifs[id]
	size := f.u32(head[8:])
	if int64(size) > int64(len(data)) {
		return false, shortBlock
	}
	p.At, p.Digits, p.Link = i.time(f.u32(head), f.u32(head[4:])), i.digits, i.link
	p.Data, p.Length = data[:size:size], max(int(f.u32(head[12:])), int(size))
	return true, ""
}

// readSimple reads a simple packet block of a pcapng file, which belongs to the first interface and has no timestamp.
func (f *File) readSimple(b []byte, p *Packet) (bool, string) {
	if len(f.ifs) == 0 {
		return false, noInterface
	}
	if len(b) < 4 {
		return false, shortBlock
	}
	i, length := &f.ifs[0], f.u32(b)
	size := min(int64(length), int64(len(b)-4))
	if i.snap > 0 {
		size = min(size, int64(i.snap))
	}
	// The block has no time; p.At stays that of the previous packet.
	p.Digits, p.Link, p.Data, p.Length = i.digits, i.link, b[4:4+size:4+size], max(int(length), int(size))
	return true, ""
}
