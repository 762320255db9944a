package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"

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
	if in.name == "-" {
		in.name = "standard input"
		r = abandoned(cmd.Context(), r)
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
		return in, nil
	}
	s := &interruptible{Source: f, name: in.name}
	context.AfterFunc(cmd.Context(), func() { s.interrupted.Store(true) })
	in.Source = s
	return in, nil
}

// abandoned returns a reader that reads from r, and fails when the user interrupts the command: the next byte from r may
// take long to arrive.
func abandoned(ctx context.Context, r io.Reader) io.Reader {
	out, in := io.Pipe()
	context.AfterFunc(ctx, func() { in.CloseWithError(errors.New("interrupted")) })
	go func() {
		_, err := io.CopyBuffer(in, struct{ io.Reader }{r}, make([]byte, 256<<10))
		in.CloseWithError(err)
	}()
	return out
}

// interruptible is a file whose reading ends when the user interrupts it.
type interruptible struct {
	pcap.Source
	name        string
	interrupted atomic.Bool
}

func (s *interruptible) Next(p *pcap.Packet) error {
	if s.interrupted.Load() {
		return fmt.Errorf("%s: interrupted", s.name)
	}
	return s.Source.Next(p)
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
