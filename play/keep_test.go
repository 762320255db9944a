package play

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"jobwire/codec"
	"jobwire/codec/gearman"
	"jobwire/codec/transcript"
	"jobwire/internal/memnet"
)

// played plays a script of Gearman against a server that sends all messages at once, and then bytes without end.
func played(t *testing.T, script string, messages, endless []byte, o Options) (*transcript.Script, *Result) {
	t.Helper()
	all, err := transcript.Parse(gearman.Protocol, "keep.wire", []byte(script))
	if err != nil {
		t.Fatal(err)
	}
	near, far := memnet.Pipe()
	go func() {
		_, err := far.Write(messages)
		for err == nil && len(endless) > 0 {
			_, err = far.Write(endless)
		}
	}()
	defer far.Close()
	dial := func(context.Context, transcript.Actor) (net.Conn, error) { return near, nil }
	return all[0], Peers(t.Context(), all[0], dial, o)
}

// TestKeptMessagesAreBounded: a result has the first messages whole, the beginning of the others, and the number of the
// missing bytes, which a report says.
func TestKeptMessagesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const count, size, keep = 50, 64 << 10, 200 << 10
		var messages []byte
		for range count {
			messages = append(append(messages, "\x00RES\x00\x00\x00\x11\x00\x01\x00\x00"...), make([]byte, size)...)
		}
		s, r := played(t, strings.Repeat("Job Server -> Worker: ECHO_RES *\n", count), messages, nil, Options{Keep: keep})
		if r.Failure != nil || len(r.Events) != count {
			t.Fatalf("%v, with %d events", r.Failure, len(r.Events))
		}
		kept, cut := 0, 0
		for i := range r.Events {
			ev := &r.Events[i]
			kept, cut = kept+ev.size(), cut+ev.Cut
			if whole := i < keep/(size+1<<10); whole != (ev.Cut == 0) || ev.Frame.Type == nil {
				t.Errorf("message %d: %d bytes are missing", i, ev.Cut)
			}
		}
		if bound := keep + count*2*minKept; kept > bound {
			t.Errorf("%d bytes are kept, expected at most %d", kept, bound)
		}
		raw := 0
		for i := range r.Events {
			raw += len(r.Events[i].Frame.Raw)
		}
		if raw+cut != len(messages) {
			t.Errorf("%d bytes are kept and %d counted, expected %d together", raw, cut, len(messages))
		}
		var report strings.Builder
		WriteReport(&report, s, r, ReportOptions{Bytes: true})
		if n := strings.Count(report.String(), "more bytes, which were not kept"); n != count-keep/(size+1<<10) {
			t.Errorf("the report says %d times that bytes are missing", n)
		}
		if again := r.Cut(10 << 10); again > 10<<10+count*2*minKept {
			t.Errorf("%d bytes are kept after Cut", again)
		}
	})
}

// TestMismatchAfterTheKeptBytes: a report about a message says what differs, also if the bytes there were not kept.
func TestMismatchAfterTheKeptBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, r := played(t, `Job Server -> Worker: ECHO_RES "x"*100000`,
			[]byte("\x00RES\x00\x00\x00\x11\x00\x01\x86\xa0"+strings.Repeat("x", 99_999)+"y"), nil, Options{Keep: 1})
		var report strings.Builder
		WriteReport(&report, s, r, ReportOptions{})
		if r.Failure == nil || r.Failure.Diff == nil || r.Failure.Diff.Offset < 99_999 || !strings.Contains(report.String(), "were not kept") {
			t.Errorf("%v\n%s", r.Failure, report.String())
		}
	})
}

// TestResultReleasesConnections: a result does not keep what connections have received and no step has consumed.
func TestResultReleasesConnections(t *testing.T) {
	memory := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	const runs = 4
	var kept []*Result
	before := memory()
	for range runs {
		synctest.Test(t, func(t *testing.T) {
			_, r := played(t, "Job Server -> Worker: ECHO_RES x\n", []byte("\x00RES\x00\x00\x00\x11\x00\x00\x00\x01x"),
				make([]byte, 1<<20), Options{AtEnd: synctest.Wait})
			kept = append(kept, r)
		})
	}
	if grown := int64(memory() - before); grown > runs*maxUnread/4 {
		t.Errorf("%d results need %d bytes", len(kept), grown)
	}
	runtime.KeepAlive(kept)
}

// TestOneLargeConversation: of two conversations, only one reads more than largeFrom ahead, until it ends.
func TestOneLargeConversation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		places := make(chan struct{}, 1)
		var conns []*conn
		for range 2 {
			near, far := memnet.Pipe()
			cn := newConn(near, gearman.Protocol, codec.Options{}, make(chan struct{}, 1), &large{place: places, got: make(chan struct{})})
			go func() {
				defer close(cn.done)
				cn.read()
			}()
			go func() {
				for b := make([]byte, 256<<10); ; {
					if _, err := far.Write(b); err != nil {
						return
					}
				}
			}()
			defer far.Close()
			conns = append(conns, cn)
		}
		unread := func(cn *conn) int {
			synctest.Wait()
			b, _ := cn.peek()
			return len(b)
		}
		first, second := conns[0], conns[1]
		if unread(first) < unread(second) {
			first, second = second, first
		}
		if a, b := unread(first), unread(second); a < maxUnread || b > largeFrom+minUnread+1<<10 {
			t.Errorf("%d and %d bytes are unread", a, b)
		}
		first.close()
		<-first.done
		first.large.release()
		if n := unread(second); n < maxUnread {
			t.Errorf("%d bytes are unread after the other conversation has ended", n)
		}
		second.close()
		<-second.done
	})
}

// TestConnectionsShareTheBound tests that the connections of a transcript together keep at most maxUnreadTotal bytes that
// no step has read, plus a minimum for each, and that each can still receive a message that is longer than its share.
func TestConnectionsShareTheBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := new(large)
		var conns []*conn
		for range 10 {
			near, far := memnet.Pipe()
			c := newConn(near, gearman.Protocol, codec.Options{}, make(chan struct{}, 1), shared)
			go func() {
				defer close(c.done)
				c.read()
			}()
			// an ECHO_RES of 4 MiB, sent again and again
			echo := append([]byte("\x00RES\x00\x00\x00\x11\x00\x40\x00\x00"), make([]byte, 4<<20)...)
			go func() {
				for {
					if _, err := far.Write(echo); err != nil {
						return
					}
				}
			}()
			defer far.Close()
			conns = append(conns, c)
		}
		synctest.Wait()
		total := 0
		for _, c := range conns {
			b, _ := c.peek()
			total += len(b)
		}
		if bound := maxUnreadTotal + len(conns)*(minUnread+readBuffer); total > bound {
			t.Errorf("%d bytes are unread, expected at most %d", total, bound)
		}
		for i, c := range conns {
			if c.next(codec.Server).kind == waiting { // this call makes the connection read the rest of the message
				synctest.Wait()
			}
			if out := c.next(codec.Server); out.kind != message {
				t.Errorf("connection %d: no message arrived", i)
			}
			c.close()
			<-c.done
		}
	})
}

// TestExcerpt checks the excerpts of failed conversations: they have few, short lines.
func TestExcerpt(t *testing.T) {
	long := ""
	for n := range 500 {
		long += fmt.Sprintf("%d,", n)
	}
	for _, tt := range []struct {
		script, message string
		want            []string
	}{
		{"Client -> Job Server: ECHO_REQ one\nClient -> Job Server: ECHO_REQ two\n" +
			"Client -> Job Server: ECHO_REQ three\nJob Server -> Client: ECHO_RES one\n" +
			"  or ECHO_RES two\n",
			"\x00RES\x00\x00\x00\x11\x00\x00\x00\x04four",
			[]string{"Client -> Job Server: ECHO_REQ two", "Client -> Job Server: ECHO_REQ three",
				"expected  Job Server -> Client: ECHO_RES one  or ECHO_RES two",
				"received  Job Server -> Client: ECHO_RES four"}},
		{"Client -> Job Server: ECHO_REQ " + long + "\nJob Server -> Client: ECHO_RES " + long + " within 2s\n", "",
			[]string{"Client -> Job Server: ECHO_REQ \"0,1,2,3,4,5,6,7,8,9,10,11,12,13,\" ... 1858 b ...",
				"expected  Job Server -> Client: ECHO_RES 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14, ...", "received  nothing within 2s"}},
		{"Client -> Job Server: opens\nJob Server -> Client: ECHO_RES one\n", "\x00BAD",
			[]string{"expected  Job Server -> Client: ECHO_RES one", "received  Job Server -> Client: raw 00 \"BAD\""}},
	} {
		synctest.Test(t, func(t *testing.T) {
			s, r := played(t, tt.script, []byte(tt.message), nil, Options{})
			if got := Excerpt(s, r, 80); strings.Join(got, "\n") != strings.Join(tt.want, "\n") {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
			}
		})
	}
}
