package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"jobwire/pcap"
	"jobwire/pcap/report"
)

// page writes the HTML report of a capture to the file of --html.
func (o *decodeOptions) page(cmd *cobra.Command, in *input, opts pcap.Options) error {
	out := io.WriteCloser(unclosed{cmd.OutOrStdout()})
	if o.html != "-" {
		file, err := os.Create(o.html)
		if err != nil {
			return usage(err)
		}
		out = file
	}
	p := report.New()
	d := pcap.NewDecoder(opts, p.Add)
	damage := d.Decode(in)
	err := p.WriteHTML(out, filepath.Base(in.name), d)
	if err = errors.Join(err, out.Close()); err != nil {
		return usage(err)
	}
	if damage != nil {
		return &exit{exitFailed, damage}
	}
	return nil
}

// unclosed is standard output with a Close method that does nothing.
type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }
