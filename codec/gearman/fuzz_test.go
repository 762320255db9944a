package gearman

import (
	"testing"

	"jobwire/codec"
	"jobwire/fuzz/laws"
)

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
					f.Add([]byte("status\nversion\nshow unique jobs\n"), raw)
				}
			}
		}
	}
	for _, r := range rejects {
		f.Add([]byte(r.asked+"\n"), []byte(r.raw))
	}
	f.Fuzz(func(t *testing.T, up, down []byte) {
		if err := laws.Session(Protocol, up, down); err != nil {
			t.Fatal(err)
		}
	})
}
