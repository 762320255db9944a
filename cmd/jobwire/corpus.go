package main

import (
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/spf13/cobra"

	"jobwire/catalog"
	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/corpus"
)

func newCorpus() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "corpus PROTOCOL [NAME...]",
		Short: "List or print the test vectors of a protocol",
	}
	onProtocolAnd(cmd, ofProtocol(vectorChoices), showCorpus)
	cmd.AddCommand(newCorpusAdd())
	return cmd
}

func showCorpus(cmd *cobra.Command, sys *catalog.Entry, selected []string) error {
	vectors, err := readVectors(sys.Protocol)
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	if len(selected) == 0 {
		return listVectors(out, vectors)
	}
	for _, name := range selected {
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
			return usage(fmt.Errorf("expected the name of a test vector of %s, got %q: to list the names, run 'jobwire corpus %s'", sys.Protocol.Title, name, sys.Protocol.Name))
		}
	}
	return nil
}

// vector is one transcript of the corpus. Its name is that of its case or, if it names no case, that of its file.
type vector struct {
	file, name string
	script     *transcript.Script
}

func readVectors(p *codec.Protocol) ([]vector, error) {
	dir := corpus.Files(p.Name)
	files, err := fs.Glob(dir, "*.wire")
	if err != nil {
		return nil, err
	}
	var all []vector
	for _, file := range files {
		src, err := fs.ReadFile(dir, file)
		if err != nil {
			return nil, err
		}
		scripts, err := transcript.Parse(p, path.Join(p.Name, file), src)
		if err != nil {
			return nil, err
		}
		base := strings.TrimSuffix(file, ".wire")
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

// print writes the bytes of the vector in the notation of transcripts. Its keys, except @case, become comments, so that
// other commands can read the output.
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
