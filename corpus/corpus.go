// Package corpus holds jobwire's vectors and recorded conversations: transcripts,
// a folder a protocol.
package corpus

import "embed"

// FS holds a folder for each protocol, with its files:
//
//	example.wire  the document's own example, where it has one
//	accept.wire   a vector for every message type, byte for byte
//	reject.wire   a vector for every way to break a rule of the codec
//
// The Danga draft describes two conversations without their bytes: best.wire and
// worst.wire.
//
//go:embed beanstalk danga gearman gearmonkey
var FS embed.FS
