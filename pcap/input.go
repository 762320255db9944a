package pcap

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"time"
)

// Input is a source that a user names: a file, standard input or an interface. It ends when its context does.
type Input struct {
	Source
	Name string // in messages

	ctx   context.Context
	close func() error
	pipe  *pipe         // standard input, or nil
	file  *os.File      // the file, or a temporary file with the packets that Next has returned, or nil
	copy  *PacketWriter // to the temporary file, or nil
	buf   *bufio.Writer // of copy
}

// OpenInput opens a capture file, or reads stdin if the name is "-". If ctx ends, Next returns an error for a file;
// standard input and a FIFO end without an error. If the file is not a capture, the first call of Next returns the
// error, so that the caller can still write a report.
func OpenInput(ctx context.Context, name string, stdin io.Reader) (*Input, error) {
	in := &Input{Name: name, ctx: ctx}
	var r io.Reader
	switch st, err := os.Stat(name); {
	case name == "-":
		in.Name, in.pipe = "standard input", newPipe(ctx, stdin)
		r = in.pipe
	case err == nil && st.Mode()&(os.ModeNamedPipe|os.ModeCharDevice) != 0:
		in.pipe = newPipe(ctx, &opener{name: name})
		r = in.pipe
	default:
		if in.file, err = os.Open(name); err != nil {
			return nil, err
		}
		r = in.file
	}
	f, err := NewFile(in.Name, r)
	if err != nil {
		f = &File{failed: err}
	}
	in.Source = f
	return in, nil
}

// OpenInterface starts to read from an interface, or from all of them if the name is "any". It requires Linux and
// CAP_NET_RAW. If ports are given, most segments of other ports are dropped.
func OpenInterface(ctx context.Context, name string, ports ...uint16) (*Input, error) {
	l, err := openLive(ctx, name, ports...)
	if err != nil {
		return nil, err
	}
	return &Input{Source: l, Name: name, ctx: ctx, close: l.Close}, nil
}

// Close closes the file or the interface.
func (in *Input) Close() error {
	if in.file != nil {
		in.file.Close()
	}
	if in.close != nil {
		return in.close()
	}
	return nil
}

// Streams reports whether the input is standard input, a FIFO or an interface, which a user ends.
func (in *Input) Streams() bool { return in.pipe != nil || in.close != nil }

// IsFile reports whether the input is the file with this name.
func (in *Input) IsFile(name string) bool {
	if in.file == nil {
		return false
	}
	read, err := in.file.Stat()
	other, oerr := os.Stat(name)
	return err == nil && oerr == nil && os.SameFile(read, other)
}

// Keep makes it possible to read the input again. It copies the packets of standard input or an interface to a
// temporary file when they are read. It must be called before Next.
func (in *Input) Keep() error {
	if in.file != nil {
		return nil
	}
	f, err := os.CreateTemp("", "jobwire-decode-*.pcapng")
	if err != nil {
		return err
	}
	os.Remove(f.Name()) // the file exists until it is closed
	in.file, in.buf = f, bufio.NewWriterSize(f, 64<<10)
	in.copy, err = NewPacketWriter(in.buf)
	return err
}

// Again returns the packets from the first one on. [Input.Keep] must have been called.
func (in *Input) Again() (Source, error) {
	if in.buf != nil {
		if err := in.buf.Flush(); err != nil {
			return nil, err
		}
	}
	if _, err := in.file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	return NewFile(in.Name, in.file)
}

// Next reads the next packet.
func (in *Input) Next(p *Packet) error {
	if in.pipe == nil && in.copy == nil && in.file != nil && in.ctx.Err() != nil {
		return fmt.Errorf("%s: interrupted", in.Name)
	}
	err := in.Source.Next(p)
	if err != nil && in.pipe != nil && in.pipe.ended {
		select {
		case <-in.ctx.Done():
			err = io.EOF // the interrupt may have cut the capture within a packet
		case <-time.After(interruptDelay):
		}
	}
	if err == nil && in.copy != nil {
		err = in.copy.Write(p)
	}
	return err
}

// pipeGrace is how long standard input is read after an interrupt. A program that writes the capture, such as tcpdump,
// is interrupted at the same time if the user presses Ctrl-C, and then writes the packets that it has buffered.
const pipeGrace = time.Second

// interruptDelay is how long an input waits for an interrupt after the end of standard input. The program that writes
// the capture may have been interrupted at the same time, and may have exited before this program is notified.
const interruptDelay = 100 * time.Millisecond

// opener opens a FIFO at the first call of Read, because the open waits for a program that writes.
type opener struct {
	name string
	file *os.File
}

// Read opens the FIFO at the first call, which waits until a program writes to it.
func (o *opener) Read(p []byte) (n int, err error) {
	if o.file == nil {
		if o.file, err = os.Open(o.name); err != nil {
			return 0, err
		}
	}
	return o.file.Read(p)
}

// pipe is standard input or a FIFO, which ends when its context does.
type pipe struct {
	*io.PipeReader
	ended bool // the reader has returned an error, or io.EOF
}

// newPipe returns a reader of r that ends when r ends or pipeGrace after ctx. A goroutine copies the data, because a
// read from standard input cannot be interrupted.
func newPipe(ctx context.Context, r io.Reader) *pipe {
	out, in := io.Pipe()
	context.AfterFunc(ctx, func() {
		time.AfterFunc(pipeGrace, func() { in.Close() })
	})
	go func() {
		_, err := io.CopyBuffer(in, struct{ io.Reader }{r}, make([]byte, 256<<10))
		in.CloseWithError(err)
	}()
	return &pipe{PipeReader: out}
}

// Read records in ended that the input has ended or failed.
func (p *pipe) Read(b []byte) (int, error) {
	n, err := p.PipeReader.Read(b)
	p.ended = p.ended || err != nil
	return n, err
}
