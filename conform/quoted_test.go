package conform_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"jobwire/codec/beanstalk"
	"jobwire/conform"
	"jobwire/internal/target"
	"jobwire/refserver"
	beanstalkserver "jobwire/refserver/beanstalk"
)

// TestQuotedScalars demands that a Beanstalk server may quote the keys and values of its YAML.
func TestQuotedScalars(t *testing.T) {
	plain := serving(beanstalk.Protocol, func() refserver.Machine { return beanstalkserver.New(beanstalkserver.Options{}) })
	for name, quote := range map[string]func(string) string{
		"double":  func(s string) string { return `"` + s + `"` },
		"single":  func(s string) string { return `'` + s + `'` },
		"escaped": func(s string) string { return fmt.Sprintf(`"\x%02x%s"   # comment`, s[0], s[1:]) },
	} {
		t.Run(name, func(t *testing.T) {
			start := func(ctx context.Context) (target.Target, error) {
				server, err := plain(ctx)
				if err != nil {
					return nil, err
				}
				return target.Func(ctx, "quotes", func(ctx context.Context, ln net.Listener) error {
					defer server.Stop()
					return relay(ctx, ln, server.Addr(), func(from *bufio.Reader, to net.Conn) error {
						return quoteReplies(from, to, quote)
					})
				})
			}
			r := conform.Runner{Start: start, Parallel: 4, Timeout: 5 * time.Second}
			for _, res := range r.Run(t.Context(), load(t, beanstalk.Protocol), nil) {
				if res.Verdict != conform.Passed {
					t.Errorf("%s: %s\n%s", res.Case.ID, res.Verdict, text(res))
				}
			}
		})
	}
}

// relay passes on connections to addr, what the server says by way of replies.
func relay(ctx context.Context, ln net.Listener, addr string, replies func(from *bufio.Reader, to net.Conn) error) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		near, err := ln.Accept()
		if err != nil {
			return err
		}
		far, err := net.Dial("tcp", addr)
		if err != nil {
			near.Close()
			continue
		}
		stop := context.AfterFunc(ctx, func() { near.Close(); far.Close() })
		wg.Go(func() {
			io.Copy(far, near)
			far.(*net.TCPConn).CloseWrite()
		})
		wg.Go(func() {
			defer stop()
			replies(bufio.NewReader(far), near)
			near.Close()
			far.Close()
		})
	}
}

// quoteReplies copies replies, with the scalars of YAML bodies quoted.
func quoteReplies(from *bufio.Reader, to net.Conn, quote func(string) string) error {
	for {
		line, err := from.ReadString('\n')
		if err != nil {
			io.WriteString(to, line)
			return err
		}
		words := strings.Fields(line)
		size, body := 0, []byte(nil)
		if len(words) > 1 {
			switch words[0] {
			case "OK", "RESERVED", "FOUND":
				fmt.Sscan(words[len(words)-1], &size)
				body = make([]byte, size+2)
				if _, err := io.ReadFull(from, body); err != nil {
					return err
				}
			}
		}
		if words[0] == "OK" {
			var b strings.Builder
			for item := range strings.Lines(string(body[:size])) {
				item = strings.TrimSuffix(item, "\n")
				unquoted := func(s string) string { return quote(strings.Trim(s, `"`)) }
				if tube, ok := strings.CutPrefix(item, "- "); ok {
					item = "- " + unquoted(tube)
				} else if key, value, ok := strings.Cut(item, ": "); ok {
					key, _, _ = strings.Cut(quote(key), " ")
					item = key + ": " + unquoted(value)
				}
				b.WriteString(item + "\n")
			}
			line = fmt.Sprintf("OK %d\r\n", b.Len())
			body = []byte(b.String() + "\r\n")
		}
		if _, err := to.Write(append([]byte(line), body...)); err != nil {
			return err
		}
	}
}
