package resp

import (
	"testing"

	"jobwire/codec/resp"
	"jobwire/fuzz/laws"
	"jobwire/fuzz/native"
)

func FuzzSession(f *testing.F) {
	for _, talk := range native.Talks(resp.Protocol) {
		f.Add(talk.Up, talk.Down)
	}
	f.Fuzz(func(t *testing.T, up, down []byte) {
		if err := laws.Session(resp.Protocol, up, down); err != nil {
			t.Fatal(err)
		}
	})
}
