package beanstalk

import (
	"testing"

	"jobwire/codec/beanstalk"
	"jobwire/fuzz/laws"
	"jobwire/fuzz/native"
)

func FuzzSession(f *testing.F) {
	for _, talk := range native.Talks(beanstalk.Protocol) {
		f.Add(talk.Up, talk.Down)
	}
	f.Fuzz(func(t *testing.T, up, down []byte) {
		if err := laws.Session(beanstalk.Protocol, up, down); err != nil {
			t.Fatal(err)
		}
	})
}
