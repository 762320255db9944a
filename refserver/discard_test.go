package refserver_test

import (
	"encoding/binary"
	"testing"
	"testing/synctest"

	"jobwire/codec"
	"jobwire/codec/gearman"
	"jobwire/refserver"
	machine "jobwire/refserver/gearman"
	"jobwire/refserver/internal/peertest"
)

// earlySession rejects a packet of more than 100 bytes when it has decoded the header, and returns the length of the whole packet, as
// sessions do of protocols whose messages announce the length of a body.
type earlySession struct{ codec.Session }

func (s earlySession) Decode(from codec.Side, b []byte, f *codec.Frame) (int, error) {
	if from == codec.Peer && len(b) >= 12 && b[0] == 0 {
		if size := int(binary.BigEndian.Uint32(b[8:])); size > 100 {
			f.Reset(from)
			return 12 + size, &codec.Error{Rule: gearman.RuleSizeCap, Offset: 8, Field: "Packet length", Detail: "too long"}
		}
	}
	return s.Session.Decode(from, b, f)
}

// TestRefusedMessageIsDiscardedAsItComes sends the data of a rejected packet in pieces, and then another packet. The server must
// discard the data and answer the other packet.
func TestRefusedMessageIsDiscardedAsItComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		early := *gearman.Protocol
		early.NewSession = func(o codec.Options) codec.Session { return earlySession{gearman.Protocol.NewSession(o)} }
		srv := refserver.New(machine.New(machine.Options{}), refserver.Options{Protocol: &early})
		defer srv.Close()
		p := peertest.Dial(t, gearman.Protocol, srv)

		p.Raw([]byte("\x00REQ\x00\x00\x00\x10\x00\x00\x10\x00 and the data"))
		p.Want("ERROR", "*", "*")
		rest := make([]byte, 4096-len(" and the data"))
		p.Raw(rest[:1000])
		p.Raw(rest[1000:])
		p.Send("ECHO_REQ", "still here")
		p.Want("ECHO_RES", "still here")
	})
}
