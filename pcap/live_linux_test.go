package pcap_test

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"jobwire/codec"
	"jobwire/pcap"
)

// perform sends messages over a connection, each after the previous one has arrived.
func perform(t *testing.T, l net.Listener, messages []said) {
	t.Helper()
	peer, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	ends := [2]net.Conn{codec.Peer: peer, codec.Server: server}
	for _, m := range messages {
		from, to := ends[m.from], ends[m.from.Other()]
		to.SetDeadline(time.Now().Add(20 * time.Second))
		if _, err := from.Write([]byte(m.raw)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(to, make([]byte, len(m.raw))); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLive captures conversations on the loopback device, with one port, and on all devices. Each message must
// be read once, though each packet passes twice, and no packets of other ports. On a busy machine, the kernel
// retransmits some segments.
func TestLive(t *testing.T) {
	for device, address := range map[string]string{"lo": "127.0.0.1:0", "any": "[::1]:0"} {
		for _, ex := range exchanges {
			t.Run(device+"/"+ex.protocol.Name, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				l, err := net.Listen("tcp", address)
				if err != nil && device == "any" {
					l, err = net.Listen("tcp", "127.0.0.1:0") // there is no IPv6
				}
				if err != nil {
					t.Fatal(err)
				}
				defer l.Close()
				port := l.Addr().(*net.TCPAddr).AddrPort().Port()
				live, err := pcap.OpenInterface(ctx, device, port)
				if err != nil {
					if strings.Contains(err.Error(), "CAP_NET_RAW") {
						t.Skip(err)
					}
					t.Fatal(err)
				}
				defer live.Close()
				r := rand.New(rand.NewPCG(5, 5))
				var want, got []said
				for range 20 {
					want = append(want, ex.make(r)...)
				}
				perform(t, l, want)
				cancel() // packets before this are still read
				d := pcap.NewDecoder(pcap.Options{}, func(it *pcap.Item) {
					if it.Kind == pcap.Message {
						got = append(got, said{it.From, string(it.Raw)})
					}
				})
				if err := d.Decode(live); err != nil {
					t.Fatal(err)
				}
				if st := d.Stats(); !slices.Equal(got, want) || st.Gaps+st.CutPackets+st.Truncated+st.Violations != 0 || 4*st.Duplicates > st.Segments || st.Connections != 1 {
					t.Errorf("%d messages, want %d: %+v", len(got), len(want), st)
				}
			})
		}
	}
	if _, err := pcap.OpenInterface(t.Context(), "no such device"); err == nil {
		t.Error("a device that does not exist is opened")
	}
}
