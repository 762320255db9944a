package gearman

import (
	"encoding/binary"

	"jobwire/codec"
)

var recognition = codec.Recognition{
	Begins:    begins,
	Next:      func(from codec.Side, b, _ []byte) int { return codec.NextMagic(b, magics[from]) },
	Magic:     true,
	Pairing:   []codec.RuleID{RuleAdminAsked, RuleAdminReply, RuleAdminPending, RuleAdminCommand},
	Dependent: []codec.RuleID{RuleAdminArgs},
}

var magics = [2]string{codec.Peer: "\x00REQ", codec.Server: "\x00RES"}

// begins recognizes the header of a packet, or an administrative command. It recognizes no reply to a command
// on a new connection, because such replies look like those of other protocols. A new connection may use
// unknown packet types up to a maximum number. The size of a packet of a known type on a new connection may be
// illegal.
func begins(from codec.Side, b, _ []byte, resumed bool) codec.Match {
	if b[0] != 0 {
		if from == codec.Server && !resumed {
			return codec.NoMatch
		}
		return codec.BeginsLine(types, from, b, "\n")
	}
	if n := min(len(b), 4); string(b[:n]) != magics[from][:n] {
		return codec.NoMatch
	}
	if len(b) < headerSize {
		return codec.MayMatch
	}
	code, size := binary.BigEndian.Uint32(b[4:]), binary.BigEndian.Uint32(b[8:])
	known := code <= maxCode && byCode[code] != nil && byCode[code].Sends(from)
	if known && !resumed || code <= 1000 && size <= 1<<30 && (known || !resumed) {
		return codec.Matches
	}
	return codec.NoMatch
}
