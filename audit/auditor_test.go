package audit

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"jobwire/codec"
	"jobwire/codec/beanstalk"
	"jobwire/codec/danga"
	"jobwire/codec/gearman"
	"jobwire/codec/gearmonkey"
	"jobwire/internal/target"
	"jobwire/internal/transport"
)

// TestProtocolFaults: the contract of a protocol contains everything that the fault profiles need.
func TestProtocolFaults(t *testing.T) {
	type found struct{ refusal, wake, ends, renames bool }
	for _, tt := range []struct {
		protocol *codec.Protocol
		want     found
		other    string // a message of a conversation
		ids      []string
	}{
		{gearman.Protocol, found{true, true, true, true}, "\x00REQ\x00\x00\x00\x09\x00\x00\x00\x00",
			[]string{"H:lap:7", "H:x:xx", "1"}},
		{beanstalk.Protocol, found{true, false, false, true}, "reserve\r\n", []string{"1", "42", "18446744073709551615"}},
		{gearmonkey.Protocol, found{true, false, false, false}, "*1\r\n$4\r\nPING\r\n", nil},
		{danga.Protocol, found{false, true, false, true}, "\x00\xff\x00\x01\x06\x00\x00\x00\x00",
			[]string{"H:lap:7", "H:x:xx"}},
	} {
		d, name := newProtocolFaults(tt.protocol), tt.protocol.Name
		if got := (found{d.refusal != nil, d.wake != nil, d.ends != nil, d.renames}); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", name, got, tt.want)
		}
		other := codec.Frame{From: codec.Peer, Raw: []byte(tt.other)}
		for _, m := range []*codec.Message{d.refusal, {Type: d.wake}} {
			if m == nil || m.Type == nil {
				continue
			}
			b := d.encode(codec.Server, m, &other)
			if len(b) == 0 || tt.protocol == danga.Protocol && !bytes.HasPrefix(b, other.Raw[:4]) {
				t.Errorf("%s: %s is encoded as %q", name, m.Type.Name, b)
			}
		}
		for _, typ := range tt.protocol.Types {
			if i := typ.At(codec.JobID); i >= 0 && d.renames {
				fd := typ.FieldAt(i)
				for _, id := range tt.ids {
					if long := rename(fd, id, math.MaxUint64); long == id || rename(fd, long, math.MaxUint64) != id {
						t.Errorf("%s: %s becomes %s, and %s", name, id, long, rename(fd, long, math.MaxUint64))
					}
				}
			}
		}
	}
}

// TestServerMessagesAreSplitAfterTheirHeader: a message of the server is divided after its header, or after its first
// line.
func TestServerMessagesAreSplitAfterTheirHeader(t *testing.T) {
	for _, tt := range []struct {
		protocol *codec.Protocol
		message  string
		want     int
	}{
		{gearman.Protocol, "\x00RES\x00\x00\x00\x08\x00\x00\x00\x03H:1", 12},
		{gearman.Protocol, "f\t0\t0\t0\n.\n", 8},
		{danga.Protocol, "GEAR\x05\x00\x00\x00\x03J:1", 9},
		{beanstalk.Protocol, "RESERVED 1 1\r\nx\r\n", 14},
		{gearmonkey.Protocol, "*1\r\n$1\r\nx\r\n", 4},
	} {
		if got := newProtocolFaults(tt.protocol).head([]byte(tt.message)); got != tt.want {
			t.Errorf("%q: got %d, want %d", tt.message, got, tt.want)
		}
	}
}

// proxied starts an auditing proxy in memory, with a server that handles each connection with answer. It returns a
// connection to the proxy.
func proxied(t *testing.T, protocol *codec.Protocol, answer func(net.Conn)) (net.Conn, *Auditor) {
	t.Helper()
	serve := func(ctx context.Context, ln net.Listener) error {
		for {
			c, err := ln.Accept()
			if err != nil {
				return err
			}
			answer(c)
		}
	}
	upstream, err := target.InMemory(t.Context(), "upstream", serve)
	if err != nil {
		t.Fatal(err)
	}
	a := New(Options{Protocol: protocol, Server: true})
	p := &Proxy{Auditor: a, Dial: func(ctx context.Context) (net.Conn, error) { return target.Dial(ctx, upstream) }}
	front, err := target.InMemory(t.Context(), "proxy", p.Serve)
	if err != nil {
		t.Fatal(err)
	}
	c, err := target.Dial(t.Context(), front)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c, a
}

// TestProxyForwardsBytesUnchanged: the proxy forwards bytes and the ends of connections unchanged.
func TestProxyForwardsBytesUnchanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, a := proxied(t, gearman.Protocol, func(c net.Conn) {
			defer c.Close()
			io.Copy(c, c)
		})
		sent := make([]byte, 3<<20)
		r := rand.New(rand.NewPCG(1, 2))
		for i := range sent {
			sent[i] = byte(r.Uint32())
		}
		copy(sent, "\x00REQ\x00\x00\x00\x09\x00\x00\x00\x00") // one valid packet, then invalid bytes
		go func() {
			c.Write(sent)
			transport.CloseWrite(c)
		}()
		got, err := io.ReadAll(c)
		if err != nil || !bytes.Equal(got, sent) {
			t.Errorf("%d bytes went in, %d came out, %v", len(sent), len(got), err)
		}
		if a.Report().Messages[codec.Peer] == 0 {
			t.Error("nothing was heard")
		}
	})
}

// TestProxyForwardsResets: a reset by one side is forwarded to the other side.
func TestProxyForwardsResets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := proxied(t, gearman.Protocol, func(c net.Conn) {
			io.ReadFull(c, make([]byte, 1))
			transport.Reset(c)
		})
		c.Write([]byte{0})
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("got %v", err)
		}
	})
}

// TestSegmentation: the findings do not depend on the segmentation.
func TestSegmentation(t *testing.T) {
	grab := "\x00REQ\x00\x00\x00\x09\x00\x00\x00\x00"
	said := []byte(grab + "\x00REQ\x00\x00\x00\x0d\x00\x00\x00\x05H:a:1" + grab +
		"\x00REQ\x00\x00\x00\x4d\x00\x00\x00\x00" + grab)
	for size := 1; size <= len(said); size++ {
		a := New(Options{Protocol: gearman.Protocol})
		l := a.open()
		for b := said; len(b) > 0; b = b[min(size, len(b)):] {
			a.observe(l, codec.Peer, b[:min(size, len(b))])
		}
		r := a.Report()
		var rules []string
		for _, b := range r.BrokenRules {
			rules = append(rules, string(b.Rule.ID))
		}
		want := "gearman.worker.announces-first gearman.args.missing gearman.packet.type-known"
		if got := strings.Join(rules, " "); got != want || r.Messages[codec.Peer] != 5 {
			t.Fatalf("in pieces of %d: %s, %d messages", size, got, r.Messages[codec.Peer])
		}
	}
}
