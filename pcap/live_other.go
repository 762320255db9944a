//go:build !linux

package pcap

import (
	"context"
	"fmt"
)

// live is implemented only on Linux.
type live struct{ Source }

func (*live) Close() error { return nil }

// openLive returns an error that explains the alternative.
func openLive(_ context.Context, name string, _ ...uint16) (*live, error) {
	return nil, fmt.Errorf("%s: capturing on an interface is supported on Linux only. Capture with tcpdump: sudo tcpdump -i %s -U -w - | jobwire decode -", name, name)
}
