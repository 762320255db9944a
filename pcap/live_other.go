//go:build !linux

package pcap

import (
	"context"
	"fmt"
	"io"
)

// Live reads packets from an interface. It is implemented only on Linux.
type Live struct{}

// OpenLive returns an error that explains the alternative.
func OpenLive(_ context.Context, name string, _ ...uint16) (*Live, error) {
	return nil, fmt.Errorf("%s: capturing on an interface is supported on Linux only. Capture with tcpdump: sudo tcpdump -i %s -U -w - | jobwire decode -", name, name)
}

// OnIdle does nothing.
func (*Live) OnIdle(func()) {}

// Dropped returns 0.
func (*Live) Dropped() int { return 0 }

// Close does nothing.
func (*Live) Close() error { return nil }

// Next returns [io.EOF].
func (*Live) Next(*Packet) error { return io.EOF }
