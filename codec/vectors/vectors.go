// Package vectors reads the test vectors of the corpus, and adds vectors for messages whose shape the corpus lacks.
package vectors

import (
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/corpus"
)

// The names, without extension, of the files with one vector for each valid and each invalid message. Other files of a
// protocol have a whole conversation.
const (
	Accepted = "accept"
	Rejected = "reject"
)

// Vector is one transcript of the corpus.
type Vector struct {
	File   string // name of the file, without extension
	Name   string // ID of the case; if the transcript has none, the name of the file
	Script *transcript.Script
}

// Read returns the vectors of a protocol in the corpus of this program.
func Read(p *codec.Protocol) ([]Vector, error) {
	dir := corpus.Files(p.Name)
	files, err := fs.Glob(dir, "*.wire")
	if err != nil {
		return nil, err
	}
	var all []Vector
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
			all = append(all, Vector{base, name, s})
		}
	}
	return all, nil
}

// Rules returns the rules that the vectors of a protocol break, which are about the format of messages.
func Rules(p *codec.Protocol) (map[codec.RuleID]bool, error) {
	all, err := Read(p)
	rules := map[codec.RuleID]bool{}
	for _, v := range all {
		rules[codec.RuleID(v.Script.Value("rule"))] = true
	}
	return rules, err
}

// About returns the rule that the vector breaks, or the number of its messages.
func (v *Vector) About() string {
	if rule := v.Script.Value("rule"); rule != "" {
		return rule
	}
	if n := len(v.Script.Steps); n > 1 {
		return fmt.Sprintf("%d messages", n)
	}
	return "1 message"
}

// Write writes the bytes of the vector in the notation of transcripts. Its keys, except @case, become comments, so that
// other commands can read the output.
func (v *Vector) Write(w io.Writer) error {
	s := *v.Script
	s.Meta = nil
	for _, m := range v.Script.Meta {
		if m.Key != "case" {
			fmt.Fprintf(w, "# %s: %s\n", m.Key, m.Value)
		}
	}
	if len(v.Script.Meta) > 1 {
		fmt.Fprintln(w)
	}
	if err := transcript.Bytes(w, &s); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w)
	return err
}
