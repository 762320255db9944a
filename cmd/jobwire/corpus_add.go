package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/pcap"
	"jobwire/play"
)

type corpusAddOptions struct {
	protocol     string
	dir          string
	conversation string
}

func newCorpusAdd() *cobra.Command {
	o := &corpusAddOptions{}
	cmd := &cobra.Command{
		Use:   "add FILE... [flags]",
		Short: "Add test vectors from transcripts, captures and fuzzer inputs",
		Args:  files("expected at least one transcript, capture or fuzzer input, got none"),
		RunE:  o.execute,
	}
	f := cmd.Flags()
	protocolFlag(cmd, &o.protocol)
	f.StringVar(&o.dir, "dir", "corpus", "`DIR` of the corpus in the working copy of jobwire")
	f.StringVar(&o.conversation, "conversation", "", "save the whole transcript too, as a vector with this `NAME`")
	return cmd
}

func (o *corpusAddOptions) execute(cmd *cobra.Command, files []string) error {
	if o.conversation != "" && (len(files) > 1 || strings.ContainsAny(o.conversation, `/\`)) {
		return usage(fmt.Errorf("--conversation: expected a name without slashes and one transcript, got %q and %d files", o.conversation, len(files)))
	}
	for _, name := range files {
		src, err := os.ReadFile(name)
		if err != nil {
			return usage(err)
		}
		streams, unread := o.streams(cmd, name, src)
		for _, p := range slices.SortedFunc(maps.Keys(streams), func(a, b *codec.Protocol) int { return strings.Compare(a.Name, b.Name) }) {
			if err := o.add(cmd.OutOrStdout(), p, name, streams[p]); err != nil {
				return err
			}
		}
		if unread != nil {
			return unread
		}
	}
	return nil
}

// said has bytes that one end of a connection sent.
type said struct {
	conn string
	from codec.Side
	raw  []byte
}

// streams reads the messages of a transcript, a capture or an input of Go's fuzzer. If a capture is truncated or damaged,
// streams returns the messages before the damage and an error.
func (o *corpusAddOptions) streams(cmd *cobra.Command, name string, src []byte) (map[*codec.Protocol][]said, error) {
	if bytes.HasPrefix(src, []byte("go test fuzz v1")) {
		sys, err := entryNamed(cmp.Or(o.protocol, "gearman"))
		if err != nil {
			return nil, err
		}
		all, err := fuzzed(src)
		if err != nil {
			return nil, usage(fmt.Errorf("%s: %w", name, err))
		}
		return map[*codec.Protocol][]said{sys.Protocol: all}, nil
	}
	if strings.HasSuffix(name, ".wire") {
		sys, scripts, err := readScripts(cmd, o.protocol, name)
		if err != nil {
			return nil, err
		}
		var all []said
		for i, s := range scripts {
			events, err := play.Encode(s, time.Unix(0, 0), false)
			if err != nil { // expected messages with wildcards cannot be encoded
				events, err = play.Encode(peersAlone(s), time.Unix(0, 0), false)
			}
			if err != nil {
				return nil, usage(err)
			}
			for _, ev := range events {
				if ev.Frame.Raw != nil {
					all = append(all, said{fmt.Sprint(i, ev.Actor.Name), ev.From, ev.Frame.Raw})
				}
			}
		}
		return map[*codec.Protocol][]said{sys.Protocol: all}, o.keep(sys.Protocol, src)
	}
	return o.captured(name, src)
}

// peersAlone returns a copy of a script without the steps of the server.
func peersAlone(s *transcript.Script) *transcript.Script {
	alone := *s
	alone.Steps = slices.DeleteFunc(slices.Clone(s.Steps), func(st transcript.Step) bool { return st.From == codec.Server })
	return &alone
}

// keep saves a transcript under the name of --conversation, if this is set.
func (o *corpusAddOptions) keep(p *codec.Protocol, src []byte) error {
	if o.conversation == "" {
		return nil
	}
	file := filepath.Join(o.dir, p.Name, o.conversation+".wire")
	if old, err := os.ReadFile(file); err == nil {
		if bytes.Equal(old, src) {
			return nil
		}
		return usage(fmt.Errorf("%s: the file exists and its contents differ: choose another name for --conversation", file))
	}
	return usage(os.WriteFile(file, src, 0o666))
}

// captured reads a capture. It leaves out the messages of a connection after missing bytes.
func (o *corpusAddOptions) captured(name string, src []byte) (map[*codec.Protocol][]said, error) {
	f, err := pcap.NewFile(name, bytes.NewReader(src))
	if err != nil {
		return nil, usage(fmt.Errorf("expected a transcript (.wire), a capture or an input of the Go fuzzer: %w", err))
	}
	var opts pcap.Options
	if o.protocol != "" {
		sys, err := entryNamed(o.protocol)
		if err != nil {
			return nil, err
		}
		opts.Protocol = sys.Protocol
	}
	all := map[*codec.Protocol][]said{}
	err = pcap.NewDecoder(opts, func(it *pcap.Item) {
		p := it.Conn.Protocol
		if p != nil && p.NewSession != nil && it.Kind <= pcap.Unread && !it.Conn.Uncertain {
			all[p] = append(all[p], said{fmt.Sprint(it.Conn.ID), it.From, bytes.Clone(it.Raw)})
		}
	}).Decode(f)
	if err != nil {
		return all, &exit{exitFailed, err}
	}
	return all, nil
}

// fuzzed reads an input of Go's fuzzer: one []byte, which the peer sent, or two, which the peer and the server sent.
func fuzzed(src []byte) ([]said, error) {
	var all []said
	for line := range strings.Lines(string(src)) {
		quoted, ok := strings.CutPrefix(strings.TrimSpace(line), "[]byte(")
		if !ok {
			continue
		}
		text, err := strconv.Unquote(strings.TrimSuffix(quoted, ")"))
		if err != nil {
			return nil, fmt.Errorf("[]byte(%s: %w", quoted, err)
		}
		all = append(all, said{"", codec.Side(len(all)), []byte(text)})
	}
	if n := len(all); n < 1 || n > 2 {
		return nil, fmt.Errorf("expected one []byte (sent by a client or worker) or two (sent by both ends), got %d", n)
	}
	return all, nil
}

// add appends a vector to the corpus of a protocol for each message whose shape the corpus lacks, and lists these vectors.
func (o *corpusAddOptions) add(w io.Writer, p *codec.Protocol, source string, all []said) error {
	have := vectorSet{protocol: p, shapes: map[string]bool{}, names: map[string]bool{}}
	files := map[string]string{accepted: filepath.Join(o.dir, p.Name, accepted+".wire"), refused: filepath.Join(o.dir, p.Name, refused+".wire")}
	for kind, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			return usage(fmt.Errorf("%w: set --dir to the corpus directory of a working copy of jobwire", err))
		}
		scripts, err := transcript.Parse(p, file, src)
		if err != nil {
			return usage(err)
		}
		for _, s := range scripts {
			have.know(kind, s)
		}
	}
	fresh := have.vectors(all)
	for _, v := range fresh {
		file := files[v.kind]
		out, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			return usage(err)
		}
		_, err = fmt.Fprintf(out, "\n%s", v.text)
		if err = errors.Join(err, out.Close()); err != nil {
			return usage(err)
		}
		fmt.Fprintf(w, "%s: %s: %s\n", file, v.name, v.what)
	}
	if len(fresh) == 0 {
		fmt.Fprintf(w, "%s: the corpus of %s already has vectors for all its messages\n", source, p.Title)
	}
	return nil
}
