package model

import (
	"testing"
	"time"

	"jobwire/codec"
	codecbeanstalk "jobwire/codec/beanstalk"
)

// late is a wire whose server says nothing until it is told to.
type late struct{ in []byte }

func (w *late) Open(int) error         { return nil }
func (w *late) Send(int, []byte) error { return nil }
func (w *late) Close(int)              {}
func (w *late) Exact() bool            { return false }
func (w *late) Wait(time.Duration)     {}
func (w *late) Receive(time.Duration) (int, []byte) {
	if b := w.in; b != nil {
		w.in = nil
		return 0, b
	}
	return -1, nil
}

// A server that is late is understood, though a request that waits was sent behind others.
func TestLateReplies(t *testing.T) {
	d := DictionOf(codecbeanstalk.Protocol)
	w := &late{}
	m := New(codecbeanstalk.Protocol)
	talk := NewTalk(d, w, m)
	m.Opened(1)
	m.Garbled(1) // so nobody waits for replies
	for _, name := range []string{"peek-ready", "reserve"} {
		if err := talk.say(0, codec.Message{Type: codecbeanstalk.Protocol.TypeNamed(name)}, true); err != nil {
			t.Fatal(err)
		}
		if err := talk.settle(0); err != nil {
			t.Fatal(err)
		}
	}
	w.in = []byte("NOT_FOUND\r\nUSING default\r\nDEADLINE_SOON\r\n")
	if err := talk.await(); err != nil {
		t.Error(err)
	}
}
