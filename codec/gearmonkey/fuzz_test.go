package gearmonkey

import (
	"testing"

	"jobwire/codec"
	"jobwire/fuzz/laws"
)

func FuzzSession(f *testing.F) {
	var requests []byte
	for _, row := range Protocol.Types {
		if raw := encoded(f, row, codec.Peer); raw != nil {
			f.Add(raw, []byte(nil))
			if len(row.Replies) > 0 && len(requests) < 600 {
				requests = append(requests, raw...)
			}
		}
	}
	for _, row := range Protocol.Types {
		if raw := encoded(f, row, codec.Server); raw != nil {
			f.Add(requests, raw)
			for _, q := range Protocol.Types {
				if len(q.Replies) > 0 && q.Replies[0] == row.Name {
					f.Add(encoded(f, q, codec.Peer), raw)
				}
			}
		}
	}
	f.Fuzz(func(t *testing.T, up, down []byte) {
		if err := laws.Session(Protocol, up, down); err != nil {
			t.Fatal(err)
		}
	})
}

// encoded returns a sample of the row, or nothing if the side never sends it.
func encoded(f *testing.F, row *codec.Type, from codec.Side) []byte {
	if !row.Sends(from) {
		return nil
	}
	raw, err := Protocol.NewSession(codec.Options{WaiveAll: true}).Append(nil, from, samples.Sample(row))
	if err != nil {
		f.Fatal(err)
	}
	return raw
}
