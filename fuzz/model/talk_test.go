package model

import (
	"testing"
	"testing/synctest"
	"time"

	"jobwire/codec"
	codecbeanstalk "jobwire/codec/beanstalk"
)

// late is a wire whose server says what it is told to, when it is told to, in a synctest bubble.
type late struct {
	in    []byte
	after time.Duration
}

func (w *late) Open(int) error         { return nil }
func (w *late) Send(int, []byte) error { return nil }
func (w *late) Close(int)              {}
func (w *late) Exact() bool            { return false }
func (w *late) Wait(time.Duration)     {}
func (w *late) Receive(patience time.Duration) (int, []byte) {
	if b := w.in; len(b) > 0 {
		<-time.After(w.after)
		w.in = nil
		return 0, b
	}
	<-time.After(patience)
	return -1, nil
}

// A server that is late is understood, though a request that waits was sent behind others.
func TestLateReplies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
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
	})
}

// Where a move takes so long that a timer may have gone off meanwhile, nothing is made of what came
// of it; what is due still has to come.
func TestSlowMoves(t *testing.T) {
	d := DictionOf(codecbeanstalk.Protocol)
	say := Move{Deed: Say}
	for i, row := range d.rows[0] {
		if row.Name == "peek-ready" {
			say.Says = uint8(i)
		}
	}
	for _, tt := range []struct {
		name, reply string
		after       time.Duration
		complains   bool
	}{
		{"at once", "TOUCHED\r\nUSING default\r\n", 0, true},
		{"late", "FOUND 1 1\r\nx\r\nUSING default\r\n", Slack, false},
		{"never", "", 0, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &late{in: []byte(tt.reply), after: tt.after}
				if err := NewTalk(d, w, New(codecbeanstalk.Protocol)).Do(say); (err != nil) != tt.complains {
					t.Error(err)
				}
			})
		})
	}
}
