package pcap

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// Packet is one packet of a capture, with its link header.
type Packet struct {
	Number int    // in the file, from 1
	At     int64  // nanoseconds since 1970
	Digits byte   // resolution of At: decimal digits of a second, at most 9
	Link   uint32 // LINKTYPE_ number of the interface
	Data   []byte // what was captured; overwritten by the next packet
	Length int    // length on the wire; Data may be only the beginning

	// Secrets is a TLS key log that the file has before the packet (a decryption secrets block of pcapng), usually nil.
	Secrets []byte
}

// Source is a source of packets: a [File] or an [Input].
type Source interface {
	// Next reads the next packet into p. It returns io.EOF after the last one.
	Next(p *Packet) error

	// OnIdle sets a function that is called before each wait for the next packet that may take a long time.
	OnIdle(f func())

	// Dropped returns the number of packets that are known not to have been captured.
	Dropped() int
}

// FileError describes where and why a capture file could not be read.
type FileError struct {
	Name   string
	Offset int64 // from the start of the file, or of the decompressed data if it is compressed
	Detail string
	Err    error // the error of the operating system, or nil
}

func (e *FileError) Error() string {
	s := fmt.Sprintf("%s: byte %d: %s", e.Name, e.Offset, e.Detail)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *FileError) Unwrap() error { return e.Err }

// maxPacket limits the size of a packet, and of a pcapng block that is read as a whole.
const maxPacket = 16 << 20

// maxWindow limits the zstd window in bytes, which is kept in memory. It suffices for all files that zstd
// writes at levels up to 20 without --long.
const maxWindow = 32 << 20

// File reads a capture file: pcap in both byte orders with microseconds or nanoseconds, or pcapng. The file may
// be compressed with gzip or zstd.
type File struct {
	name   string
	in     io.Reader
	idle   func()
	buf    []byte // buf[at:end] is read and not yet consumed
	at     int
	end    int
	offset int64 // position of buf[at] in the file
	failed error // the error that every further read returns

	order  binary.ByteOrder
	little bool // order is little-endian
	next   func(*Packet) error
	count  int

	// The next fields are for pcap.
	link uint32
	fine bool // timestamps are in nanoseconds

	ifs []iface // interfaces of a pcapng file
}

// firstRead is the initial size of the buffer. The buffer grows for larger packets.
const firstRead = 256 << 10

// NewFile starts to read a capture file. The name is used in errors.
func NewFile(name string, r io.Reader) (*File, error) {
	f := &File{name: name, in: r, buf: make([]byte, firstRead)}
	f.setOrder(binary.LittleEndian)
	head, err := f.peek(4)
	if err != nil {
		return nil, err
	}
	for _, k := range packings {
		if !k.begins(head) {
			continue
		}
		packed := io.MultiReader(bytes.NewReader(bytes.Clone(f.buf[f.at:f.end])), r)
		if f.in, err = k.unpack(packed); err != nil {
			return nil, f.errorf(0, err, "corrupt %s data", k.name)
		}
		f.at, f.end = 0, 0
		if head, err = f.peek(4); err != nil {
			return nil, err
		}
		break
	}
	if len(head) < 4 {
		if len(head) == 0 {
			return nil, f.errorf(0, nil, "the file is empty")
		}
		return nil, f.errorf(0, nil, "expected a pcap or pcapng file, got %d bytes", len(head))
	}
	for _, m := range magics {
		if string(head) == m.bytes {
			f.setOrder(m.order)
			f.fine = m.fine
			f.next = f.nextClassic
			if m.ng {
				f.next = f.nextBlock
				return f, nil
			}
			return f, f.classicHeader()
		}
	}
	return nil, f.errorf(0, nil, "expected a pcap or pcapng file, got a file that begins with % x", head)
}

// packings are the supported compression formats.
var packings = []struct {
	name   string
	begins func(head []byte) bool
	unpack func(io.Reader) (io.Reader, error)
}{
	{"gzip",
		func(b []byte) bool { return bytes.HasPrefix(b, []byte{0x1f, 0x8b}) },
		func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) }},
	{"zstd",
		func(b []byte) bool {
			return string(b) == "\x28\xb5\x2f\xfd" || len(b) == 4 && b[0]&0xf0 == 0x50 && string(b[1:]) == "\x2a\x4d\x18"
		},
		func(r io.Reader) (io.Reader, error) {
			// Decompress in this goroutine, so that nothing needs to be closed.
			return zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
				zstd.WithDecoderMaxWindow(maxWindow))
		}},
}

// magics are the magic numbers of capture files.
var magics = []struct {
	bytes string
	order binary.ByteOrder
	fine  bool
	ng    bool
}{
	{bytes: "\xd4\xc3\xb2\xa1", order: binary.LittleEndian},
	{bytes: "\xa1\xb2\xc3\xd4", order: binary.BigEndian},
	{bytes: "\x4d\x3c\xb2\xa1", order: binary.LittleEndian, fine: true},
	{bytes: "\xa1\xb2\x3c\x4d", order: binary.BigEndian, fine: true},
	{bytes: "\x0a\x0d\x0d\x0a", order: binary.LittleEndian, ng: true},
}

// OnIdle sets a function that is called before each read from the file. A read may block if a program is still
// writing the file.
func (f *File) OnIdle(idle func()) { f.idle = idle }

// Dropped returns 0, because a file does not contain this number.
func (f *File) Dropped() int { return 0 }

// Next reads the next packet into p. It returns [io.EOF] after the last one, and a [*FileError] where the file
// is truncated or damaged.
func (f *File) Next(p *Packet) error {
	if f.failed != nil {
		return f.failed
	}
	p.Secrets = nil
	err := f.next(p)
	if err != nil {
		f.failed = err
		return err
	}
	f.count++
	p.Number = f.count
	return nil
}

func (f *File) errorf(ahead int64, err error, format string, args ...any) error {
	return &FileError{Name: f.name, Offset: f.offset + ahead, Err: err, Detail: fmt.Sprintf(format, args...)}
}

// peek returns the next n bytes, or fewer if the file ends before them.
func (f *File) peek(n int) ([]byte, error) {
	if f.end-f.at >= n {
		return f.buf[f.at : f.at+n], nil
	}
	if n > len(f.buf) {
		// Double the size at most, so that a wrong size in the file does not allocate much memory.
		grown := make([]byte, min(n, max(2*len(f.buf), f.end-f.at+firstRead)))
		f.end = copy(grown, f.buf[f.at:f.end])
		f.buf, f.at = grown, 0
	} else if f.at > 0 {
		f.end = copy(f.buf, f.buf[f.at:f.end])
		f.at = 0
	}
	for f.end < n {
		if f.end == len(f.buf) {
			return f.peek(n)
		}
		if f.idle != nil {
			f.idle()
		}
		k, err := f.in.Read(f.buf[f.end:])
		f.end += k
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			return f.buf[f.at:min(f.end, f.at+n)], nil
		default:
			if f.end < n {
				switch {
				case errors.Is(err, zstd.ErrWindowSizeExceeded):
					return nil, f.errorf(int64(f.end-f.at), err,
						"decompression needs more memory than jobwire allows; run: zstd -dc --long=31 FILE | jobwire decode -")
				case errors.Is(err, io.ErrUnexpectedEOF):
					return nil, f.errorf(int64(f.end-f.at), nil, "the compressed file is truncated")
				}
				return nil, f.errorf(int64(f.end-f.at), err, "read error")
			}
		}
	}
	return f.buf[f.at : f.at+n], nil
}

// take consumes n bytes that peek has returned.
func (f *File) take(n int) {
	f.at += n
	f.offset += int64(n)
}

// skip consumes n bytes without keeping them.
func (f *File) skip(n int64) error {
	for n > 0 {
		b, err := f.peek(int(min(n, firstRead)))
		if err != nil {
			return err
		}
		if len(b) == 0 {
			return f.errorf(0, nil, "the file is truncated: %d bytes are missing", n)
		}
		f.take(len(b))
		n -= int64(len(b))
	}
	return nil
}

// Sizes of the headers of pcap files and packets.
const (
	classicFile   = 24
	classicPacket = 16
)

// classicHeader reads the header of a pcap file, whose byte order and resolution are known, and sets the link type.
func (f *File) classicHeader() error {
	b, err := f.peek(classicFile)
	if err != nil {
		return err
	}
	if len(b) < classicFile {
		return f.errorf(0, nil, "the file is truncated in its header: expected %[2]d bytes, got %[1]d", len(b), classicFile)
	}
	f.link = f.order.Uint32(b[20:]) & 0xffff // the upper bits are the size of a frame check sequence, and flags
	f.take(classicFile)
	return nil
}

// nextClassic reads the next packet of a pcap file. It returns io.EOF at the end, and an error if the file is truncated
// or the size of the packet is impossible.
func (f *File) nextClassic(p *Packet) error {
	b, err := f.peek(classicPacket)
	if err != nil {
		return err
	}
	if len(b) < classicPacket {
		if len(b) == 0 {
			return io.EOF
		}
		return f.errorf(0, nil, "the file is truncated in the header of packet %d", f.count+1)
	}
	sec, frac := f.u32(b), f.u32(b[4:])
	size, length := f.u32(b[8:]), f.u32(b[12:])
	if size > maxPacket {
		return f.errorf(8, nil, "packet %d has an invalid size of %d bytes; the file is corrupt", f.count+1, size)
	}
	n := classicPacket + int(size)
	if b, err = f.peek(n); err != nil {
		return err
	}
	if len(b) < n {
		return f.errorf(0, nil, "the file is truncated in packet %d: expected %d bytes, got %d", f.count+1, n, len(b))
	}
	p.At, p.Digits = int64(sec)*1e9, 6
	if f.fine {
		p.At, p.Digits = p.At+int64(frac), nanoDigits
	} else {
		p.At += int64(frac) * 1e3
	}
	p.Link, p.Data, p.Length = f.link, b[classicPacket:n:n], max(int(length), int(size))
	f.take(n)
	return nil
}

func (f *File) setOrder(o binary.ByteOrder) { f.order, f.little = o, o == binary.LittleEndian }

// u32 reads a number in the file's byte order.
func (f *File) u32(b []byte) uint32 {
	if f.little {
		return binary.LittleEndian.Uint32(b)
	}
	return binary.BigEndian.Uint32(b)
}
