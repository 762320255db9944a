package gearman

import (
	"testing"

	"jobwire/codec/gearman"
	"jobwire/fuzz/laws"
	"jobwire/fuzz/native"
)

func FuzzSession(f *testing.F) {
	for _, talk := range native.Talks(gearman.Protocol) {
		f.Add(talk.Up, talk.Down)
	}
	f.Fuzz(func(t *testing.T, up, down []byte) {
		if err := laws.Session(gearman.Protocol, up, down); err != nil {
			t.Fatal(err)
		}
	})
}
