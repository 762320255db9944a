package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"jobwire/pcap"
)

// transcribe writes the conversations of a capture as transcripts. Files that are there
// already are left alone, which is an error.
func (o *decodeOptions) transcribe(cmd *cobra.Command, in *input, opts pcap.Options) error {
	if err := os.MkdirAll(o.scripts, 0o777); err != nil {
		return usage(err)
	}
	t := pcap.NewTranscripts()
	damage := pcap.NewDecoder(opts, t.Add).Decode(in)
	all, left, foreign, err := t.Write(filepath.Base(in.name), func(file string) (io.WriteCloser, error) {
		return os.OpenFile(filepath.Join(o.scripts, file), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	})
	for _, w := range all {
		note := ""
		if w.Incomplete {
			note = "; not all of it can be performed, its comments tell why"
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s: %d connections, %d steps%s\n", filepath.Join(o.scripts, w.Name), w.Connections, w.Steps, note)
	}
	complain := func(n int, what string) {
		if n > 0 {
			fmt.Fprintf(cmd.ErrOrStderr(), "jobwire: %d %s\n", n, what)
		}
	}
	complain(left, "messages were too many, and are left out: choose fewer with --filter or --port")
	complain(foreign, "connections speak no protocol that can be performed, and are left out")
	switch {
	case errors.Is(err, os.ErrExist):
		return usage(fmt.Errorf("%w: nothing is overwritten, name another directory", err))
	case err != nil:
		return usage(err)
	case damage != nil:
		return &exit{exitFellShort, damage}
	case len(all) == 0:
		return &exit{exitFellShort, fmt.Errorf("%s: there is no conversation to write", in.name)}
	}
	return nil
}
