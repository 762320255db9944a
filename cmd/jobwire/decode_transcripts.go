package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"jobwire/pcap"
	"jobwire/pcap/replay"
)

// transcribe writes the connections of a capture as transcripts. It returns an error instead of overwriting a file.
func (o *decodeOptions) transcribe(cmd *cobra.Command, in *input, opts pcap.Options) error {
	if err := os.MkdirAll(o.scripts, 0o777); err != nil {
		return usage(err)
	}
	t := replay.New()
	damage := pcap.NewDecoder(opts, t.Add).Decode(in)
	all, left, foreign, err := t.Write(filepath.Base(in.name), func(file string) (io.WriteCloser, error) {
		return os.OpenFile(filepath.Join(o.scripts, file), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	})
	for _, w := range all {
		note := ""
		if w.Incomplete {
			note = "; some messages cannot be replayed, see the comments in the file"
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s: %d connections, %d steps%s\n", filepath.Join(o.scripts, w.Name), w.Connections, w.Steps, note)
	}
	complain := func(n int, what string) {
		if n > 0 {
			fmt.Fprintf(cmd.ErrOrStderr(), "jobwire: %d %s\n", n, what)
		}
	}
	complain(left, "messages are left out, because more messages than fit in memory were captured; select fewer with --filter or --port")
	complain(foreign, "connections are left out: their protocol is unknown, or none of their messages can be replayed")
	switch {
	case errors.Is(err, os.ErrExist):
		return usage(fmt.Errorf("%w: jobwire does not overwrite transcripts; name another directory", err))
	case err != nil:
		return usage(err)
	case damage != nil:
		return &exit{exitFailed, damage}
	case len(all) == 0:
		return &exit{exitFailed, fmt.Errorf("%s: no messages that can be written as a transcript", in.name)}
	}
	return nil
}
