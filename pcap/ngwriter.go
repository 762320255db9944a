package pcap

import (
	"encoding/binary"
	"fmt"
	"io"
	"runtime"
	"strings"

	"jobwire/internal/version"
)

// Options of blocks that are written, in addition to those that are read.
const (
	optionComment     = 1
	optionHardware    = 2 // of a section
	optionSystem      = 3
	optionApplication = 4

	maxText  = (1<<16 - 1) / 3 // bytes of a text: each may be replaced by 3 bytes, and an option has at most 65535
	maxLinks = 1 << 16         // link types: the format has 16 bits for them
)

// nanoDigits is the number of decimal digits of a second in the times of packets, which are in nanoseconds.
const nanoDigits = 9

// PacketWriter writes packets as a pcapng file in little-endian byte order. The packets may have several link
// types and resolutions of time; each combination is an interface of the file. It has its own code because
// the NgWriter of gopacket writes only times in nanoseconds.
type PacketWriter struct {
	w     io.Writer
	ifs   []written
	block []byte
}

// written identifies an interface of a file that is written.
type written struct {
	link   uint32
	digits byte
}

// NewPacketWriter writes the header of a file, which names the operating system and the version of jobwire. It
// writes one block per call of w.Write, so w should be buffered.
func NewPacketWriter(w io.Writer) (*PacketWriter, error) {
	p := &PacketWriter{w: w}
	p.begin(blockSection)
	// byte order, version 1.0, size unknown
	p.block = append(p.block, "\x4d\x3c\x2b\x1a\x01\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff"...)
	p.option(optionHardware, runtime.GOARCH)
	p.option(optionSystem, runtime.GOOS)
	p.option(optionApplication, "jobwire "+version.Get().String())
	p.option(optionEnd, "")
	return p, p.end()
}

// Write writes a packet with its original length, time and resolution, after its secrets, and with comments. It writes
// the first 21845 bytes of a longer comment.
func (w *PacketWriter) Write(p *Packet, comments ...string) error {
	id, err := w.of(written{p.Link, min(p.Digits, nanoDigits)})
	if err != nil {
		return err
	}
	ticks := uint64(max(p.At, 0))
	for range nanoDigits - int(w.ifs[id].digits) {
		ticks /= 10
	}
	if len(p.Secrets) > 0 {
		w.begin(blockSecrets)
		w.block = binary.LittleEndian.AppendUint32(w.block, secretsTLS)
		w.block = binary.LittleEndian.AppendUint32(w.block, uint32(len(p.Secrets)))
		w.block = append(w.block, p.Secrets...)
		w.pad()
		if err := w.end(); err != nil {
			return err
		}
	}
	w.begin(blockPacket)
	for _, v := range [...]uint32{uint32(id), uint32(ticks >> 32), uint32(ticks), uint32(len(p.Data)),
		uint32(max(p.Length, len(p.Data)))} {
		w.block = binary.LittleEndian.AppendUint32(w.block, v)
	}
	w.block = append(w.block, p.Data...)
	w.pad()
	for _, c := range comments {
		w.option(optionComment, c)
	}
	if len(comments) > 0 {
		w.option(optionEnd, "")
	}
	return w.end()
}

// of returns the number of an interface. It writes a block that describes the interface if it is new.
func (w *PacketWriter) of(i written) (int, error) {
	for id, known := range w.ifs {
		if known == i {
			return id, nil
		}
	}
	if i.link >= maxLinks {
		return 0, fmt.Errorf("pcap: link type %d cannot be written to a pcapng file: its maximum is %d", i.link, maxLinks-1)
	}
	w.begin(blockInterface)
	w.block = binary.LittleEndian.AppendUint32(w.block, i.link)
	w.block = binary.LittleEndian.AppendUint32(w.block, 0) // no limit of the captured length
	w.option(optionResolution, string([]byte{i.digits}))
	w.option(optionEnd, "")
	w.ifs = append(w.ifs, i)
	return len(w.ifs) - 1, w.end()
}

// begin starts a block. end sets its size.
func (w *PacketWriter) begin(kind uint32) {
	w.block = binary.LittleEndian.AppendUint32(w.block[:0], kind)
	w.block = append(w.block, 0, 0, 0, 0)
}

// option appends an option to the block. Bytes of a text that are not UTF-8 are replaced.
func (w *PacketWriter) option(code uint16, value string) {
	if len(value) > 1 {
		value = strings.ToValidUTF8(value[:min(len(value), maxText)], "\ufffd")
	}
	w.block = binary.LittleEndian.AppendUint16(w.block, code)
	w.block = binary.LittleEndian.AppendUint16(w.block, uint16(len(value)))
	w.block = append(w.block, value...)
	w.pad()
}

// pad appends zeros up to a multiple of 4 bytes.
func (w *PacketWriter) pad() {
	w.block = append(w.block, "\x00\x00\x00"[:-len(w.block)&3]...)
}

// end writes the block.
func (w *PacketWriter) end() error {
	size := uint32(len(w.block) + 4)
	binary.LittleEndian.PutUint32(w.block[4:], size)
	w.block = binary.LittleEndian.AppendUint32(w.block, size)
	if _, err := w.w.Write(w.block); err != nil {
		return fmt.Errorf("pcap: %w", err)
	}
	return nil
}
