package gearmonkey

import (
	"testing"

	"jobwire/codec/gearmonkey"
	"jobwire/fuzz/laws"
	"jobwire/fuzz/native"
)

func FuzzSession(f *testing.F) {
	for _, talk := range native.Talks(gearmonkey.Protocol) {
		f.Add(talk.Up, talk.Down)
	}
	f.Fuzz(func(t *testing.T, up, down []byte) {
		if err := laws.Session(gearmonkey.Protocol, up, down); err != nil {
			t.Fatal(err)
		}
	})
}
