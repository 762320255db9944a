package mutants

import (
	"bytes"
	"encoding/binary"
	"net"
	"sync/atomic"
	"time"

	"jobwire/codec"
	protocol "jobwire/codec/gearman"
	"jobwire/refserver/inject"
)

// packets are faults in what section "Binary Packet" says of headers and streams.
var packets = []row{
	{Name: "magic-unchecked", About: "The server checks only the first half of the magic.",
		Kills: "packet.magic-unknown", Edit: patch(func(head []byte) {
			if head[3] != 'S' {
				copy(head[1:], "REQ")
			}
		})},
	{Name: "wrong-magic-passed-over", About: "The server does not reply to a request with the magic of responses.",
		Kills: "packet.magic-of-responses", Fault: "drop ERROR when error-code=INVALID_MAGIC"},
	{Name: "type-0-passed-over", About: "The server does not reply to packet type 0.",
		Kills: "packet.type-0", Fault: "drop ERROR when error-text~*packet?type*got?0?*"},
	{Name: "unused-type-passed-over", About: "The server does not reply to the unused packet type 5.",
		Kills: "packet.type-5", Fault: "drop ERROR when error-text~*packet?type*got?5?*"},
	{Name: "type-behind-the-last-passed-over", About: "The server does not reply to packet type 43, one above the highest type.",
		Kills: "packet.type-43", Fault: "drop ERROR when error-text~*packet?type*got?43?*"},
	{Name: "types-signed", About: "The server crashes on packet types of 0x80000000 and above, which it reads as negative.",
		Kills: "packet.type-highest", Edit: inject.Crash(inject.Illegal, func(m *message) bool { return len(m.Frame.Raw) > 4 && m.Frame.Raw[0] == 0 && m.Frame.Raw[4] >= 0x80 })},
	{Name: "little-endian-understood", About: "The server accepts little-endian packet types.",
		Kills: "packet.little-endian", Edit: patch(func(head []byte) {
			if n := binary.LittleEndian.Uint32(head[4:]); n > 0 && n < 1<<8 {
				binary.BigEndian.PutUint32(head[4:], n)
			}
		})},
	{Name: "short-sizes-little-endian", About: "The server sends sizes from 256 to 65535 in little-endian order.",
		Kills: "packet.big-endian", Edit: inject.Out("ECHO_RES", nil, func(m *message) {
			if n := len(m.Frame.Raw) - 12; n > 0xff && n <= 0xffff {
				m.Raw = bytes.Clone(m.Frame.Raw)
				m.Raw[10], m.Raw[11] = m.Raw[11], m.Raw[10]
			}
		})},
	{Name: "client-responses-passed-over", About: "The server does not reply to STATUS_RES from a client.",
		Kills: "packet.types-of-the-server", Fault: "drop ERROR when error-text~*got?STATUS_RES?*"},
	{Name: "worker-responses-passed-over", About: "The server does not reply to NO_JOB from a worker.",
		Kills: "packet.types-for-workers", Fault: "drop ERROR when error-text~*got?NO_JOB?*"},
	{Name: "header-in-pieces-lost", About: "The server discards a packet header that arrives in more than one segment.",
		Kills: "packet.in-pieces packet.one-and-a-half", Edit: losing(func(s *stream, rest []byte) bool { return len(rest) > 0 && len(rest) < 12 && rest[0] == 0 })},
	{Name: "answers-at-the-end-of-input", About: "The server sends no replies while it has received only part of the next packet.",
		Kills: "packet.one-and-a-half", Edit: inject.Wrap(wholeMessages)},
	{Name: "full-segment-answered-by-half", About: "If one segment holds two packets of equal length, the server processes the second only when more data arrives.",
		Kills: "packet.two-in-a-segment echo.order", Edit: inject.Wrap(func(c net.Conn) net.Conn {
			return inject.Filtered(coalesced(c), func(p []byte) []byte {
				n := packetSize(p)
				if n == 0 || 2*n > len(p) || !bytes.Equal(p[:12], p[n:n+12]) || p[7] != 16 {
					return p
				}
				return p[:n]
			})
		})},
	{Name: "magic-searched-in-data", About: "The server ends a packet where its data contains the magic of a request.",
		Kills: "packet.data-like-a-header", Edit: inject.Decode(func(s codec.Session, data []byte, f *codec.Frame) (int, error) {
			if n := packetSize(data); n > 12 && n <= len(data) {
				if at := bytes.Index(data[12:n], []byte("\x00REQ")); at >= 0 {
					data = bytes.Clone(data[:12+at])
					binary.BigEndian.PutUint32(data[8:], uint32(at))
				}
			}
			return s.Decode(codec.Peer, data, f)
		})},
	{Name: "sizes-signed", About: "The server reads sizes as signed numbers and treats negative ones as 0.",
		Kills: "packet.size-highest", Edit: patch(func(head []byte) {
			if head[8] >= 0x80 {
				clear(head[8:12])
			}
		})},
	{Name: "cut-off-packet-ends-the-server", About: "The server crashes when a connection closes in the middle of a packet.",
		Kills: "packet.cut-off", Edit: func(s *inject.Server) {
			var cutOff atomic.Bool
			s.Wrap = func(c net.Conn) net.Conn {
				var s stream
				return inject.Reading(c, func(p []byte) (int, error) {
					n, err := c.Read(p)
					s.whole(p[:n])
					if err != nil && s.left > 0 {
						cutOff.Store(true)
					} else if s.left == 0 {
						time.Sleep(settle) // the incomplete packet is noticed first
					}
					return n, err
				})
			}
			inject.Crash(inject.Closed, func(*message) bool { return cutOff.Load() })(s)
		}},

	// Arguments.
	{Name: "missing-unique-passed-over", About: "The server does not reply to a submission without a unique ID argument.",
		Kills: "args.missing-submit args.missing-all", Fault: "drop ERROR when error-text~*Unique?ID*gearman.args.missing*"},
	{Name: "submission-without-data-passed-over", About: "The server does not reply to a submission without any data.",
		Kills: "args.missing-all", Fault: "drop ERROR when error-text~byte?12*Unique?ID*gearman.args.missing*"},
	{Name: "missing-timeout-awaited", About: "The server waits for more data after CAN_DO_TIMEOUT without a timeout argument.",
		Kills: "args.missing-timeout", Edit: inject.StopReading(inject.Illegal, inject.Broken(protocol.RuleArgsMissing, "CAN_DO_TIMEOUT"))},
	{Name: "missing-result-ends-the-server", About: "The server crashes on WORK_COMPLETE without a result argument.",
		Kills: "args.missing-result", Edit: inject.Crash(inject.Illegal, inject.Broken(protocol.RuleArgsMissing, "WORK_COMPLETE"))},
	{Name: "surplus-option-passed-over", About: "The server does not reply to OPTION_REQ with an extra argument.",
		Kills: "args.surplus-option", Fault: "drop ERROR when error-text~*Option:*gearman.args.surplus*"},
	{Name: "surplus-grab-passed-over", About: "The server does not reply to GRAB_JOB with an argument.",
		Kills: "args.surplus-where-none", Fault: "drop ERROR when error-text~*GRAB_JOB:*gearman.args.surplus*"},
	{Name: "trailing-nul-of-option-passed-over", About: "The server does not reply to OPTION_REQ if a NUL follows the option.",
		Kills: "args.trailing-nul-option", Fault: "drop ERROR when error-text~*Option:*gearman.args.trailing-nul*"},
	{Name: "trailing-nul-of-handle-awaits-more", About: "The server waits for another argument if a NUL follows the handle in WORK_FAIL.",
		Kills: "args.trailing-nul-handle", Edit: inject.StopReading(inject.Illegal, inject.Broken(protocol.RuleArgsTrailing, "WORK_FAIL"))},
	{Name: "trailing-nul-of-function-ends-the-server", About: "The server crashes if a NUL follows the function name in CAN_DO.",
		Kills: "args.trailing-nul-function", Edit: inject.Crash(inject.Illegal, inject.Broken(protocol.RuleArgsTrailing, "CAN_DO"))},

	// Handles and numbers.
	{Name: "longest-handle-refused", About: "The server rejects handles of the maximum length.",
		Kills: "handle.longest",
		Edit:  inject.Answer("GET_STATUS", func(m *message) bool { return len(m.Args[0]) >= protocol.MaxHandle }, "ERROR", "ARGUMENT_TOO_LARGE", "the handle is too long")},
	{Name: "long-handle-passed-over", About: "The server does not reply to GET_STATUS with a handle that is one byte too long.",
		Kills: "handle.one-too-long", Fault: "drop ERROR when error-text~*got?64?*gearman.handle.length*"},
	{Name: "long-handle-of-result-passed-over", About: "The server does not reply to WORK_COMPLETE with a handle that is too long.",
		Kills: "handle.two-too-long", Fault: "drop ERROR when error-text~*got?65?*gearman.handle.length*"},
	{Name: "empty-handle-passed-over", About: "The server does not reply to GET_STATUS with an empty handle.",
		Kills: "handle.empty", Fault: "drop ERROR when error-text~*gearman.handle.not-empty*"},
	{Name: "time-without-digits-passed-over", About: "The server does not reply to SUBMIT_JOB_EPOCH with a time that is not a number.",
		Kills: "number.epoch-not-decimal", Fault: "drop ERROR when error-text~*Epoch*gearman.number.decimal*"},
	{Name: "timeout-without-digits-ends-the-server", About: "The server crashes on CAN_DO_TIMEOUT with a timeout that is not a number.",
		Kills: "number.timeout-not-decimal", Edit: inject.Crash(inject.Illegal, inject.Broken(protocol.RuleDecimal, "CAN_DO_TIMEOUT"))},
	{Name: "progress-without-digits-ends-the-server", About: "The server crashes on WORK_STATUS with values that are not numbers.",
		Kills: "number.progress-not-decimal", Edit: inject.Crash(inject.Illegal, inject.Broken(protocol.RuleDecimal, "WORK_STATUS"))},
	{Name: "schedule-range-unchecked", About: "The server accepts minute 60 in SUBMIT_JOB_SCHED and treats it as minute 0.",
		Kills: "number.schedule-out-of-range", Codec: codec.Options{Waive: []codec.RuleID{protocol.RuleRange}}},
}

// settle is long enough for the server to notice the end of a connection before it reads what other
// peers send next.
const settle = 25 * time.Millisecond
