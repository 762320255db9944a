package main

import (
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/spf13/cobra"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/corpus"
)

func newCorpus() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "corpus PROTOCOL [NAME...]",
		Short: "List the vectors that come with jobwire, or show some",
		Long: `corpus lists the transcripts that come with jobwire: for every message type one
that must be accepted, for every rule of the codec some that must be refused, and
recorded conversations. With names it prints them; what it prints can be played
and encoded.`,
		Example: `  jobwire corpus gearman
  jobwire corpus gearman SUBMIT_JOB
  jobwire corpus gearman example | jobwire play -
  jobwire corpus add capture.pcap`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fmt.Errorf("corpus takes a protocol: %s", strings.Join(systemNames(), ", "))
			}
			return nil
		},
		ValidArgs: systemNames(),
		RunE:      showCorpus,
	}
	cmd.AddCommand(newCorpusAdd())
	return cmd
}

func showCorpus(cmd *cobra.Command, args []string) error {
	sys, err := systemNamed(args[0])
	if err != nil {
		return err
	}
	vectors, err := readVectors(sys.protocol)
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	if len(args) == 1 {
		return listVectors(out, vectors)
	}
	for _, name := range args[1:] {
		found := false
		for _, v := range vectors {
			if v.name == name {
				found = true
				if err := v.print(out); err != nil {
					return err
				}
			}
		}
		if !found {
			return usage(fmt.Errorf("the corpus of %s has no %q; jobwire corpus %s lists what it has", sys.protocol.Title, name, sys.protocol.Name))
		}
	}
	return nil
}

// vector is one transcript of the corpus. One without a case's name goes by its file's.
type vector struct {
	file, name string
	script     *transcript.Script
}

func readVectors(p *codec.Protocol) ([]vector, error) {
	files, err := fs.Glob(corpus.FS, path.Join(p.Name, "*.wire"))
	if err != nil {
		return nil, err
	}
	var all []vector
	for _, file := range files {
		src, err := fs.ReadFile(corpus.FS, file)
		if err != nil {
			return nil, err
		}
		scripts, err := transcript.Parse(p, file, src)
		if err != nil {
			return nil, err
		}
		base := strings.TrimSuffix(path.Base(file), ".wire")
		for _, s := range scripts {
			name := s.Value("case")
			if name == "" {
				name = base
			}
			all = append(all, vector{base, name, s})
		}
	}
	return all, nil
}

func listVectors(w io.Writer, vectors []vector) error {
	file := ""
	for _, v := range vectors {
		if v.file != file {
			file = v.file
			fmt.Fprintf(w, "%s\n", file)
		}
		what := v.script.Value("rule")
		if what == "" {
			what = "1 message"
			if n := len(v.script.Steps); n > 1 {
				what = fmt.Sprintf("%d messages", n)
			}
		}
		fmt.Fprintf(w, "  %-40s %s\n", v.name, what)
	}
	return nil
}

// print writes the vector byte by byte, so that it can be parsed again, without the keys that only
// the corpus knows.
func (v *vector) print(w io.Writer) error {
	s := *v.script
	s.Meta = nil
	for _, m := range v.script.Meta {
		if m.Key != "case" {
			fmt.Fprintf(w, "# %s: %s\n", m.Key, m.Value)
		}
	}
	if len(v.script.Meta) > 1 {
		fmt.Fprintln(w)
	}
	if err := transcript.Bytes(w, &s); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w)
	return err
}
