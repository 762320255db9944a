package gearmonkey

import (
	"context"
	"crypto/sha1"
	"fmt"
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
	for _, msgType := range Protocol.Types {
		if msgType.Section != secBeyond && msgType.Section != "RESP" && !used[msgType] {
			t.Errorf("%s does not stand in the example", msgType.Name)
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
	typeTests := codectest.TypeTests{Protocol: Protocol, Samples: map[string][]string{"SCRIPT_LOAD": {Script}, "EVALSHA_SCHEDULED": {fmt.Sprintf("%x", sha1.Sum([]byte(Script))), "f", "1"}}}
	ask := func(msgType *codec.Type) (reply string, args [][]byte) {
		t.Helper()
		nc, err := target.Dial(t.Context(), redis)
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		nc.SetDeadline(time.Now().Add(10 * time.Second))
		s := Protocol.NewSession(codec.Options{})
		raw, err := s.Append(nil, codec.Peer, typeTests.Sample(msgType))
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
				t.Fatalf("%s: %v", msgType.Name, err)
			}
			buf = append(buf, chunk[:n]...)
			if _, err = s.Decode(codec.Server, buf, &f); err == codec.ErrShort {
				continue
			}
			if err != nil {
				t.Fatalf("%s: %q: %v", msgType.Name, buf, err)
			}
			var m codec.Message
			f.Message(&m)
			return f.Type.Name, m.Args
		}
	}
	for _, name := range []string{"LPUSH_QUEUE", "LPUSH_LOCK"} {
		ask(Protocol.TypeNamed(name))
	}
	for _, msgType := range Protocol.Types[:len(typeDecls)] {
		if msgType.Req == 0 {
			continue
		}
		reply, args := ask(msgType)
		if reply == "error" {
			t.Errorf("%s is answered by the error %q", msgType.Name, args)
		}
		if typed := msgType.Replies[0]; msgType.Section != secBeyond && typed != "simple" && reply != typed && msgType.Name != "EVALSHA_SCHEDULED" {
			t.Errorf("%s is answered by %s %q, want %s", msgType.Name, reply, args, typed)
		}
	}
}
