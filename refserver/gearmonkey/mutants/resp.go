package mutants

import (
	"bytes"
	"time"

	"jobwire/codec"
	"jobwire/refserver/inject"
)

// requests are faults in reading commands, as arrays and as lines.
var requests = []mutantSpec{
	{Name: "cr-at-the-end-of-a-read-lost", About: "The server loses a CR that is the last byte of a segment.",
		KilledBy: "request.cut-anywhere", Edit: inject.Filter(func(p []byte) []byte {
			if len(p) > 100 {
				return p // the network decides where segments of these end
			}
			return bytes.TrimSuffix(p, []byte("\r"))
		})},
	{Name: "silence-broken", About: "The server sends a greeting to a connection that does not send a complete command soon.",
		KilledBy: "lock.expires expire.gone request.cut-anywhere request.nothing-unasked framing.incomplete", Edit: inject.On(inject.Opened, nil, func(m *message) {
			m.Peer.Later(110*time.Millisecond, func() {
				if len(m.Peer.Count) == 0 {
					m.Peer.Send("+hello\r\n")
				}
			})
		})},
	{Name: "lines-without-end", About: "The server does not limit the length of inline commands.",
		KilledBy: "inline.too-long", Codec: codec.Options{MaxLine: 1 << 20}},
}

// framing are faults in the handling of requests whose end the server cannot determine.
var framing = []mutantSpec{
	{Name: "bad-framing-closes-waits", About: "A protocol error on one connection closes all connections that wait in BRPOP.",
		KilledBy: "framing.others-go-on", Edit: inject.On(inject.Illegal, func(m *message) bool { return m.Err.Fatal }, func(m *message) {
			for _, p := range m.Peers {
				if p.Waits {
					p.Close()
				}
			}
		})},
}
