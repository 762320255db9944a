package audit

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"

	"jobwire/codec"
	"jobwire/codec/gearman"
)

// TestRows: the tables name rules and types that there are.
func TestRows(t *testing.T) {
	for p, list := range occasions {
		for _, o := range list {
			for id := range strings.FieldsSeq(o.rules) {
				if p.Rule(codec.RuleID(p.Name+"."+id)) == nil {
					t.Errorf("%s has no rule %s", p.Name, id)
				}
			}
			if kinds[o.types] != nil {
				continue
			}
			for name := range strings.FieldsSeq(o.types) {
				if typ := p.TypeNamed(name); typ == nil || !typ.Sends(o.heard) {
					t.Errorf("%s: the %s sends no %s", p.Name, o.heard, name)
				}
			}
		}
	}
	for p, sides := range sights {
		for side, rows := range sides {
			for name := range rows {
				if typ := p.TypeNamed(name); typ == nil || !typ.Sends(codec.Side(side)) {
					t.Errorf("%s: the %s sends no %s", p.Name, codec.Side(side), name)
				}
			}
		}
	}
	for i := range dialects {
		d := &dialects[i]
		if d.refusal != nil && len(d.message(d.refusal, nil)) == 0 {
			t.Errorf("%s is nothing", d.refusal)
		}
		if d.like != nil && !bytes.HasPrefix(d.message([]string{d.needless}, []byte("\x00\xff\x00\x01 ")), []byte("\x00\xff\x00\x01")) {
			t.Errorf("%s is not of the conversation", d.needless)
		}
		if d.name == "" {
			continue
		}
		for _, name := range []string{"1", "42", "18446744073709551615", "H:lap:7", "H:x:xx"} {
			if got := d.short(d.long(name)); got != name {
				t.Errorf("%s: %s becomes %s", d.protocol.Name, name, got)
			}
		}
	}
}

// proxied serves what connects by answer, and returns the address of an audit before it.
func proxied(t *testing.T, answer func(*net.TCPConn)) (string, *Auditor) {
	t.Helper()
	behind, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	front, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	a := New(Options{Protocol: gearman.Protocol, Server: true})
	p := &Proxy{Auditor: a, Dial: func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", behind.Addr().String())
	}}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() { p.Serve(ctx, front) })
	all.Go(func() {
		for {
			c, err := behind.Accept()
			if err != nil {
				return
			}
			all.Go(func() { answer(c.(*net.TCPConn)) })
		}
	})
	t.Cleanup(func() {
		cancel()
		behind.Close()
		all.Wait()
	})
	return front.Addr().String(), a
}

// TestTransparent: whatever passes comes out as it went in, and so do the ends of connections.
func TestTransparent(t *testing.T) {
	addr, a := proxied(t, func(c *net.TCPConn) {
		defer c.Close()
		io.Copy(c, c)
	})
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	sent := make([]byte, 3<<20)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range sent {
		sent[i] = byte(r.Uint32())
	}
	copy(sent, "\x00REQ\x00\x00\x00\x09\x00\x00\x00\x00") // one legal packet, and what is none
	go func() {
		c.Write(sent)
		c.(*net.TCPConn).CloseWrite()
	}()
	got, err := io.ReadAll(c)
	if err != nil || !bytes.Equal(got, sent) {
		t.Errorf("%d bytes went in, %d came out, %v", len(sent), len(got), err)
	}
	if a.Report().Messages[codec.Peer] == 0 {
		t.Error("nothing was heard")
	}
}

// TestResets: a connection that one end breaks off is broken off at the other.
func TestResets(t *testing.T) {
	addr, _ := proxied(t, func(c *net.TCPConn) {
		io.ReadFull(c, make([]byte, 1))
		c.SetLinger(0)
		c.Close()
	})
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.Write([]byte{0})
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("got %v", err)
	}
}

// TestSegmentation: what is found does not depend on the pieces in which it comes.
func TestSegmentation(t *testing.T) {
	grab := "\x00REQ\x00\x00\x00\x09\x00\x00\x00\x00"
	said := []byte(grab + "\x00REQ\x00\x00\x00\x0d\x00\x00\x00\x05H:a:1" + grab + "\x00REQ\x00\x00\x00\x4d\x00\x00\x00\x00" + grab)
	for size := 1; size <= len(said); size++ {
		a := New(Options{Protocol: gearman.Protocol})
		l := a.open()
		for b := said; len(b) > 0; b = b[min(size, len(b)):] {
			a.hear(l, codec.Peer, b[:min(size, len(b))])
		}
		r := a.Report()
		var rules []string
		for _, b := range r.Breaches {
			rules = append(rules, string(b.Rule.ID))
		}
		want := "gearman.worker.announces-first gearman.args.missing gearman.packet.type-known"
		if got := strings.Join(rules, " "); got != want || r.Messages[codec.Peer] != 5 {
			t.Fatalf("in pieces of %d: %s, %d messages", size, got, r.Messages[codec.Peer])
		}
	}
}
