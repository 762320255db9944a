package mutants

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"syscall"
	"time"

	"jobwire/refserver/inject"
)

// segments are faults in how the server reads from connections.
var segments = []mutantSpec{
	{Name: "short-first-read-dropped", About: "The server discards a first segment that is shorter than a packet header.",
		KilledBy: "transport.in-pieces", Edit: inject.Wrap(func(c net.Conn) net.Conn {
			first := true
			return inject.Filtered(c, func(p []byte) []byte {
				if was := first; was {
					first = false
					if len(p) < 9 {
						return nil
					}
				}
				return p
			})
		})},
	{Name: "rest-of-segment-dropped", About: "The server discards the bytes of a segment after the last complete packet.",
		KilledBy: "transport.one-and-a-half", Edit: inject.Wrap(func(c net.Conn) net.Conn {
			return inject.Reading(c, func(p []byte) (int, error) {
				n, err := c.Read(p)
				whole := 0
				for size := packet(p[:n]); size > 0; size = packet(p[whole:n]) {
					whole += size
				}
				if whole == 0 || n == len(p) {
					return n, err
				}
				return whole, err
			})
		})},
	{Name: "fourth-packet-dropped", About: "The server ignores all packets after the third in a segment that announces the name \"together\".",
		KilledBy: "transport.in-a-segment", Edit: inject.Filter(func(p []byte) []byte {
			kept := 0
			for range 3 {
				kept += packet(p[kept:])
			}
			if bytes.HasPrefix(p, []byte("GEAR\x01\x00\x00\x00\x08together")) {
				return p[:kept]
			}
			return p
		})},
	{Name: "packet-blocks-others", About: "The server creates no jobs while a packet of another connection is incomplete.",
		KilledBy: "transport.cut-off", Edit: inject.Blocked("job_create_req", func(b []byte) bool { return len(b) >= 9 })},
	{Name: "reset-noticed-late", About: "The server notices a connection reset one second late.",
		KilledBy: "retry.worker-breaks-off retry.types", Edit: inject.Wrap(func(c net.Conn) net.Conn {
			return inject.Reading(c, func(p []byte) (int, error) {
				n, err := c.Read(p)
				if errors.Is(err, syscall.ECONNRESET) {
					time.Sleep(time.Second)
				}
				return n, err
			})
		})},
}

// packet returns the length of the packet that p begins with, or 0 if the packet is incomplete.
func packet(p []byte) int {
	if len(p) < 9 {
		return 0
	}
	n := 9 + uint64(binary.BigEndian.Uint32(p[5:]))
	if n > uint64(len(p)) {
		return 0
	}
	return int(n)
}
