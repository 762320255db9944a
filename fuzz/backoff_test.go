package fuzz

import (
	"testing"
	"testing/synctest"
	"time"
)

// A observation that was doubted suppressed, and is examined again, for as long as it shows: a server that
// dies under many inputs has most of them suspected for nothing.
func TestDoubtsRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &Fuzzer{backoffs: map[string]backoff{}}
		for range maxMisses {
			if f.suppressed("crash", maxMisses) {
				t.Fatal("it suppressed before it was doubted often")
			}
			f.backoff("crash")
		}
		begun, examined := time.Now(), 0
		for time.Since(begun) < 10*time.Minute {
			if !f.suppressed("crash", maxMisses) {
				examined++
				f.backoff("crash")
			}
			time.Sleep(time.Second)
		}
		if examined < 10 || examined > 30 {
			t.Errorf("examined %d times in ten minutes", examined)
		}
		f.suppress("crash")
		if time.Sleep(time.Hour); !f.suppressed("crash", maxMisses) {
			t.Error("examined though let be")
		}
	})
}
