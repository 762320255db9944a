package danga

import (
	"testing"

	"jobwire/codec/danga"
	"jobwire/fuzz/laws"
	"jobwire/fuzz/native"
)

func FuzzDecode(f *testing.F) {
	d, seeds := native.NewDecoder(laws.Told(danga.Protocol, "worker_sleep"))
	for _, s := range seeds {
		f.Add(s.Asked, s.Bytes)
	}
	f.Fuzz(func(t *testing.T, asked byte, b []byte) {
		if err := d.Try(asked, b); err != nil {
			t.Fatal(err)
		}
	})
}
