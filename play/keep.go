package play

import (
	"slices"
	"sync/atomic"
	"unsafe"

	"jobwire/codec"
	"jobwire/codec/transcript"
)

// What a run keeps of a conversation is bounded. Messages are kept whole until they have Options.Keep bytes together;
// then only the beginnings of long ones are kept, and of each further one at most minKept bytes. Event.Cut counts the
// rest.
const (
	defaultKeep = 32 << 20
	minKept     = 1 << 10
)

// Received bytes that no step has consumed yet are bounded too, unless the next message is longer: a connection has at
// most maxUnread, and the connections of a conversation have maxUnreadTotal together, but each may have minUnread. No
// more are read until a step consumes some. A conversation with more than largeFrom is a large one ([Options.Large]).
const (
	maxUnread      = 20 << 20
	maxUnreadTotal = 32 << 20
	minUnread      = 32 << 10
	largeFrom      = 1 << 20
)

// maxRecorded limits the bytes after an error that an event keeps of an invalid message.
const maxRecorded = 64 << 10

// maxAhead limits the buffer space in bytes that is reserved for a message of which only the header has arrived.
const maxAhead = 32 << 20

// keep cuts the message of an event so that the conversation stays within its bound, and makes the event independent of
// the receive buffer.
func (p *performer) keep(ev *Event) {
	left, n := p.opts.Keep-p.kept, minKept
	switch {
	case ev.size() <= left:
		n = left
	case left > maxRecorded:
		n = maxRecorded
	}
	ev.cut(n)
	ev.Frame = ev.Frame.Clone()
	p.kept += ev.size()
}

// size returns how many bytes of memory the message of an event needs.
func (ev *Event) size() int {
	return len(ev.Frame.Raw) + len(ev.Frame.Spans)*int(unsafe.Sizeof(codec.Span{}))
}

// cut shortens the message of an event to n bytes.
func (ev *Event) cut(n int) {
	f := &ev.Frame
	if n >= len(f.Raw) {
		return
	}
	ev.Cut += len(f.Raw) - n
	f.Raw = f.Raw[:n]
	k := slices.IndexFunc(f.Spans, func(s codec.Span) bool { return s.Next > n })
	if k < 0 {
		return
	}
	last := f.Spans[k]
	last.Off, last.End, last.Next = min(last.Off, n), min(last.End, n), n
	f.Spans = append(slices.Clone(f.Spans[:k]), last)
	f.Head = min(f.Head, len(f.Spans))
}

// Cut keeps the first messages of a conversation whole, until they have n bytes together, and the first bytes of each
// further one. It returns how many bytes of memory the messages of the result then need.
func (r *Result) Cut(n int) (kept int) {
	for i := range r.Events {
		ev := &r.Events[i]
		if size := ev.size(); size > minKept && kept+size > n {
			ev.cut(minKept)
			ev.Frame = ev.Frame.Clone()
			if f := r.Failure; f != nil && f.Event != nil && f.Event.At == ev.At {
				f.Event.Frame, f.Event.Cut = ev.Frame, ev.Cut
			}
		}
		kept += ev.size()
	}
	return kept
}

// large is the place of a conversation among the large ones of Options.Large.
type large struct {
	place  chan struct{}
	got    chan struct{} // closed when the conversation has its place
	taken  atomic.Bool
	unread atomic.Int64 // the received bytes that no step has consumed, of all connections
}

// take waits until the conversation has a place, or until leave is closed.
func (l *large) take(leave <-chan struct{}) {
	if l.place == nil {
		return
	}
	select {
	case <-l.got:
	case <-leave:
	case l.place <- struct{}{}:
		if l.taken.CompareAndSwap(false, true) {
			close(l.got)
		} else {
			<-l.place
		}
	}
}

// release gives the place to another conversation.
func (l *large) release() {
	if l.taken.Load() {
		<-l.place
	}
}

// size returns the number of literal bytes in the messages of a script.
func size(s *transcript.Script) (n int) {
	for i := range s.Steps {
		for k := range s.Steps[i].Choices {
			c := &s.Steps[i].Choices[k]
			n += len(c.Bytes)
			for _, a := range c.Args {
				n += len(a.Value)
			}
		}
	}
	return n
}
