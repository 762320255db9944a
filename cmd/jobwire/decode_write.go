package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"jobwire/pcap"
	"jobwire/pcap/jobs"
)

// excerpt writes the packets of the selected messages. It reads the capture twice: first to find the messages, then to
// copy packets.
func (o *decodeOptions) excerpt(cmd *cobra.Command, args []string, in *input, opts pcap.Options) error {
	again, err := rereadable(args, in, o.write)
	if err != nil {
		return usage(err)
	}
	defer again.Close()
	x, selected := pcap.NewExcerpt(), 0
	add := func(it *pcap.Item) {
		selected++
		x.Add(it)
	}
	if o.job != "" {
		tracker := jobs.New()
		tracker.Trace(o.job, add)
		add = tracker.Add
	}
	d := pcap.NewDecoder(opts, add)
	damage := d.Decode(in)
	src, err := again.source()
	if err != nil {
		return errors.Join(damage, err)
	}
	packets := 0
	err = (&encodeOptions{}).write(cmd, o.write, func(w io.Writer) error {
		buf := bufio.NewWriter(w)
		var err error
		packets, err = x.Write(buf, src)
		return errors.Join(err, buf.Flush())
	})
	switch {
	case damage != nil: // x.Write has returned the same error
		return &exit{exitFailed, damage}
	case err != nil:
		return usage(err)
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "jobwire: %s: %s with %s\n", o.write, counted(packets, "packet"), counted(selected, "selected item"))
	o.noteSkipped(cmd.ErrOrStderr(), in.name, d.Stats())
	if n := x.LeftOut(); n > 0 {
		return &exit{exitFailed, fmt.Errorf("%s: %d selected items are left out, because they are on more connections than fit in memory; select fewer with --filter or --port", in.name, n)}
	}
	return o.verdict(in.name, selected, d.Stats())
}

// verdict returns the error for the exit status after a capture was decoded: no messages of the job, or violations.
func (o *decodeOptions) verdict(name string, shown int, st pcap.Stats) error {
	if o.job != "" && shown == 0 {
		return &exit{exitFailed, fmt.Errorf("%s: no message of job %s", name, o.job)}
	}
	if o.audit && st.Violations > 0 {
		return &exit{exitFailed, fmt.Errorf("%s: %d messages violate a rule", name, st.Violations)}
	}
	return nil
}

// reread is a capture that can be read a second time.
type reread struct {
	*os.File
	name string
	copy *bufio.Writer // of a temporary file that is being written, or nil
}

// rereadable returns the file of a capture, or a temporary file to which the packets of a pipe or an interface are copied
// when they are read. output is the name of the file that will be written, which must not be the capture.
func rereadable(args []string, in *input, output string) (*reread, error) {
	if len(args) > 0 && args[0] != "-" {
		f, err := os.Open(args[0])
		if err != nil {
			return nil, err
		}
		read, err := f.Stat()
		if written, werr := os.Stat(output); err == nil && werr == nil && os.SameFile(read, written) {
			err = fmt.Errorf("--write: expected another file than the capture, got %s", output)
		}
		if err != nil {
			f.Close()
			return nil, err
		}
		return &reread{File: f, name: in.name}, nil
	}
	f, err := os.CreateTemp("", "jobwire-decode-*.pcapng")
	if err != nil {
		return nil, err
	}
	os.Remove(f.Name()) // the file exists until it is closed
	r := &reread{File: f, name: in.name, copy: bufio.NewWriterSize(f, 64<<10)}
	w, err := pcap.NewPacketWriter(r.copy)
	if err != nil {
		f.Close()
		return nil, err
	}
	in.Source = &copied{in.Source, w}
	return r, nil
}

// source returns the capture from its beginning.
func (r *reread) source() (pcap.Source, error) {
	if r.copy != nil {
		if err := r.copy.Flush(); err != nil {
			return nil, err
		}
	}
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	return pcap.NewFile(r.name, r.File)
}

// copied is a source whose packets are copied to a file.
type copied struct {
	pcap.Source
	w *pcap.PacketWriter
}

func (c *copied) Next(p *pcap.Packet) error {
	if err := c.Source.Next(p); err != nil {
		return err
	}
	return c.w.Write(p)
}
