package fuzz

import (
	"testing"
	"testing/synctest"
	"time"
)

// A suspicion that was doubted rests, and is examined again, for as long as it shows: a server that
// dies under many conversations has most of them suspected for nothing.
func TestDoubtsRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &Fuzzer{doubts: map[string]doubt{}}
		for range maxDoubts {
			if f.rests("crash", maxDoubts) {
				t.Fatal("it rests before it was doubted often")
			}
			f.doubt("crash")
		}
		begun, examined := time.Now(), 0
		for time.Since(begun) < 10*time.Minute {
			if !f.rests("crash", maxDoubts) {
				examined++
				f.doubt("crash")
			}
			time.Sleep(time.Second)
		}
		if examined < 10 || examined > 30 {
			t.Errorf("examined %d times in ten minutes", examined)
		}
		f.letBe("crash")
		if time.Sleep(time.Hour); !f.rests("crash", maxDoubts) {
			t.Error("examined though let be")
		}
	})
}
