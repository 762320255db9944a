package connect

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"jobwire/catalog"
	"jobwire/cmd/internal/cli"
	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/conform"
	"jobwire/internal/textfile"
)

// ProtocolFlag adds --protocol, for commands whose argument is a file.
func ProtocolFlag(cmd *cobra.Command, name *string) {
	cmd.Flags().StringVar(name, "protocol", "", "`PROTOCOL` of the transcript (default: its @protocol line, else gearman)")
}

// ReadScripts parses the transcripts in a file, or in standard input if the name is "-". The protocol is the argument
// if it is not empty, else that of the @protocol line in the file, else Gearman.
func ReadScripts(cmd *cobra.Command, protocol, name string) (*catalog.Entry, []*transcript.Script, error) {
	src, err := readText(cmd, name, "a transcript")
	if err != nil {
		return nil, nil, cli.Usage(err)
	}
	sys, err := EntryNamed(cmp.Or(protocol, declaredProtocol(src), "gearman"))
	if err != nil {
		return nil, nil, err
	}
	scripts, err := parseScripts(sys.Protocol, name, src)
	return sys, scripts, err
}

// readText reads a text file, or standard input if the name is "-".
func readText(cmd *cobra.Command, name, kind string) ([]byte, error) {
	if name != "-" {
		return textfile.Read(name, kind)
	}
	return io.ReadAll(textfile.NewReader(cmd.InOrStdin(), kind))
}

// declaredProtocol returns the protocol in an @protocol line before the first step, or "".
func declaredProtocol(src []byte) string {
	for line := range bytes.Lines(src) {
		if rest, ok := bytes.CutPrefix(line, []byte("@protocol ")); ok {
			return string(bytes.TrimSpace(rest))
		}
		if bytes.Contains(line, []byte("->")) && line[0] != '#' {
			break
		}
	}
	return ""
}

// vectorKeys are the keys that transcripts may have in addition to those of cases. The corpus uses them.
var vectorKeys = []string{"row", "rule", "offset", "field", "fatal", "protocol"}

// parseScripts parses a file of transcripts for commands that send them. It returns an error for a transcript without
// messages and for an unknown key of an @-line.
func parseScripts(p *codec.Protocol, name string, src []byte) ([]*transcript.Script, error) {
	scripts, err := transcript.Parse(p, name, src)
	if err != nil {
		return nil, cli.Usage(err)
	}
	for _, s := range scripts {
		if len(s.Steps) == 0 {
			return nil, cli.Usage(fmt.Errorf("%s:%d: the transcript contains no messages", name, s.Line))
		}
		for _, m := range s.Meta {
			if !slices.Contains(vectorKeys, m.Key) && !slices.Contains(conform.Keys(), m.Key) {
				return nil, cli.Usage(fmt.Errorf("%s:%d:%d: unknown key @%s", name, m.Line, m.Col, m.Key))
			}
		}
	}
	return scripts, nil
}
