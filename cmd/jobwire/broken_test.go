package main

import (
	"bytes"
	"net"
	"strings"
	"testing"
	"testing/synctest"

	"jobwire/cmd/internal/cli"
	"jobwire/internal/transport"
)

// TestBrokenTargets runs commands on a target that accepts connections, but is not a job queue: no command reports
// success, and each says something about the target.
func TestBrokenTargets(t *testing.T) {
	t.Parallel()
	targets := map[string]func(net.Conn){
		"closes at once":   func(c net.Conn) { c.Close() },
		"resets":           func(c net.Conn) { transport.Reset(c) },
		"never answers":    func(net.Conn) {},
		"answers nonsense": func(c net.Conn) { c.Write([]byte("\x00nonsense\r\n")) },
		"answers as a web server": func(c net.Conn) {
			c.Write([]byte("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"))
			c.Close()
		},
	}
	for name, serve := range targets {
		for _, command := range []string{
			"conform gearman --run gearman.echo.* --run gearman.submit.created",
			"conform beanstalk --run beanstalk.put.inserted",
			"conform danga --run danga.*.*",
			"conform gearmonkey --run gearmonkey.*.* --level MUST",
			"play ../../corpus/gearman/example.wire",
			"fuzz gearman --count 20 --parallel 1",
			"fuzz beanstalk --count 20 --parallel 1",
			"bench run gearman --count 10 -q",
			"bench run beanstalk --count 10 -q",
			"bench run gearmonkey --count 10 -q",
			"bench search gearman --slo p99<1s --max-in-flight 16",
			"audit stress gearman plain",
			"audit stress beanstalk plain",
		} {
			t.Run(name+"/"+strings.Join(strings.Fields(command)[:2], " "), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					ln, err := transport.Listen(transport.Memory, nil)
					if err != nil {
						t.Fatal(err)
					}
					var open []net.Conn
					done := make(chan struct{})
					go func() {
						defer close(done)
						for {
							c, err := ln.Accept()
							if err != nil {
								return
							}
							open = append(open, c)
							serve(c)
						}
					}()
					args := append(strings.Fields(command), "--addr", transport.Name(ln))
					if args[0] == "fuzz" {
						args = append(args, "--findings", t.TempDir())
					}
					var out, complaints bytes.Buffer
					status := run(t.Context(), args, nil, &out, &complaints)
					ln.Close()
					<-done
					for _, c := range open {
						c.Close()
					}
					text := out.String() + complaints.String()
					if status != cli.StatusFailed && status != cli.StatusUnreachable || text == "" {
						t.Errorf("%q: status %d: %.2000s", args, status, text)
					}
				})
			})
		}
	}
}
