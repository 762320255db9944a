// Package corpus contains example messages and recorded conversations as transcripts, in one folder per protocol.
// accept.wire has messages of each type that a decoder must accept, reject.wire has messages that it must reject, with
// the rule and the position of the error, and the other files are whole conversations. Decoders and reference servers
// are tested with them, and the fuzzer starts from them.
package corpus

import (
	"embed"
	"io/fs"
)

// FS contains a folder for each protocol, with its files:
//
//	example.wire  the example of the specification, if it has one
//	accept.wire   a vector in byte form for every message type
//	reject.wire   a vector for every way to violate a rule of the codec
//
// The Danga draft describes two conversations without their bytes: best.wire and
// worst.wire.
//
//go:embed */*.wire
var FS embed.FS

var registered = map[string]fs.FS{}

// Register adds the files of a protocol that has no folder in FS.
func Register(protocol string, files fs.FS) { registered[protocol] = files }

// Files returns the files of a protocol.
func Files(protocol string) fs.FS {
	if files := registered[protocol]; files != nil {
		return files
	}
	files, err := fs.Sub(FS, protocol)
	if err != nil {
		panic(err) // the name of a protocol is not a path
	}
	return files
}
