package beanstalk

import (
	"testing"

	"jobwire/codec/beanstalk"
	"jobwire/fuzz/laws"
	"jobwire/fuzz/native"
)

func FuzzSession(f *testing.F) {
	for _, c := range native.Conversations(beanstalk.Protocol) {
		f.Add(c.Up, c.Down)
	}
	f.Fuzz(func(t *testing.T, up, down []byte) {
		if err := laws.Session(beanstalk.Protocol, up, down); err != nil {
			t.Fatal(err)
		}
	})
}
