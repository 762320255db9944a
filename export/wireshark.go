// Package export writes what jobwire knows of a protocol in the formats of other programs. [Wireshark] writes a
// dissector for Wireshark and tshark, and [Dictionary] writes a dictionary for AFL++ and libFuzzer. A [Conversation] is
// an input for these fuzzers or for AFLNet. All of them are derived from the message types of the protocol.
package export

import (
	"embed"
	"fmt"
	"io"
	"strings"

	"jobwire/codec"
	"jobwire/internal/version"
)

//go:embed lua/*.lua
var sources embed.FS

// Wireshark writes a dissector for Wireshark and tshark in Lua: the contract as a table, and the code that reads it.
// The code is the same for all protocols that have the same kinds of framing. It returns an error if the protocol
// declares no framing, or if w returns one.
func Wireshark(w io.Writer, p *codec.Protocol) error {
	files := parts(p)
	if len(files) == 0 {
		return fmt.Errorf("%s: the contract does not declare where messages end (codec.Protocol.Framing)", p.Name)
	}
	var b strings.Builder
	name := "jobwire." + p.Name
	fmt.Fprintf(&b, header, p.Title, version.Get(), name, p.DefaultPort)
	b.WriteString("local P = ")
	appendLua(&b, describe(p, name), 0)
	b.WriteString("\n")
	for _, f := range files {
		code, err := sources.ReadFile("lua/" + f + ".lua")
		if err != nil {
			return err
		}
		b.WriteString("\n")
		b.Write(code)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// parts lists the Lua files that a protocol needs, in the order of their dependencies.
func parts(p *codec.Protocol) []string {
	var framing []string
	fr := &p.Framing
	if fr.Header != nil {
		framing = append(framing, "header")
	}
	if fr.Lines != nil {
		framing = append(framing, "yaml", "lines")
	}
	if fr.Values != nil {
		framing = append(framing, "values", "forms", "shellwords", "requests")
	}
	if framing == nil {
		return nil
	}
	return append(append([]string{"fields"}, framing...), "replies", "dissector")
}

const header = `-- Wireshark dissector for %[1]s, written by "jobwire export wireshark" (jobwire %[2]s).
--
-- It is named %[3]s, because Wireshark may have a dissector of its own for this protocol or port. When the script is
-- loaded, %[3]s is the dissector for TCP port %[4]d. For another port, choose it with "Decode As" in Wireshark, or:
--
--     tshark -X lua_script:FILE -d tcp.port==PORT,%[3]s -r CAPTURE
--
-- To load the script always, put it into the folder of personal Lua plugins (Help, About Wireshark, Folders).
-- Wireshark 4.0 or later is required.

`
