package fuzz

import (
	"testing"

	"jobwire/codec/beanstalk"
	"jobwire/codec/gearman"
)

// What must not be sent is not sent in parts either.
func TestWordsInParts(t *testing.T) {
	d := dialectOf(gearman.Protocol)
	if !d.forbidden([]byte("status\nshut"), []byte("down\n")) || d.forbidden([]byte("shut\n"), []byte("status\n")) {
		t.Error("the end of the server is asked for, or something else is not")
	}
	d = dialectOf(beanstalk.Protocol)
	if !d.shares([]byte("reserve-jo"), []byte("b 42\r\n")) || !d.shares(nil, []byte("stats-job 1\r\n")) || d.shares([]byte("stats\r\n"), []byte("use a\r\n")) {
		t.Error("somebody else's job is asked for, or something else is not")
	}
}
