package beanstalk

import (
	"testing"

	"jobwire/codec/beanstalk"
	"jobwire/fuzz/native"
)

func FuzzDecode(f *testing.F) {
	d, seeds := native.NewDecoder(beanstalk.Protocol)
	for _, s := range seeds {
		f.Add(s.Asked, s.Bytes)
	}
	f.Fuzz(func(t *testing.T, asked byte, b []byte) {
		if err := d.Try(asked, b); err != nil {
			t.Fatal(err)
		}
	})
}
