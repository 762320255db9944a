package gearmonkey

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	protocol "jobwire/codec/gearmonkey"
	"jobwire/codec/transcript"
	"jobwire/internal/target"
	"jobwire/internal/transport"
	"jobwire/play"
	"jobwire/refserver"
	server "jobwire/refserver/gearmonkey"
)

// listen returns a listener in memory, and its address.
func listen(t testing.TB) (net.Listener, string) {
	t.Helper()
	ln, err := transport.Listen(transport.Memory, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	return ln, transport.Name(ln)
}

// serve starts the reference server in memory, and returns its address.
func serve(t testing.TB) string {
	t.Helper()
	srv := refserver.New(server.New(server.Options{}), refserver.Options{Protocol: protocol.Protocol})
	s, err := target.InMemory(t.Context(), "reference server", srv.Serve)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Stop() })
	return s.Addr()
}

// against calls do with the address of a server that performs a transcript, in a synctest bubble. The server expects exactly
// the commands of the transcript and then the end of the connection.
func against(t *testing.T, script string, do func(t *testing.T, addr string)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		role, _, _ := strings.Cut(script, " ")
		all, err := transcript.Parse(protocol.Protocol, "script", []byte(script+role+" -> Server: closes\n"))
		if err != nil || len(all) != 1 {
			t.Fatalf("%d scripts, want one: %v", len(all), err)
		}
		l, addr := listen(t)
		played := make(chan *play.Result, 1)
		go func() { played <- play.Server(t.Context(), all[0], l, play.Options{Exact: true, Timeout: time.Hour}) }()
		do(t, addr)
		r := <-played
		l.Close()
		if r.Failure != nil {
			t.Errorf("line %d: %v", r.Failure.Step.Line, r.Failure)
		}
	})
}

// answering calls [against] with a driver that performs tasks, and compares the answers with the beginnings of the expected
// ones. The arguments are pairs of a task and an answer.
func answering(t *testing.T, script string, pairs ...string) {
	t.Helper()
	against(t, script, func(t *testing.T, addr string) {
		var tasks []string
		for i := 0; i < len(pairs); i += 2 {
			tasks = append(tasks, pairs[i])
		}
		for i, got := range drive(t, addr, tasks...) {
			if !strings.HasPrefix(got, pairs[2*i+1]) {
				t.Errorf("%s: expected the answer %q, got %q", tasks[i], pairs[2*i+1], got)
			}
		}
	})
}

// redis sends a command over a separate connection to a server, and returns the words of its reply.
func redis(t testing.TB, addr string, words ...string) string {
	t.Helper()
	nc, err := new(transport.Dialer).Dial(t.Context(), addr)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	fmt.Fprintf(nc, "*%d\r\n", len(words))
	for _, w := range words {
		fmt.Fprintf(nc, "$%d\r\n%s\r\n", len(w), w)
	}
	in := bufio.NewReader(nc)
	var reply func() string
	reply = func() string {
		line, err := in.ReadString('\n')
		if err != nil {
			t.Fatalf("%v: %v", words, err)
		}
		text := strings.TrimSuffix(line[1:], "\r\n")
		n, _ := strconv.Atoi(text)
		switch {
		case text == "-1":
			return "nil"
		case line[0] == '$':
			b := make([]byte, n+2)
			io.ReadFull(in, b)
			return string(b[:n])
		case line[0] == '*':
			var all []string
			for range n {
				all = append(all, reply())
			}
			return strings.Join(all, " ")
		}
		return text
	}
	return reply()
}

// lines joins the lines of a transcript.
func lines(s ...string) string { return strings.Join(s, "\n") + "\n" }
