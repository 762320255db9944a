package resp

import (
	"testing"

	"jobwire/codec/resp"
	"jobwire/fuzz/laws"
	"jobwire/fuzz/native"
)

func FuzzSession(f *testing.F) {
	for _, c := range native.Conversations(resp.Protocol) {
		f.Add(c.Up, c.Down)
	}
	f.Fuzz(func(t *testing.T, up, down []byte) {
		if err := laws.Session(resp.Protocol, up, down); err != nil {
			t.Fatal(err)
		}
	})
}
