package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"jobwire/pcap"
)

// input is the source of a capture: a file, standard input or an interface.
type input struct {
	pcap.Source
	name  string
	close func() error
}

// open opens the file, standard input or interface that the command line names. If a file is not a capture, the first
// call of Next returns the error, so that the command still writes its report.
func (o *decodeOptions) open(cmd *cobra.Command, args []string, ports []uint16) (*input, error) {
	if o.device != "" {
		live, err := pcap.OpenLive(cmd.Context(), o.device, ports...)
		if err != nil {
			return nil, usage(err)
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "jobwire: capturing on %s; press Ctrl-C to stop\n", o.device)
		return &input{live, o.device, live.Close}, nil
	}
	in := &input{name: args[0], close: func() error { return nil }}
	r := cmd.InOrStdin()
	var piped *pipe
	if in.name == "-" {
		in.name = "standard input"
		piped = newPipe(cmd.Context(), r)
		r = piped
	} else {
		file, err := os.Open(in.name)
		if err != nil {
			return nil, usage(err)
		}
		r, in.close = file, file.Close
	}
	f, err := pcap.NewFile(in.name, r)
	if err != nil {
		in.Source = unreadable{err: err}
	} else {
		in.Source = f
	}
	in.Source = &interruptible{Source: in.Source, ctx: cmd.Context(), name: in.name, pipe: piped}
	return in, nil
}

// pipeGrace is how long decode reads from standard input after an interrupt. A program that writes the capture, such as
// tcpdump, is interrupted at the same time if the user presses Ctrl-C, and then writes the packets that it has buffered.
const pipeGrace = time.Second

// interruptDelay is how long decode waits for an interrupt after the end of standard input. The program that writes the
// capture may have been interrupted at the same time, and may have exited before decode is notified.
const interruptDelay = 100 * time.Millisecond

// pipe is standard input, which ends when the user has interrupted the command.
type pipe struct {
	*io.PipeReader
	ended bool // the reader has returned an error, or io.EOF
}

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

func (p *pipe) Read(b []byte) (int, error) {
	n, err := p.PipeReader.Read(b)
	p.ended = p.ended || err != nil
	return n, err
}

// interruptible is a file, whose reading fails when the user interrupts the command, or standard input, which then ends.
type interruptible struct {
	pcap.Source
	ctx  context.Context
	name string
	pipe *pipe // nil for a file
}

func (s *interruptible) Next(p *pcap.Packet) error {
	if s.pipe == nil && s.ctx.Err() != nil {
		return fmt.Errorf("%s: interrupted", s.name)
	}
	err := s.Source.Next(p)
	if err == nil || s.pipe == nil || !s.pipe.ended {
		return err
	}
	select {
	case <-s.ctx.Done():
		return io.EOF // the interrupt may have cut the capture within a packet
	case <-time.After(interruptDelay):
		return err
	}
}

// unreadable is a file that is not a capture.
type unreadable struct {
	pcap.Source
	err error
}

func (u unreadable) Next(*pcap.Packet) error { return u.err }
func (u unreadable) OnIdle(func())           {}
func (u unreadable) Dropped() int            { return 0 }

// inputs checks that the command line names one file or an interface.
func (o *decodeOptions) inputs(_ *cobra.Command, args []string) error {
	switch {
	case o.device != "" && len(args) > 0:
		return errors.New("a file and --interface are mutually exclusive")
	case o.device == "" && len(args) != 1:
		return errors.New("expected one capture file, - for standard input, or --interface")
	}
	return nil
}
