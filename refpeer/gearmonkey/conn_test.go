package gearmonkey

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"jobwire/codec"
	protocol "jobwire/codec/gearmonkey"
)

// scriptedConn is a connection whose peer sends given bytes in pieces and records the bytes that it receives.
type scriptedConn struct {
	net.Conn // nil
	says     []byte
	piece    int // bytes per read; 0: as many as fit
	written  bytes.Buffer
	writes   int
}

func (p *scriptedConn) Read(b []byte) (int, error) {
	if len(p.says) == 0 {
		return 0, io.EOF
	}
	if p.piece > 0 {
		b = b[:min(len(b), p.piece)]
	}
	n := copy(b, p.says)
	p.says = p.says[n:]
	return n, nil
}

func (p *scriptedConn) Write(b []byte) (int, error) { p.writes++; return p.written.Write(b) }
func (p *scriptedConn) Close() error                { return nil }
func (p *scriptedConn) SetDeadline(time.Time) error { return nil }

var incrUID, getCount = reply("INCR_UID"), reply("GET_COUNT")

func TestPipeline(t *testing.T) {
	for _, piece := range []int{0, 1, 7} {
		p := &scriptedConn{says: []byte(":1\r\n$1\r\n5\r\n:2\r\n"), piece: piece}
		c := NewConn(p, codec.Options{})
		fn := []byte("f")
		for _, msgType := range []*codec.Type{incrUID, getCount, incrUID} {
			if err := c.Append(msgType, fn); err != nil {
				t.Fatal(err)
			}
		}
		fn[0] = 'x' // Append has already copied it
		var got []string
		for range 3 {
			m, err := c.Read(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprintf("%s %s", m.Type.Name, m.Args[0]))
		}
		const want = "*2\r\n$4\r\nINCR\r\n$5\r\nuid:f\r\n*2\r\n$3\r\nGET\r\n$7\r\ncount:f\r\n*2\r\n$4\r\nINCR\r\n$5\r\nuid:f\r\n"
		if fmt.Sprint(got) != "[ID 1 bulk 5 ID 2]" || p.written.String() != want || p.writes != 1 {
			t.Errorf("pieces of %d: %v; %d writes of %q", piece, got, p.writes, p.written.String())
		}
		if _, err := c.Read(t.Context()); !errors.Is(err, io.EOF) {
			t.Errorf("the end is read as %v", err)
		}
	}
}

func TestLongReplies(t *testing.T) {
	long := strings.Repeat("x", 100<<10)
	reply := fmt.Sprintf("$%d\r\n%s\r\n", len(long), long)
	c := NewConn(&scriptedConn{says: []byte(strings.Repeat(reply, 3)), piece: 3000}, codec.Options{})
	for range 3 {
		if m, err := c.Do(t.Context(), getCount, []byte("f")); err != nil || string(m.Args[0]) != long {
			t.Fatalf("%v", err)
		}
	}
	if len(c.in) > 2*len(reply) {
		t.Errorf("a buffer of %d bytes for replies of %d", len(c.in), len(reply))
	}
}

func TestWhatACodecRefusesIsNotSent(t *testing.T) {
	p := &scriptedConn{says: []byte(":1\r\n")}
	c := NewConn(p, codec.Options{})
	var refused *codec.Error
	if err := c.Append(reply("PUBLISH_START"), []byte("f"), []byte("seven")); !errors.Is(err, ErrUsage) || !errors.As(err, &refused) {
		t.Errorf("Append: %v", err)
	}
	if m, err := c.Do(t.Context(), incrUID, []byte("f")); err != nil || m.Type != typeID {
		t.Errorf("the next command: %v, %v", m, err)
	}
	if strings.Contains(p.written.String(), "PUBLISH") {
		t.Errorf("%q was sent", p.written.String())
	}
}

func TestInvalidReplyEndsConnection(t *testing.T) {
	for _, says := range []string{"hello\r\n", "$5\r\nab", "$-7\r\n", ":1\n"} {
		p := &scriptedConn{says: []byte(says + "\r\n:1\r\n")}
		c := NewConn(p, codec.Options{})
		_, err := c.Do(t.Context(), incrUID, []byte("f"))
		if err == nil {
			t.Errorf("%q is taken for a reply", says)
		}
		if _, again := c.Do(t.Context(), incrUID, []byte("f")); again != err || c.Err() != err || p.writes != 1 {
			t.Errorf("%q: after %v comes %v", says, err, again)
		}
	}
}

// TestContexts: a context that ends after its call has no effect. One that ends during its call also ends the use of the
// connection.
func TestContexts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		c := NewConn(near, codec.Options{})
		served := make(chan struct{})
		defer func() {
			c.Close()
			<-served
		}()
		go func() {
			defer close(served)
			buf := make([]byte, 1<<10)
			for {
				if _, err := far.Read(buf); err != nil {
					return
				}
				time.Sleep(time.Second)
				if _, err := io.WriteString(far, ":1\r\n"); err != nil {
					return
				}
			}
		}()
		ask := func(ctx context.Context) error {
			_, err := c.Do(ctx, incrUID, []byte("f"))
			return err
		}
		for i := range 3 {
			ctx, cancel := context.WithCancel(t.Context())
			if err := ask(ctx); err != nil {
				t.Errorf("call %d: %v", i, err)
			}
			cancel()
			synctest.Wait()
		}
		if err := ask(context.Background()); err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		if err := ask(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if err := ask(t.Context()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the next call: %v", err)
		}
	})
}

func TestAbort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := answering(t, "")
		done := make(chan error)
		go func() {
			_, err := c.Do(context.Background(), incrUID, []byte("f"))
			done <- err
		}()
		synctest.Wait()
		c.Abort()
		if err := <-done; err == nil {
			t.Error("Do returns no error")
		}
	})
}

func TestDial(t *testing.T) {
	ln, addr := listen(t)
	c, err := Dial(t.Context(), addr, codec.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	ln.Close()
	if _, err := Dial(t.Context(), addr, codec.Options{}); err == nil {
		t.Error("nobody listens, but Dial connects")
	}
}

func TestHotPathAllocatesNothing(t *testing.T) {
	one := ":7\r\n+OK\r\n:0\r\n:1\r\n"
	c := NewClient(NewConn(&scriptedConn{says: []byte(strings.Repeat(one, 300))}, codec.Options{}), nil)
	input := []byte("some input")
	run := testing.AllocsPerRun(100, func() {
		c.performer.conn.nc.(*scriptedConn).written.Reset()
		if _, err := c.Run(context.Background(), "reverse", input, RunOptions{}); err != nil {
			t.Fatal(err)
		}
	})
	if run != 0 {
		t.Errorf("Run: %v allocations", run)
	}

	start := "$40\r\n" + sha + "\r\n:1\r\n"
	one = "$-1\r\n*2\r\n$20\r\nqueue:reverse:normal\r\n$1\r\n7\r\n:0\r\n+OK\r\n$4\r\ntest\r\n+OK\r\n:1\r\n:0\r\n:1\r\n:1\r\n"
	w := NewWorker(NewConn(&scriptedConn{says: []byte(start + strings.Repeat(one, 300))}, codec.Options{}), nil)
	w.Accept("reverse")
	if err := w.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	round := testing.AllocsPerRun(100, func() {
		w.performer.conn.nc.(*scriptedConn).written.Reset()
		if found, err := w.Round(context.Background(), echo); !found || err != nil {
			t.Fatal(found, err)
		}
	})
	if round != 0 {
		t.Errorf("Round: %v allocations", round)
	}
}

// TestProgramsUseTheirOwnTypes: every message type that a step names may be sent by the role of the sequence.
func TestProgramsUseTheirOwnTypes(t *testing.T) {
	p := Document()
	for role, sequences := range map[codec.Role][]Sequence{
		protocol.Client: {p.Run, p.Get},
		protocol.Worker: {p.Load, p.Enter, p.Look, p.Work, p.Update, p.Leave},
	} {
		for _, s := range sequences {
			for _, cmd := range s.compile() {
				if cmd.msgType != nil && cmd.msgType.Req&role == 0 {
					t.Errorf("%s is not for this role", cmd.name)
				}
			}
		}
	}
}
