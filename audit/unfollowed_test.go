package audit

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"

	"jobwire/codec"
	"jobwire/codec/beanstalk"
	"jobwire/codec/danga"
	"jobwire/codec/gearman"
	"jobwire/codec/gearmonkey"
	"jobwire/internal/target"
)

// TestDirectionsAreFollowedSeparately: a server that echoes the requests, in pieces, sends illegal messages while the
// client is in the middle of a request. All requests are checked, also the illegal one at the end. What is not checked of
// the server is counted, with the reason.
func TestDirectionsAreFollowedSeparately(t *testing.T) {
	const n = 2000
	for _, tt := range []struct {
		protocol      *codec.Protocol
		request       string
		illegal, rule string
		skipped       string // the reason, in part; "": nothing is skipped
	}{
		{gearman.Protocol, "\x00REQ\x00\x00\x00\x10\x00\x00\x00\x02ab", "\x00REQ\x00\x00\x00\x4d\x00\x00\x00\x00", "gearman.packet.type-known", ""},
		{danga.Protocol, "GEAR\x06\x00\x00\x00\x00", "GEAR\x4d\x00\x00\x00\x00", "danga.packet.type-known", ""},
		{beanstalk.Protocol, "put 0 0 60 3\r\nabc\r\n", "oops\r\n", "beanstalk.command.known", "while a request was incomplete"},
	} {
		a := New(Options{Protocol: tt.protocol})
		c := a.open()
		sent, size := strings.Repeat(tt.request, n)+tt.illegal, 13
		for b := sent; b != ""; b = b[min(size, len(b)):] {
			piece := []byte(b[:min(size, len(b))])
			a.observe(c, codec.Peer, piece)
			a.observe(c, codec.Server, piece)
		}
		r := a.Report()
		if r.Messages[codec.Peer] != n+1 || len(r.BrokenRules) == 0 || !breaks(r.BrokenRules, codec.RuleID(tt.rule)) {
			t.Errorf("%s: expected %d requests and a violation of %s, got %d and %v", tt.protocol.Name, n+1, tt.rule, r.Messages[codec.Peer],
				r.BrokenRules)
		}
		var text, json strings.Builder
		r.WriteText(&text, TextOptions{})
		r.WriteJSON(&json)
		if tt.skipped == "" {
			if r.Incomplete() != "" || !strings.Contains(json.String(), `"not_checked": []`) {
				t.Errorf("%s: %v", tt.protocol.Name, r.Unfollowed)
			}
			continue
		}
		if len(r.Unfollowed) != 1 || r.Unfollowed[0].By != codec.Server || r.Unfollowed[0].Bytes < len(sent)-60 || r.Unfollowed[0].Bytes > len(sent) {
			t.Errorf("%s: expected about %d skipped bytes of the server, got %+v", tt.protocol.Name, len(sent), r.Unfollowed)
		}
		line := fmt.Sprintf("not checked: %d bytes from the server", r.Unfollowed[0].Bytes)
		for _, s := range []string{text.String(), r.Incomplete()} {
			if !strings.Contains(s, line) || !strings.Contains(s, tt.skipped) {
				t.Errorf("%s: %q is missing in %s", tt.protocol.Name, line, s)
			}
		}
		if !strings.Contains(json.String(), `"not_checked": [`+"\n    {\n      \"by\": \"server\"") {
			t.Errorf("%s: %s", tt.protocol.Name, json.String())
		}
	}
}

// TestOutage: connections for which the server cannot be reached are a line of the report, and no violation.
func TestOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := New(Options{Protocol: gearman.Protocol})
		p := &Proxy{Auditor: a, Dial: func(context.Context) (net.Conn, error) { return nil, errors.New("refused") }}
		front, err := target.InMemory(t.Context(), "proxy", p.Serve)
		if err != nil {
			t.Fatal(err)
		}
		defer front.Stop()
		c, err := target.Dial(t.Context(), front)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.Read(make([]byte, 1))
		var text, json strings.Builder
		a.Report().WriteText(&text, TextOptions{})
		a.Report().WriteJSON(&json)
		if !strings.Contains(text.String(), "could not be reached (connections: 1), first at 0.0 s: refused") ||
			!strings.Contains(json.String(), `"outage": {`) {
			t.Errorf("%s\n%s", &text, &json)
		}
	})
}

// TestRepliesAfterAnUnknownEnd: after a request whose end is unknown, the replies of a server of a binary protocol are
// checked. Those of a line-based protocol depend on the requests. The bytes of both sides are counted.
func TestRepliesAfterAnUnknownEnd(t *testing.T) {
	for _, tt := range []struct {
		protocol *codec.Protocol
		sent     string
		reply    string
		want     [2]int // skipped bytes
	}{
		{gearman.Protocol, "\x00BAD\x00\x00\x00\x10\x00\x00\x00\x00", "\x00RES\x00\x00\x00\x0a\x00\x00\x00\x00", [2]int{codec.Peer: 18}},
		{gearmonkey.Protocol, "*1\r\n:5\r\n", "-ERR Protocol error\r\n", [2]int{14, 21}},
	} {
		a := New(Options{Protocol: tt.protocol, Server: true})
		c := a.open()
		a.observe(c, codec.Peer, []byte(tt.sent))
		a.observe(c, codec.Server, []byte(tt.reply))
		a.observe(c, codec.Peer, []byte("abcdef"))
		r := a.Report()
		got := [2]int{}
		for _, u := range r.Unfollowed {
			got[u.By] += u.Bytes
		}
		if got != tt.want || breaks(r.BrokenRules, tt.protocol.Answered) {
			t.Errorf("%s: expected %v skipped bytes, got %v", tt.protocol.Name, tt.want, r.Unfollowed)
		}
	}
}
