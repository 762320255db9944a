package resp

import (
	"testing"

	"jobwire/codec"
	"jobwire/fuzz/laws"
)

// requests are what the replies of a fuzzed conversation answer.
const requests = "*2\r\n$3\r\nGET\r\n$1\r\na\r\nget a\r\nsubscribe a b\r\nunsubscribe\r\n*1\r\n$4\r\nping\r\n*1\r\n$4\r\npInG\r\n"

func FuzzSession(f *testing.F) {
	for _, row := range Protocol.Types {
		for _, from := range []codec.Side{codec.Peer, codec.Server} {
			if row.Sends(from) {
				s := Protocol.NewSession(codec.Options{WaiveAll: true})
				raw, err := s.Append(nil, from, rows.Sample(row))
				if err != nil {
					f.Fatal(err)
				}
				if from == codec.Peer {
					f.Add(raw, []byte(nil))
				} else {
					f.Add([]byte(requests), raw)
				}
			}
		}
	}
	for _, r := range rejects {
		if r.from == codec.Peer {
			f.Add([]byte(r.raw), []byte(nil))
		} else {
			f.Add([]byte(requests), []byte(r.raw))
		}
	}
	f.Add([]byte("client reply skip\nclient reply off\nclient reply on\nreset\nmonitor\n"), []byte("+OK\r\n+RESET\r\n+OK\r\n+1\r\n>2\r\n$9\r\nsubscribe\r\n:1\r\n"))
	f.Fuzz(func(t *testing.T, up, down []byte) {
		if err := laws.Session(Protocol, up, down); err != nil {
			t.Fatal(err)
		}
	})
}
