package mutants

import (
	"bytes"
	"encoding/binary"
	"net"
	"sync/atomic"

	"jobwire/codec"
	protocol "jobwire/codec/gearman"
	"jobwire/refserver/inject"
)

// packets are faults in the handling of packet headers and streams (section "Binary Packet").
var packets = []mutantSpec{
	{Name: "magic-unchecked", About: "The server checks only the first half of the magic.",
		KilledBy: "packet.magic-unknown", Edit: patch(func(head []byte) {
			if head[3] != 'S' {
				copy(head[1:], "REQ")
			}
		})},
	{Name: "magic-in-small-letters", About: "The server accepts the magic of a request in lower case.",
		KilledBy: "packet.magic-unknown[magic=lower]", Edit: patch(func(head []byte) {
			if string(head[:4]) == "\x00req" {
				copy(head[1:], "REQ")
			}
		})},
	{Name: "worker-with-the-magic-of-responses", About: "The server accepts GRAB_JOB_UNIQ with the magic of responses, and does not reply.",
		KilledBy: "packet.magic-of-responses[packet=grab-uniq]", Edit: patch(func(head []byte) {
			if head[3] == 'S' && head[7] == 30 {
				head[3], head[7] = 'Q', 4
			}
		})},
	{Name: "ninth-bit-of-type-ignored", About: "The server ignores the ninth bit of a packet type.",
		KilledBy: "packet.type-large[type=x00000110]", Edit: patch(func(head []byte) {
			if head[4] == 0 && head[5] == 0 {
				head[6] &^= 1
			}
		})},
	{Name: "little-endian-understood", About: "The server accepts little-endian packet types.",
		KilledBy: "packet.little-endian packet.type-large", Edit: patch(func(head []byte) {
			if n := binary.LittleEndian.Uint32(head[4:]); n > 0 && n < 1<<8 {
				binary.BigEndian.PutUint32(head[4:], n)
			}
		})},
	{Name: "header-in-pieces-lost", About: "The server discards a packet header that arrives in more than one segment.",
		KilledBy: "packet.in-pieces packet.one-and-a-half", Edit: discardIncomplete(func(s *stream, rest []byte) bool { return len(rest) > 0 && len(rest) < 12 && rest[0] == 0 })},
	{Name: "answers-at-the-end-of-input", About: "The server sends no replies while it has received only part of the next packet.",
		KilledBy: "packet.one-and-a-half", Edit: inject.Wrap(wholeMessages)},
	{Name: "full-segment-answered-by-half", About: "If one segment holds two packets of equal length, the server processes the second only when more data arrives.",
		KilledBy: "packet.two-in-a-segment", Edit: inject.Wrap(func(c net.Conn) net.Conn {
			return inject.Filtered(c, func(p []byte) []byte {
				n := packetSize(p)
				if n == 0 || 2*n > len(p) || !bytes.Equal(p[:12], p[n:n+12]) || p[7] != 16 {
					return p
				}
				return p[:n]
			})
		})},
	{Name: "magic-searched-in-data", About: "The server ends a packet where its data contains the magic of a request.",
		KilledBy: "packet.data-like-a-message submit.workload-like-a-message", Edit: inject.Decode(func(s codec.Session, data []byte, f *codec.Frame) (int, error) {
			if n := packetSize(data); n > 12 && n <= len(data) {
				if at := bytes.Index(data[12:n], []byte("\x00REQ")); at >= 0 {
					data = bytes.Clone(data[:12+at])
					binary.BigEndian.PutUint32(data[8:], uint32(at))
				}
			}
			return s.Decode(codec.Peer, data, f)
		})},
	{Name: "sizes-overflow", About: "The server adds the length of the header to sizes in 32 bits.",
		KilledBy: "packet.size-highest", Edit: patch(func(head []byte) {
			if n := binary.BigEndian.Uint32(head[8:]); n+12 < 12 {
				binary.BigEndian.PutUint32(head[8:], n+12)
			}
		})},
	{Name: "sizes-signed", About: "The server reads sizes as signed numbers and treats negative ones as 0.",
		KilledBy: "packet.size-highest", Edit: patch(func(head []byte) {
			if head[8] >= 0x80 {
				clear(head[8:12])
			}
		})},
	{Name: "cut-off-packet-ends-the-server", About: "The server crashes when a connection closes in the middle of a packet.",
		KilledBy: "packet.cut-off", Edit: crashOnIncomplete(func(s *stream) bool { return s.left > 0 })},
	{Name: "magic-alone-ends-the-server", About: "The server crashes when a connection closes after the magic of a packet.",
		KilledBy: "packet.cut-off[head=4,how=closes] packet.cut-off[head=4,how=half-closes] packet.cut-off[head=4,how=resets]",
		Edit:     crashOnIncomplete(func(s *stream) bool { return len(s.head) == 4 })},

	// Arguments.

	// Handles and numbers.
	{Name: "schedule-range-unchecked", About: "The server accepts numbers out of range in SUBMIT_JOB_SCHED.",
		KilledBy: "number.schedule-out-of-range", Codec: codec.Options{Waive: []codec.RuleID{protocol.RuleRange}}},
	{Name: "echo-of-seven-bits", About: "The server clears the highest bit of every byte in ECHO_RES.",
		KilledBy: "echo.bodies", Edit: inject.Rewrite("ECHO_RES", 0, nil, func(v string) string {
			out := []byte(v)
			for i := range out {
				out[i] &= 0x7f
			}
			return string(out)
		})},
}

// crashOnIncomplete crashes the server when a connection closes in the middle of a packet of which the condition holds.
func crashOnIncomplete(is func(s *stream) bool) inject.Edit {
	return func(s *inject.Server) {
		var cutOff atomic.Bool
		s.Wrap = func(c net.Conn) net.Conn {
			var s stream
			return inject.Reading(c, func(p []byte) (int, error) {
				n, err := c.Read(p)
				s.whole(p[:n])
				if err != nil && is(&s) {
					cutOff.Store(true)
				}
				return n, err
			})
		}
		inject.Crash(inject.Closed, func(*message) bool { return cutOff.Load() })(s)
	}
}
