package danga

import (
	"encoding/binary"

	"jobwire/codec"
)

var recognition = codec.Recognition{
	Begins:   begins,
	Next:     func(_ codec.Side, b, first []byte) int { return codec.NextMagic(b, magicOf(first)) },
	Magic:    true,
	AnyMagic: true,
}

// magicOf returns the magic of a connection whose first message is first. It returns DefaultMagic if first is
// too short or begins with four zeros, which cannot be searched for.
func magicOf(first []byte) string {
	if len(first) < 4 || string(first[:4]) == "\x00\x00\x00\x00" {
		return DefaultMagic
	}
	return string(first[:4])
}

// begins recognizes the header of a packet that the side sends. Its size may be illegal on a new connection.
func begins(from codec.Side, b, first []byte, resumed bool) codec.Match {
	if n := min(len(b), 4); string(b[:n]) != magicOf(first)[:n] {
		return codec.NoMatch
	}
	switch {
	case len(b) < headerSize:
		return codec.MayMatch
	case int(b[4]) >= len(types) || resumed && binary.BigEndian.Uint32(b[5:]) > 1<<30 || !types[b[4]].Sends(from):
		return codec.NoMatch
	}
	return codec.Matches
}
