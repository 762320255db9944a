package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"jobwire/codec"
	"jobwire/internal/transport"
	"jobwire/pcap"
)

// tap relays connections to a server, and records their traffic.
type tap struct {
	net.Listener
	to    string
	delay time.Duration // of each message, in virtual time

	mu     sync.Mutex
	events []pcap.Event
	next   int
	pumps  sync.WaitGroup
}

// tapped starts a relay to a server.
func tapped(t *testing.T, to string) *tap {
	t.Helper()
	ln, err := transport.Listen(transport.Local(to), nil)
	if err != nil {
		t.Fatal(err)
	}
	tp := &tap{Listener: ln, to: to}
	if strings.HasPrefix(to, transport.Memory) {
		tp.delay = time.Millisecond // more than the time between the packets of one event in a capture
	}
	tp.pumps.Go(func() {
		for {
			up, err := ln.Accept()
			if err != nil {
				return
			}
			down, err := new(transport.Dialer).Dial(context.Background(), to)
			if err != nil {
				up.Close()
				continue
			}
			id := tp.add(pcap.Event{Conn: -1, Kind: pcap.Opens})
			tp.pumps.Go(func() {
				var both sync.WaitGroup
				both.Go(func() { tp.pump(id, codec.Peer, up, down) })
				both.Go(func() { tp.pump(id, codec.Server, down, up) })
				both.Wait()
				up.Close()
				down.Close()
			})
		}
	})
	return tp
}

// add records an event. If Conn is negative, it assigns the next connection number. It returns the number.
func (tp *tap) add(e pcap.Event) int {
	tp.mu.Lock()
	defer tp.mu.Unlock()
	if e.Conn < 0 {
		e.Conn = tp.next
		tp.next++
	}
	e.At = time.Now()
	tp.events = append(tp.events, e)
	return e.Conn
}

// lingerTime is how long one end of a connection may still send after the other end has half-closed.
const lingerTime = 300 * time.Millisecond

// pump relays and records the bytes that one end sends.
func (tp *tap) pump(id int, from codec.Side, in, out net.Conn) {
	buf := make([]byte, 64<<10)
	for {
		n, err := in.Read(buf)
		if n > 0 {
			if tp.delay > 0 {
				<-time.After(tp.delay + time.Duration(id)*tp.delay/8) // so that the server reads in the order of the events
			}
			tp.add(pcap.Event{Conn: id, From: from, Kind: pcap.Data, Data: bytes.Clone(buf[:n])})
			if _, err := out.Write(buf[:n]); err != nil {
				io.Copy(io.Discard, in)
				return
			}
		}
		switch {
		case errors.Is(err, syscall.ECONNRESET):
			tp.add(pcap.Event{Conn: id, From: from, Kind: pcap.Resets})
			transport.Reset(out)
			return
		case errors.Is(err, io.EOF):
			tp.add(pcap.Event{Conn: id, From: from, Kind: pcap.HalfCloses})
			transport.CloseWrite(out)
			out.SetReadDeadline(time.Now().Add(lingerTime))
			return
		case err != nil:
			return
		}
	}
}

// capture stops the relay and returns a capture of the traffic. It leaves out the events of a connection after its first
// reset.
func (tp *tap) capture(t *testing.T) []byte {
	t.Helper()
	tp.Close()
	tp.pumps.Wait()
	n := 1 // of a server in memory
	if _, port, err := net.SplitHostPort(tp.to); err == nil {
		if n, err = net.LookupPort("tcp", port); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	w, err := pcap.NewWriter(&out, n)
	if err != nil {
		t.Fatal(err)
	}
	over := map[int]bool{}
	for _, e := range tp.events {
		if over[e.Conn] {
			continue
		}
		over[e.Conn] = e.Kind == pcap.Resets
		if err := w.Write(e); err != nil && e.Kind == pcap.Data {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
