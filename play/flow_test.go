package play

import (
	"testing"
	"testing/synctest"

	"jobwire/codec"
	"jobwire/codec/gearman"
	"jobwire/internal/memnet"
)

// TestEndlessBytesAreNotRead tests that a connection reads no more than maxUnread bytes that no step consumes, reads on
// after a step has consumed some, and can be closed meanwhile.
func TestEndlessBytesAreNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := memnet.Pipe()
		cn := newConn(near, gearman.Protocol, codec.Options{}, make(chan struct{}, 1), new(large))
		go func() {
			defer close(cn.done)
			cn.read()
		}()
		sent := make(chan int)
		go func() {
			total, b := 0, make([]byte, 1<<20)
			for {
				n, err := far.Write(b)
				if total += n; err != nil {
					sent <- total
					return
				}
			}
		}()
		unread := func() int {
			synctest.Wait()
			b, _ := cn.peek()
			return len(b)
		}
		first := unread()
		if first < maxUnread || first > maxUnread+1<<20 {
			t.Errorf("%d bytes are unread, expected about %d", first, maxUnread)
		}
		cn.consume(first)
		if again := unread(); again < maxUnread || again > maxUnread+1<<20 {
			t.Errorf("%d bytes are unread after %d were consumed, expected about %d", again, first, maxUnread)
		}
		cn.close()
		far.Close()
		<-cn.done
		if total := <-sent; total > 3*maxUnread {
			t.Errorf("%d bytes were sent", total)
		}
	})
}
