package gearmonkey

import (
	"testing"

	"jobwire/codec/gearmonkey"
	"jobwire/fuzz/laws"
	"jobwire/fuzz/native"
)

func FuzzSession(f *testing.F) {
	for _, c := range native.Conversations(gearmonkey.Protocol) {
		f.Add(c.Up, c.Down)
	}
	f.Fuzz(func(t *testing.T, up, down []byte) {
		if err := laws.Session(gearmonkey.Protocol, up, down); err != nil {
			t.Fatal(err)
		}
	})
}
