package audit

import (
	"bytes"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"jobwire/codec"
	"jobwire/codec/beanstalk"
	"jobwire/codec/danga"
	"jobwire/codec/gearman"
	"jobwire/codec/gearmonkey"
	"jobwire/internal/transport"
)

// TestConnectionThatEndsInsideAMessage: it is a violation if a side closes or resets the connection in the middle of a
// message before the other side has ended the connection. The bytes of the message are in the report.
func TestConnectionThatEndsInsideAMessage(t *testing.T) {
	for _, tt := range []struct {
		protocol *codec.Protocol
		before   string // a request to which the bytes of the server are a reply
		from     codec.Side
		data     string
	}{
		{gearman.Protocol, "", codec.Peer, "\x00REQ\x00\x00\x00\x10\x00\x00\x00\x05ab"},
		{gearman.Protocol, "\x00REQ\x00\x00\x00\x10\x00\x00\x00\x02ab", codec.Server, "\x00RES\x00\x00"},
		{gearman.Protocol, "status\n", codec.Server, "f\t0\t0\t0\n"},
		{beanstalk.Protocol, "", codec.Peer, "put 0 0 60 5\r\nabc"},
		{beanstalk.Protocol, "", codec.Peer, "put 0 0 60 0\r\n"},
		{beanstalk.Protocol, "", codec.Peer, "delete 1"},
		{beanstalk.Protocol, "reserve\r\n", codec.Server, "RESERVED 1 5\r\nabc"},
		{gearmonkey.Protocol, "", codec.Peer, "*2\r\n$3\r\nGET\r\n$1\r\n"},
		{gearmonkey.Protocol, "*2\r\n$3\r\nGET\r\n$1\r\nx\r\n", codec.Server, "$5\r\nab"},
		{danga.Protocol, "", codec.Peer, "GEAR\x04\x00\x00\x00\x0arev"},
		{danga.Protocol, "GEAR\x04\x00\x00\x00\x0arev\x00\x00\x00\x01abc", codec.Server, "GEAR\x05"},
	} {
		for name, end := range map[string]struct {
			act  func(sender, other net.Conn)
			want int
		}{
			"close": {func(sender, _ net.Conn) { sender.Close() }, 1},
			"half-close": {func(sender, other net.Conn) {
				transport.CloseWrite(sender)
				io.Copy(io.Discard, other)
				other.Close()
			}, 1},
			"reset": {func(sender, _ net.Conn) { transport.Reset(sender) }, 1},
			"the other side first": {func(sender, other net.Conn) {
				transport.CloseWrite(other)
				io.Copy(io.Discard, sender)
				sender.Close()
			}, 0},
		} {
			synctest.Test(t, func(t *testing.T) {
				accepted := make(chan net.Conn)
				client, a := proxied(t, tt.protocol, func(c net.Conn) { accepted <- c })
				server := <-accepted
				defer server.Close()
				sides := [2]net.Conn{codec.Peer: client, codec.Server: server}
				sender, other := sides[tt.from], sides[tt.from.Other()]
				pass := func(from, to net.Conn, data string) {
					io.WriteString(from, data)
					if _, err := io.ReadFull(to, make([]byte, len(data))); err != nil {
						t.Fatal(err)
					}
				}
				pass(client, server, tt.before)
				pass(sender, other, tt.data)
				end.act(sender, other)
				io.Copy(io.Discard, other)
				r := a.Report()
				if r.Violations() != end.want {
					t.Fatalf("%s %s: %q: expected %d violations, got %d: %v", tt.protocol.Name, name, tt.data, end.want,
						r.Violations(), r.BrokenRules)
				}
				if end.want == 0 {
					return
				}
				if b := r.BrokenRules[0]; b.Rule.ID != tt.protocol.Complete || b.By != tt.from || b.Rule.Text == "" ||
					!bytes.Equal(b.First[0].Frame.Raw, []byte(tt.data)) {
					t.Errorf("%s by the %s: %q", b.Rule.ID, b.By, b.First[0].Frame.Raw)
				}
			})
		}
	}
}

// TestPeerThatStopsInsideAMessage: a client that has stopped in the middle of a message violates the same rule when the
// audit ends, unless its bytes are still being forwarded, or the message has just begun.
func TestPeerThatStopsInsideAMessage(t *testing.T) {
	for _, tt := range []struct {
		name   string
		silent time.Duration
		blocks bool // the server does not read
		want   int
	}{
		{name: "silent for 2 s", silent: 2 * time.Second, want: 1},
		{name: "just begun"},
		{name: "being forwarded", silent: 2 * time.Second, blocks: true},
	} {
		synctest.Test(t, func(t *testing.T) {
			a := New(Options{Protocol: beanstalk.Protocol})
			c := a.open()
			a.observe(c, codec.Peer, []byte("put 0 0 60 2\r\nab"))
			if !tt.blocks {
				a.forwarded(c, codec.Peer)
			}
			time.Sleep(tt.silent)
			a.ends(c, codec.Peer, false, false)
			a.ends(c, codec.Server, false, false)
			r := a.Report()
			if r.Violations() != tt.want {
				t.Fatalf("%s: expected %d violations, got %v", tt.name, tt.want, r.BrokenRules)
			}
			if tt.want > 0 && !strings.Contains(r.BrokenRules[0].First[0].Err.Error(), "nothing more for 2s") {
				t.Errorf("%s: %v", tt.name, r.BrokenRules[0].First[0].Err)
			}
		})
	}
}

// TestUnansweredRequest: if a server has not replied for a long time, this is reported when the connection ends, unless
// the reply may depend on a job.
func TestUnansweredRequest(t *testing.T) {
	for _, tt := range []struct {
		protocol *codec.Protocol
		requests string
		reply    string
		want     string // the request in the report; "": no report
	}{
		{beanstalk.Protocol, "stats-job 1\r\n", "", "stats-job"},
		{beanstalk.Protocol, "stats-job 1\r\n", "NOT_FOUND\r\n", ""},
		{beanstalk.Protocol, "use a\r\nuse b\r\n", "USING a\r\n", "use"},
		{beanstalk.Protocol, "reserve\r\nuse a\r\n", "", ""},
		{beanstalk.Protocol, "reserve-with-timeout 0\r\n", "", "reserve-with-timeout"},
		{gearman.Protocol, "\x00REQ\x00\x00\x00\x10\x00\x00\x00\x02ab", "", "ECHO_REQ"},
		{gearman.Protocol, "\x00REQ\x00\x00\x00\x01\x00\x00\x00\x01f", "", ""},
		{gearmonkey.Protocol, "*2\r\n$3\r\nGET\r\n$1\r\nx\r\n", "", "GET"},
		{gearmonkey.Protocol, "*3\r\n$5\r\nBRPOP\r\n$1\r\nx\r\n$1\r\n0\r\n", "", ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			a := New(Options{Protocol: tt.protocol, Server: true})
			c := a.open()
			a.observe(c, codec.Peer, []byte(tt.requests))
			a.observe(c, codec.Server, []byte(tt.reply))
			time.Sleep(slowReply)
			a.ends(c, codec.Peer, false, true)
			a.ends(c, codec.Server, false, true)
			r, got := a.Report(), ""
			for _, b := range r.BrokenRules {
				if got = b.First[0].Err.Detail; b.Rule.ID != tt.protocol.Answered || b.By != codec.Server {
					t.Errorf("%q: %s by the %s", tt.requests, b.Rule.ID, b.By)
				}
			}
			if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
				t.Errorf("%q: got %q, want a mention of %q", tt.requests, got, tt.want)
			}
		})
	}
}
