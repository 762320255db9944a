package gearmonkey

import (
	"testing"

	"jobwire/codec/gearmonkey"
	"jobwire/fuzz/native"
)

func FuzzDecode(f *testing.F) {
	d, seeds := native.NewDecoder(gearmonkey.Protocol)
	for _, s := range seeds {
		f.Add(s.Asked, s.Bytes)
	}
	f.Fuzz(func(t *testing.T, asked byte, b []byte) {
		if err := d.Try(asked, b); err != nil {
			t.Fatal(err)
		}
	})
}
