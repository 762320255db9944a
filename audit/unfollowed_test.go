package audit

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
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
// client is in the middle of a request. All requests are checked, also the illegal one at the end.
func TestDirectionsAreFollowedSeparately(t *testing.T) {
	const n = 2000
	for _, tt := range []struct {
		protocol      *codec.Protocol
		request       string
		illegal, rule string
	}{
		{gearman.Protocol, "\x00REQ\x00\x00\x00\x10\x00\x00\x00\x02ab", "\x00REQ\x00\x00\x00\x4d\x00\x00\x00\x00",
			"gearman.packet.type-known"},
		{danga.Protocol, "GEAR\x06\x00\x00\x00\x00", "GEAR\x4d\x00\x00\x00\x00", "danga.packet.type-known"},
		{beanstalk.Protocol, "put 0 0 60 3\r\nabc\r\n", "oops\r\n", "beanstalk.command.known"},
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
			t.Errorf("%s: expected %d requests and a violation of %s, got %d and %v", tt.protocol.Name, n+1, tt.rule,
				r.Messages[codec.Peer],
				r.BrokenRules)
		}
		for _, u := range r.Unfollowed {
			if u.Reason != afterIllegal {
				t.Errorf("%s: %v", tt.protocol.Name, u)
			}
		}
	}
}

// TestAfterAnIllegalMessage: after an illegal message, only the form of messages is checked. The report has this, for
// the connection and its bytes, and the audit has not passed. Other connections are not concerned.
func TestAfterAnIllegalMessage(t *testing.T) {
	echo := "\x00REQ\x00\x00\x00\x10\x00\x00\x00\x02ab"
	for _, tt := range []struct {
		name, illegal string
		from          codec.Side
		bytes         int
	}{
		{"a reply without its argument", "\x00RES\x00\x00\x00\x14\x00\x00\x00\x01x", codec.Server, 2 * len(echo)},
		{"a progress report without numbers", "\x00REQ\x00\x00\x00\x0c\x00\x00\x00\x03H:1", codec.Peer, 2 * len(echo)},
		{"a legal reply", "\x00RES\x00\x00\x00\x11\x00\x00\x00\x02ab", codec.Server, 0},
	} {
		a := New(Options{Protocol: gearman.Protocol})
		c, other := a.open(), a.open()
		a.observe(c, codec.Peer, []byte(echo))
		a.observe(c, tt.from, []byte(tt.illegal))
		for range 2 {
			a.observe(c, codec.Peer, []byte(echo))
			a.observe(other, codec.Peer, []byte(echo))
		}
		conns, bytes := 0, 0
		r := a.Report()
		for _, u := range r.Unfollowed {
			conns, bytes = conns+u.Connections, bytes+u.Bytes
			if u.Reason != afterIllegal || u.By != codec.Peer {
				t.Errorf("%s: %+v", tt.name, u)
			}
		}
		if bytes != tt.bytes || conns != min(1, tt.bytes) || (r.Incomplete() == "") != (tt.bytes == 0) {
			t.Errorf("%s: expected %d bytes that were not checked, got %d on %d connections", tt.name, tt.bytes, bytes, conns)
		}
	}
}

// TestUnknownRequestOfAReply: after a legal message that hides to which requests the replies belong, the audit counts the
// later messages of the connection, of which only the form is checked, and has not passed.
func TestUnknownRequestOfAReply(t *testing.T) {
	const submit = "\x00REQ\x00\x00\x00\x07\x00\x00\x00\x04a\x00\x00x"
	const ping = "*1\r\n$4\r\nPING\r\n"
	type message struct {
		from codec.Side
		raw  string
	}
	for _, tt := range []struct {
		name     string
		protocol *codec.Protocol
		first    []message
		later    string
	}{
		{"the confirmations of a subscription", gearmonkey.Protocol,
			[]message{{codec.Peer, "*2\r\n$9\r\nSUBSCRIBE\r\n$9\r\nchannel:f\r\n"}}, ping},
		{"an error while two submissions wait", gearman.Protocol, []message{{codec.Peer, submit}, {codec.Peer, submit},
			{codec.Server, "\x00RES\x00\x00\x00\x13\x00\x00\x00\x04a\x00b\x00"},
			{codec.Server, "\x00RES\x00\x00\x00\x08\x00\x00\x00\x01h"}}, submit},
		{"no such message", gearmonkey.Protocol, []message{{codec.Peer, ping}}, ""},
	} {
		a := New(Options{Protocol: tt.protocol})
		c := a.open()
		for _, m := range tt.first {
			a.observe(c, m.from, []byte(m.raw))
		}
		a.observe(c, codec.Peer, []byte(tt.later))
		switch r := a.Report(); {
		case tt.later == "" && len(r.Unfollowed) > 0:
			t.Errorf("%s: %v", tt.name, r.Unfollowed)
		case tt.later == "":
		case len(r.Unfollowed) != 1 || r.Unfollowed[0].Reason != repliesUnknown || r.Unfollowed[0].Bytes != len(tt.later):
			t.Errorf("%s: expected %d bytes that were not checked, got %+v", tt.name, len(tt.later), r.Unfollowed)
		}
	}
}

// TestConnectionsBeyondTheMemory: connections for which there is no memory are counted with their bytes, and the audit
// has not passed, although the form of their messages is checked.
func TestConnectionsBeyondTheMemory(t *testing.T) {
	const request, reply, conns = "reserve-with-timeout 0\r\n", "TIMED_OUT\r\n", 5
	a := New(Options{Protocol: beanstalk.Protocol})
	a.checks.Budget.Max = 60
	for range conns {
		c := a.open()
		for range 3 {
			a.observe(c, codec.Peer, []byte(request))
			a.observe(c, codec.Server, []byte(reply))
		}
		a.observe(c, codec.Peer, []byte("delete x\r\n"))
	}
	r := a.Report()
	if len(r.Unfollowed) != 2 || r.BrokenRules[0].Count != conns {
		t.Fatalf("got %v, %v", r.Unfollowed, r.BrokenRules)
	}
	peer, server := r.Unfollowed[0], r.Unfollowed[1]
	if n := peer.Connections; peer.By != codec.Peer || n < 2 || n >= conns || peer.Bytes != n*(3*len(request)+10) ||
		server.Connections != n || server.Bytes != n*3*len(reply) || !strings.Contains(r.Incomplete(), beyondMemory) {
		t.Errorf("got %+v", r.Unfollowed)
	}
}

// TestRefusedBeforeItsEnd: a server refuses a large request before it has received all of it. Its reply is checked
// after the request. If the request does not end, the reply is counted as not checked, with the reason.
func TestRefusedBeforeItsEnd(t *testing.T) {
	const begin, reply = "put 0 0 60 65536\r\nx", "JOB_TOO_BIG\r\n"
	rest := strings.Repeat("x", 65535) + "\r\n"
	for _, ends := range []bool{true, false} {
		a := New(Options{Protocol: beanstalk.Protocol, Server: true})
		c := a.open()
		a.observe(c, codec.Peer, []byte(begin))
		a.observe(c, codec.Server, []byte(reply))
		if ends {
			a.observe(c, codec.Peer, []byte(rest))
			a.observe(c, codec.Peer, []byte("list-tubes-watched\r\n"))
			a.observe(c, codec.Server, []byte("OK 14\r\n---\n- default\n\r\n"))
		}
		a.ends(c, codec.Peer, false, true)
		r := a.Report()
		var text, json strings.Builder
		r.WriteText(&text, TextOptions{})
		r.WriteJSON(&json)
		if ends {
			if len(r.BrokenRules) > 0 || r.Incomplete() != "" || !strings.Contains(json.String(), `"not_checked": []`) ||
				r.Messages[codec.Server] != 2 {
				t.Errorf("a request that ends: %s", text.String())
			}
			continue
		}
		line := fmt.Sprintf("not checked: %d bytes from the server", len(reply))
		for _, s := range []string{text.String(), r.Incomplete()} {
			if !strings.Contains(s, line) || !strings.Contains(s, "while a request was incomplete") {
				t.Errorf("%q is missing in %s", line, s)
			}
		}
		if !strings.Contains(json.String(), `"not_checked": [`+"\n    {\n      \"by\": \"server\"") {
			t.Errorf("%s", json.String())
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
		{gearman.Protocol, "\x00BAD\x00\x00\x00\x10\x00\x00\x00\x00", "\x00RES\x00\x00\x00\x0a\x00\x00\x00\x00",
			[2]int{codec.Peer: 18}},
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

// TestViolationAfterAnIllegalMessage: after any message with too few or too many arguments, or with a value out of
// range, a violation by other messages on the connection is reported, or the report says that they were not checked.
func TestViolationAfterAnIllegalMessage(t *testing.T) {
	for _, tt := range []struct {
		protocol      *codec.Protocol
		asks, replies string // break a rule together
		rule          codec.RuleID
	}{
		{gearman.Protocol, string(sample(gearman.Protocol, codec.Peer, codec.Complete)), "",
			"gearman.worker.uses-the-handle"},
		{danga.Protocol, string(sample(danga.Protocol, codec.Peer, codec.Complete)), "", "danga.complete.no-job"},
		{beanstalk.Protocol, "use a\r\n", "USING b\r\n", "beanstalk.use.using"},
		{gearmonkey.Protocol, "*5\r\n$5\r\nBRPOP\r\n$12\r\nqueue:a:high\r\n$14\r\nqueue:a:normal\r\n$11\r\nqueue:a:low\r\n" +
			"$1\r\n1\r\n", "*2\r\n$11\r\nqueue:b:low\r\n$1\r\n7\r\n",
			"gearmonkey.server.brpop"},
	} {
		second := func(a *Auditor, c *conn) *Report {
			a.observe(c, codec.Peer, []byte(tt.asks))
			a.observe(c, codec.Server, []byte(tt.replies))
			return a.Report()
		}
		a := New(Options{Protocol: tt.protocol, Server: true})
		if r := second(a, a.open()); !breaks(r.BrokenRules, tt.rule) || r.Incomplete() != "" {
			t.Errorf("%s: %v, %s", tt.protocol.Name, r.BrokenRules, r.Incomplete())
		}
		tested := 0
		for _, typ := range tt.protocol.Types {
			for from := range codec.Server + 1 {
				if !typ.Sends(from) {
					continue
				}
				for what, illegal := range malformed(tt.protocol, typ, from) {
					legal := true
					a := New(Options{Protocol: tt.protocol, Server: true, Message: func(_ string, _ *codec.Frame, bad *codec.Error) {
						legal = legal && bad == nil
					}})
					c := a.open()
					if a.observe(c, from, illegal); legal {
						continue
					}
					tested++
					if r := second(a, c); !breaks(r.BrokenRules, tt.rule) && r.Incomplete() == "" {
						t.Errorf("%s: %s of the %s with %s: no violation of %s and no unchecked bytes", tt.protocol.Name,
							typ.Name, from, what, tt.rule)
					}
				}
			}
		}
		t.Logf("%s: %d illegal messages", tt.protocol.Name, tested)
		if tested < len(tt.protocol.Types)/2 {
			t.Errorf("%s: %d illegal messages of %d types", tt.protocol.Name, tested, len(tt.protocol.Types))
		}
	}
}

// sample returns a legal message with an effect.
func sample(p *codec.Protocol, from codec.Side, does codec.Effect) []byte {
	for _, t := range p.Types {
		if t.Does == does && t.Sends(from) {
			b, _ := p.NewSession(codec.Options{}).Append(nil, from, t.Sample())
			return b
		}
	}
	return nil
}

// malformed returns variants of a message of the type, most of which are illegal, by what is wrong with them.
func malformed(p *codec.Protocol, t *codec.Type, from codec.Side) map[string][]byte {
	all := map[string][]byte{}
	add := func(what string, args [][]byte) {
		b, err := p.NewSession(codec.Options{WaiveAll: true}).Append(nil, from, &codec.Message{Type: t, Args: args})
		if err == nil && len(b) > 0 {
			all[what] = b
		}
	}
	args := t.Sample().Args
	add("an additional argument", append(slices.Clone(args), []byte("1")))
	for i := range args {
		add(fmt.Sprintf("the first %d arguments", i), args[:i])
		for _, v := range []string{"", "-1", "99999999999999999999999"} {
			wrong := slices.Clone(args)
			wrong[i] = []byte(v)
			add(fmt.Sprintf("%q as argument %d", v, i+1), wrong)
		}
	}
	return all
}
