package main

import (
	"fmt"
	"io"
	"sync"
	"time"

	"jobwire/internal/prose"
)

// Limits of a spool.
const (
	maxSpool  = 4 << 20     // bytes in the buffer
	spoolWait = time.Second // time limit for writing the rest in close
)

// spool writes messages to an output that may be slow, from a goroutine of its own. It never makes the sender wait:
// messages that do not fit in its buffer are dropped and counted.
type spool struct {
	out   io.Writer
	what  string        // format of the number of dropped messages, such as "trace: %s messages"
	ready chan struct{} // holds a value if there is something to write
	done  chan struct{} // closed when everything is written, after close

	mu      sync.Mutex
	waiting []byte
	queued  int // messages in waiting
	writing int // messages that are being written
	dropped int // messages dropped since the last one in waiting
	lost    int // all dropped messages
	closed  bool
	err     error
}

func newSpool(out io.Writer, what string) *spool {
	s := &spool{out: out, what: what, ready: make(chan struct{}, 1), done: make(chan struct{})}
	go s.run()
	return s
}

// add queues one message, or drops it.
func (s *spool) add(message []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.err != nil || s.dropped > 0 || s.queued > 0 && len(s.waiting)+len(message) > maxSpool {
		s.dropped++
		s.lost++
	} else {
		s.waiting = append(s.waiting, message...)
		s.queued++
	}
	s.signal()
}

func (s *spool) signal() {
	select {
	case s.ready <- struct{}{}:
	default:
	}
}

// run writes the queued messages to the output until the spool is closed. After an error it continues to take messages
// but records the error, which makes add drop later messages.
func (s *spool) run() {
	defer close(s.done)
	var b []byte
	for range s.ready {
		for {
			var ended bool
			if b, ended = s.take(b); ended {
				return
			}
			if len(b) == 0 {
				break
			}
			_, err := s.out.Write(b)
			s.mu.Lock()
			if s.writing = 0; err != nil {
				s.err = err
			}
			s.mu.Unlock()
		}
	}
}

// take returns the bytes to write next, and reports whether the spool is closed and nothing is left. It reuses the
// memory of free, which has the bytes that were written.
func (s *spool) take(free []byte) (b []byte, ended bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		s.lost += s.queued
		s.waiting, s.queued, s.dropped = s.waiting[:0], 0, 0
	}
	b, s.waiting = s.waiting, free[:0]
	if s.dropped > 0 {
		b = append(b, s.missing(s.dropped)+"\n"...)
	}
	s.writing, s.queued, s.dropped = s.queued, 0, 0
	return b, s.closed && len(b) == 0
}

// missing returns the line, without line end, that replaces n dropped messages.
func (s *spool) missing(n int) string {
	return fmt.Sprintf(s.what, prose.Grouped(int64(n))) + " left out, because standard output was read too slowly"
}

// close waits up to spoolWait until all buffered messages are written. It returns a line about all messages that were
// not written, or "" if there are none or the output failed, and the error of the output.
func (s *spool) close() (missing string, err error) {
	s.mu.Lock()
	s.closed = true
	s.signal()
	s.mu.Unlock()
	select {
	case <-s.done:
	case <-time.After(spoolWait):
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.lost + s.queued + s.writing; n > 0 && s.err == nil {
		missing = s.missing(n)
	}
	return missing, s.err
}
