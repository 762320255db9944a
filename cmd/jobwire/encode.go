package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"jobwire/cmd/internal/capturefile"
	"jobwire/cmd/internal/cli"
	"jobwire/cmd/internal/connect"
	"jobwire/codec"
	"jobwire/play"
)

type encodeOptions struct {
	protocol string
	pcap     string
	output   string
	from     string
	actor    string
}

// newEncode returns the command "encode", which is the reverse of "decode": it writes the messages of a transcript as
// bytes or as a capture.
func newEncode() *cobra.Command {
	o := &encodeOptions{}
	cmd := &cobra.Command{
		Use:   "encode FILE [flags]",
		Short: "Convert a transcript to raw bytes or a capture",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("expected one file, or - for standard input, got %d arguments", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return o.execute(cmd, args[0]) },

		ValidArgsFunction: cli.FilesNamed("wire"),
	}
	f := cmd.Flags()
	connect.ProtocolFlag(cmd, &o.protocol)
	f.StringVar(&o.pcap, "pcap", "", "write a capture of all connections to `FILE` (-: standard output)")
	f.StringVarP(&o.output, "output", "o", "-", "write the raw bytes to `FILE` (-: standard output)")
	cli.ChoiceFlag(cmd, &o.from, "from", "write only bytes from this `SENDER`: peers (clients and workers), server or both",
		"peers", "server", "both")
	f.StringVar(&o.actor, "actor", "", "write only the connection of this `ACTOR`: a name of a client or worker in the transcript")
	cmd.MarkFlagsMutuallyExclusive("pcap", "output")
	cmd.MarkFlagsMutuallyExclusive("pcap", "from")
	cmd.MarkFlagsMutuallyExclusive("pcap", "actor")
	return cmd
}

// execute encodes the scripts of a file and writes a capture of all connections, or only the bytes that --from and
// --actor select. It warns about each expected message for which the transcript allows any value.
func (o *encodeOptions) execute(cmd *cobra.Command, name string) error {
	sides := map[string][]codec.Side{"peers": {codec.Peer}, "server": {codec.Server},
		"both": {codec.Peer, codec.Server}}[o.from]
	sys, scripts, err := connect.ReadScripts(cmd, o.protocol, name)
	if err != nil {
		return err
	}
	var events []play.Event
	var places []string // file and line of each event
	for _, s := range scripts {
		more, err := play.Encode(s, time.Now(), true)
		if err != nil {
			return cli.Usage(err)
		}
		for i := range s.Steps {
			if st := &s.Steps[i]; st.Choices[0].Open() {
				fmt.Fprintf(cmd.ErrOrStderr(), "jobwire: %s:%d: warning: the message allows any value; encode wrote an example value\n", s.File, st.Line)
			}
		}
		for i := range more {
			places = append(places, fmt.Sprintf("%s:%d: ", s.File, s.Steps[more[i].Step].Line))
		}
		events = append(events, more...)
	}
	if o.pcap != "" {
		return writeOutput(cmd, o.pcap, func(w io.Writer) error {
			return capturefile.Write(w, sys.Protocol, events,
				func(i int) []string { return []string{places[i] + capturefile.Described(sys.Protocol, &events[i])} })
		})
	}
	if o.actor != "" && !slices.ContainsFunc(events, func(ev play.Event) bool { return ev.Actor.Name == o.actor }) {
		return cli.Usage(fmt.Errorf("--actor: expected the name of a client or worker in the transcript, got %q", o.actor))
	}
	return writeOutput(cmd, o.output, func(w io.Writer) error {
		for i := range events {
			if ev := &events[i]; slices.Contains(sides, ev.From) && (o.actor == "" || ev.Actor.Name == o.actor) {
				if _, err := w.Write(ev.Frame.Raw); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// writeOutput calls f with a new file, or with standard output if the name is "-".
func writeOutput(cmd *cobra.Command, name string, f func(io.Writer) error) error {
	if name == "-" {
		if cli.IsTerminal(cmd.OutOrStdout()) {
			return cli.Usage(errors.New("expected a file or a pipe for raw bytes, got a terminal: redirect the output or set --output"))
		}
		return f(cli.UnescapedWriter(cmd.OutOrStdout()))
	}
	file, err := os.Create(name)
	if err != nil {
		return cli.Usage(err)
	}
	return errors.Join(f(file), file.Close())
}
