package gearmonkey

import (
	"context"
	"net"
	"testing"
	"time"

	"jobwire/codec"
	"jobwire/codec/internal/codectest"
	"jobwire/codec/transcript"
	"jobwire/corpus"
	"jobwire/internal/peers"
	"jobwire/internal/target"
	"jobwire/play"
)

// TestExamplePlays performs the conversations of the specification on a real server. It does so twice,
// because they must also work on a server that is in use.
func TestExamplePlays(t *testing.T) {
	src, err := corpus.FS.ReadFile("gearmonkey/example.wire")
	if err != nil {
		t.Fatal(err)
	}
	scripts, err := transcript.Parse(Protocol, "example.wire", src)
	if err != nil {
		t.Fatal(err)
	}
	used := map[*codec.Type]bool{}
	for _, s := range scripts {
		for _, st := range s.Steps {
			used[st.Choices[0].Type] = true
		}
	}
	for _, row := range Protocol.Types {
		if row.Section != secBeyond && row.Section != "RESP" && !used[row] {
			t.Errorf("%s does not stand in the example", row.Name)
		}
	}
	redis := peers.Start(t, "redis-server")
	dial := func(ctx context.Context, _ transcript.Actor) (net.Conn, error) { return target.Dial(ctx, redis) }
	for range 2 {
		for _, s := range scripts {
			if r := play.Peers(t.Context(), s, dial, play.Options{}); r.Failure != nil {
				t.Errorf("%s: %v", s.Value("case"), r.Failure)
			}
		}
	}
}

// TestRedisKnowsEveryCommand sends a message of each GearMonkey type to a real server. It first fills the
// lists from which commands pop.
func TestRedisKnowsEveryCommand(t *testing.T) {
	redis := peers.Start(t, "redis-server")
	rowsOf := codectest.Rows{Protocol: Protocol, Samples: map[string][]string{"SCRIPT_LOAD": {Script}, "EVALSHA_SCHEDULED": {ScriptSHA1(Script), "f", "1"}}}
	ask := func(row *codec.Type) (reply string, args [][]byte) {
		t.Helper()
		nc, err := target.Dial(t.Context(), redis)
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		nc.SetDeadline(time.Now().Add(10 * time.Second))
		s := Protocol.NewSession(codec.Options{})
		raw, err := s.Append(nil, codec.Peer, rowsOf.Sample(row))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := nc.Write(raw); err != nil {
			t.Fatal(err)
		}
		var f codec.Frame
		for buf := []byte(nil); ; {
			chunk := make([]byte, 4096)
			n, err := nc.Read(chunk)
			if err != nil {
				t.Fatalf("%s: %v", row.Name, err)
			}
			buf = append(buf, chunk[:n]...)
			if _, err = s.Decode(codec.Server, buf, &f); err == codec.ErrShort {
				continue
			}
			if err != nil {
				t.Fatalf("%s: %q: %v", row.Name, buf, err)
			}
			var m codec.Message
			f.Message(&m)
			return f.Type.Name, m.Args
		}
	}
	for _, name := range []string{"LPUSH_QUEUE", "LPUSH_LOCK"} {
		ask(Protocol.TypeNamed(name))
	}
	for _, row := range Protocol.Types[:len(rows)] {
		if row.Req == 0 {
			continue
		}
		reply, args := ask(row)
		if reply == "error" {
			t.Errorf("%s is answered by the error %q", row.Name, args)
		}
		if typed := row.Replies[0]; row.Section != secBeyond && typed != "simple" && reply != typed && row.Name != "EVALSHA_SCHEDULED" {
			t.Errorf("%s is answered by %s %q, want %s", row.Name, reply, args, typed)
		}
	}
}
