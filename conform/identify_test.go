package conform_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"jobwire/catalog"
	"jobwire/codec/gearman"
	"jobwire/conform"
	"jobwire/conform/mutanttest"
	"jobwire/internal/target"
	"jobwire/refserver"
	"jobwire/refserver/inject"
)

// TestOtherProtocol tests each reference server with the suite of each other protocol: the run ends at once and reports the
// protocol of the server.
func TestOtherProtocol(t *testing.T) {
	t.Parallel()
	for _, server := range catalog.All() {
		for _, tested := range catalog.All() {
			t.Run(server.Protocol.Name+" as "+tested.Protocol.Name, func(t *testing.T) {
				t.Parallel()
				suite, err := mutanttest.Load(t, tested.Protocol).About("")
				if err != nil {
					t.Fatal(err)
				}
				suite.Cases = suite.Cases[:3]
				report := &conform.Report{Protocol: tested.Protocol, Results: run(t, conform.Runner{Start: serving(server)}, suite)}
				want := ""
				if server != tested {
					want = "answers as a server of " + server.Protocol.Title
				}
				if got := report.Unreachable(); (got == "") != (want == "") || !strings.Contains(got, want) {
					t.Errorf("%q, want %q", got, want)
				}
			})
		}
	}
}

// TestBrokenProbes tests servers that do not answer the requests with which their protocol is identified, refuse them or
// answer them wrongly. They are not servers of another protocol.
func TestBrokenProbes(t *testing.T) {
	t.Parallel()
	wrong := map[string]string{"gearman": "ERROR code text", "beanstalk": "UNKNOWN_COMMAND", "danga": "noop",
		"gearmonkey": `error "ERR unknown command"`}
	for _, e := range catalog.All() {
		for _, how := range []string{"drop from-peer *", "answer from-peer * " + wrong[e.Protocol.Name], "close from-peer *"} {
			synctest.Test(t, func(t *testing.T) {
				serve := func(ctx context.Context, ln net.Listener) error {
					so := refserver.Options{Protocol: e.Protocol}
					m, err := (&inject.Protocol{Protocol: e.Protocol}).Wrap(e.New(), &so, how)
					if err != nil {
						return err
					}
					return refserver.New(m, so).Serve(ctx, ln)
				}
				server, err := target.InMemory(t.Context(), e.Protocol.Name, serve)
				if err != nil {
					t.Fatal(err)
				}
				defer server.Stop()
				if err := conform.CheckProtocol(t.Context(), e.Protocol, server); err != nil {
					t.Errorf("%s, %s: %v", e.Protocol.Name, how, err)
				}
			})
		}
	}
}

// TestSlowTLS tests a server that uses TLS and is so slow that its reply to a handshake takes seconds. Without --tls, no case
// runs against it.
func TestSlowTLS(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server, err := target.InMemory(t.Context(), "slow", func(_ context.Context, ln net.Listener) error {
			for {
				c, err := ln.Accept()
				if err != nil {
					return nil
				}
				go func() {
					defer c.Close()
					first := make([]byte, 1)
					if c.Read(first); first[0] == 0x16 { // a handshake; other bytes end the connection
						time.Sleep(3 * time.Second)
						c.Write([]byte{0x15, 3, 3, 0, 2, 2, 40}) // an alert: the handshake failed
					}
				}()
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		defer server.Stop()
		err = conform.CheckProtocol(t.Context(), gearman.Protocol, server)
		if err == nil || !strings.Contains(err.Error(), "it uses TLS") {
			t.Errorf("got %v, want that it uses TLS", err)
		}
	})
}
