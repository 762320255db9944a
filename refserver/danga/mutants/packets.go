package mutants

import (
	"slices"

	"jobwire/codec"
	protocol "jobwire/codec/danga"
	"jobwire/refserver/inject"
)

// packets are faults in the header and in the handling of unknown packet types.
var packets = []mutantSpec{
	{Name: "magic-of-seven-bits", About: "The server clears the high bit of each byte of the magic in its replies.",
		KilledBy: "magic.any-bytes magic.each-its-own magic.values", Edit: inject.Out("*", nil, func(m *message) {
			m.Raw = slices.Clone(m.Frame.Raw)
			for i := range 4 {
				m.Raw[i] &= 0x7f
			}
		})},
	{Name: "magic-of-three-bytes", About: "The server does not compare the last byte of the magic.",
		KilledBy: "magic.changes-in-a-byte", Edit: inject.Decode(func(s codec.Session, p []byte, f *codec.Frame) (int, error) {
			if len(p) >= 4 && string(p[:3]) == protocol.DefaultMagic[:3] && p[3] != protocol.DefaultMagic[3] {
				p = append([]byte(protocol.DefaultMagic), p[4:]...)
			}
			return s.Decode(codec.Peer, p, f)
		})},
	{Name: "magic-not-compared", About: "The server accepts packets whose magic differs from that of the first packet.",
		KilledBy: "magic.changes magic.changes-in-a-byte", Codec: codec.Options{Waive: []codec.RuleID{protocol.RuleMagic}}},
	{Name: "violation-closes-colleagues", About: "An unknown packet type closes the connections of all workers with the same names as the sender.",
		KilledBy: "violation.others-unharmed", Edit: inject.On(inject.Illegal, func(m *message) bool { return m.Err.Rule == protocol.RuleTypeKnown }, func(m *message) {
			for _, p := range m.Peers {
				if slices.ContainsFunc(m.Peer.Can, p.Does) {
					p.Close()
				}
			}
		})},
}
