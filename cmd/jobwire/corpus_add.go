package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"jobwire/cmd/internal/cli"
	"jobwire/cmd/internal/connect"
	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/codec/vectors"
	"jobwire/pcap"
	"jobwire/play"
)

type corpusAddOptions struct {
	protocol     string
	dir          string
	conversation string
}

// newCorpusAdd returns the command "corpus add", which extends the corpus in a working copy of jobwire.
func newCorpusAdd() *cobra.Command {
	o := &corpusAddOptions{}
	cmd := &cobra.Command{
		Use:   "add FILE... [flags]",
		Short: "Add test vectors from transcripts, captures and fuzzer inputs",
		Args:  cli.OneOrMore("expected at least one transcript, capture or fuzzer input, got none"),
		RunE:  o.execute,
	}
	f := cmd.Flags()
	connect.ProtocolFlag(cmd, &o.protocol)
	f.StringVar(&o.dir, "dir", "corpus", "`DIR` of the corpus in the working copy of jobwire")
	f.StringVar(&o.conversation, "conversation", "", "save the whole transcript too, as a vector with this `NAME`")
	return cmd
}

// execute adds vectors to the corpus for the messages of each file that the corpus does not contain yet, and prints one
// line for each new vector. If a part of a file cannot be read, it adds the vectors of the rest and returns the error.
func (o *corpusAddOptions) execute(cmd *cobra.Command, files []string) error {
	if o.conversation != "" && (len(files) > 1 || strings.ContainsAny(o.conversation, `/\`)) {
		return cli.Usage(fmt.Errorf("--conversation: expected a name without slashes and one transcript, got %q and %d files",
			o.conversation, len(files)))
	}
	for _, name := range files {
		src, err := os.ReadFile(name)
		if err != nil {
			return cli.Usage(err)
		}
		streams, unread := o.streams(cmd, name, src)
		for _, p := range slices.SortedFunc(maps.Keys(streams),
			func(a, b *codec.Protocol) int { return strings.Compare(a.Name, b.Name) }) {
			added, err := vectors.Add(o.dir, p, streams[p])
			if errors.Is(err, fs.ErrNotExist) {
				err = fmt.Errorf("%w: set --dir to the corpus directory of a working copy of jobwire", err)
			}
			if err != nil {
				return cli.Usage(err)
			}
			for _, v := range added {
				fmt.Fprintf(cmd.OutOrStdout(), "%s: %s: %s\n", v.File, v.Name, v.About)
			}
			if len(added) == 0 {
				fmt.Fprintf(cmd.OutOrStdout(), "%s: the corpus of %s already has vectors for all its messages\n", name, p.Title)
			}
		}
		if unread != nil {
			return unread
		}
	}
	return nil
}

// streams reads the messages of a transcript, a capture or an input of Go's fuzzer. If a capture is truncated or
// damaged, streams returns the messages before the damage and an error.
func (o *corpusAddOptions) streams(cmd *cobra.Command, name string, src []byte) (map[*codec.Protocol][]vectors.Sent,
	error) {
	if all, ok, err := vectors.ParseGoFuzz(src); ok {
		if err != nil {
			return nil, cli.Usage(fmt.Errorf("%s: %w", name, err))
		}
		sys, err := connect.EntryNamed(cmp.Or(o.protocol, "gearman"))
		if err != nil {
			return nil, err
		}
		return map[*codec.Protocol][]vectors.Sent{sys.Protocol: all}, nil
	}
	if strings.HasSuffix(name, ".wire") {
		sys, scripts, err := connect.ReadScripts(cmd, o.protocol, name)
		if err != nil {
			return nil, err
		}
		var all []vectors.Sent
		for i, s := range scripts {
			events, err := play.Encode(s, time.Unix(0, 0), false)
			if err != nil { // expected messages with wildcards cannot be encoded
				events, err = play.Encode(peersAlone(s), time.Unix(0, 0), false)
			}
			if err != nil {
				return nil, cli.Usage(err)
			}
			for _, ev := range events {
				if ev.Frame.Raw != nil {
					all = append(all, vectors.Sent{Conn: fmt.Sprint(i, ev.Actor.Name), From: ev.From, Raw: ev.Frame.Raw})
				}
			}
		}
		if o.conversation != "" {
			err = vectors.AddConversation(o.dir, sys.Protocol, o.conversation, src)
		}
		return map[*codec.Protocol][]vectors.Sent{sys.Protocol: all}, cli.Usage(err)
	}
	return o.captured(name, src)
}

// peersAlone returns a copy of a script without the steps of the server.
func peersAlone(s *transcript.Script) *transcript.Script {
	alone := *s
	alone.Steps = slices.DeleteFunc(slices.Clone(s.Steps),
		func(st transcript.Step) bool { return st.From == codec.Server })
	return &alone
}

// captured reads a capture. It leaves out the messages of a connection after missing bytes.
func (o *corpusAddOptions) captured(name string, src []byte) (map[*codec.Protocol][]vectors.Sent, error) {
	f, err := pcap.NewFile(name, bytes.NewReader(src))
	if err != nil {
		return nil, cli.Usage(fmt.Errorf("expected a transcript (.wire), a capture or an input of the Go fuzzer: %w", err))
	}
	var opts pcap.Options
	if o.protocol != "" {
		sys, err := connect.EntryNamed(o.protocol)
		if err != nil {
			return nil, err
		}
		opts.Protocol = sys.Protocol
	}
	all := map[*codec.Protocol][]vectors.Sent{}
	err = pcap.NewDecoder(opts, func(it *pcap.Item) {
		p := it.Conn.Protocol
		if p != nil && p.NewSession != nil && it.Kind <= pcap.Unread && !it.Conn.Uncertain && it.Omitted == 0 {
			all[p] = append(all[p], vectors.Sent{Conn: fmt.Sprint(it.Conn.ID), From: it.From, Raw: bytes.Clone(it.Raw)})
		}
	}).Decode(f)
	return all, cli.Failed(err)
}
