package gearman

import (
	"testing"

	"jobwire/codec/gearman"
	"jobwire/fuzz/laws"
	"jobwire/fuzz/native"
)

func FuzzSession(f *testing.F) {
	for _, c := range native.Conversations(gearman.Protocol) {
		f.Add(c.Up, c.Down)
	}
	f.Fuzz(func(t *testing.T, up, down []byte) {
		if err := laws.Session(gearman.Protocol, up, down); err != nil {
			t.Fatal(err)
		}
	})
}
