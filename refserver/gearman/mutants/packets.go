package mutants

import (
	"bytes"
	"encoding/binary"
	"net"
	"sync/atomic"
	"time"

	"jobwire/codec"
	protocol "jobwire/codec/gearman"
	"jobwire/refserver/mutant"
)

// packets are faults in what section "Binary Packet" says of headers and streams.
var packets = []Mutant{
	{Name: "magic-unchecked", About: "The second half of the magic is not looked at.",
		Kills: cases("packet.magic-unknown"),
		Hook: func(b *bench) {
			b.decode = func(s codec.Session, data []byte, f *frame) (int, error) {
				return patched(s, data, f, func(head []byte) {
					if head[3] != 'S' {
						copy(head[1:], "REQ")
					}
				})
			}
		}},
	{Name: "wrong-magic-passed-over", About: "A request with the magic of responses is neither answered nor refused.",
		Kills:  cases("packet.magic-of-responses"),
		Faults: []string{"drop ERROR when error-code=INVALID_MAGIC"}},
	{Name: "type-0-passed-over", About: "Packet type 0 is taken for a message without meaning.",
		Kills:  cases("packet.type-0"),
		Faults: []string{"drop ERROR when error-text~*:?0?is?no*"}},
	{Name: "unused-type-passed-over", About: "Packet type 5 has a place in the table, with nothing in it.",
		Kills:  cases("packet.type-5"),
		Faults: []string{"drop ERROR when error-text~*:?5?is?no*"}},
	{Name: "type-behind-the-last-passed-over", About: "The table of types is read one row too far.",
		Kills:  cases("packet.type-43"),
		Faults: []string{"drop ERROR when error-text~*:?43?is?no*"}},
	{Name: "types-signed", About: "The packet type is a signed index: a negative one ends the server.",
		Kills: cases("packet.type-highest"),
		Hook:  dies(func(f *frame, _ *codec.Error) bool { return len(f.Raw) > 4 && f.Raw[0] == 0 && f.Raw[4] >= 0x80 })},
	{Name: "little-endian-understood", About: "A type that makes no sense is tried the other way round.",
		Kills: cases("packet.little-endian"),
		Hook: func(b *bench) {
			b.decode = func(s codec.Session, data []byte, f *frame) (int, error) {
				return patched(s, data, f, func(head []byte) {
					if n := binary.LittleEndian.Uint32(head[4:]); n > 0 && n < 1<<8 {
						binary.BigEndian.PutUint32(head[4:], n)
					}
				})
			}
		}},
	{Name: "short-sizes-little-endian", About: "Sizes that fit 16 bits, but not 8, are sent with the least significant byte first.",
		Kills: cases("packet.big-endian"),
		Hook: func(b *bench) {
			b.out("ECHO_RES", func(_ *conn, f *frame) verdict {
				if n := len(f.Raw) - 12; n > 0xff && n <= 0xffff {
					out := bytes.Clone(f.Raw)
					out[10], out[11] = out[11], out[10]
					return raw(out)
				}
				return verdict{}
			})
		}},
	{Name: "client-responses-passed-over", About: "STATUS_RES from a client is taken without a word.",
		Kills:  cases("packet.types-of-the-server"),
		Faults: []string{"drop ERROR when error-text~*STATUS_RES?is?never*"}},
	{Name: "worker-responses-passed-over", About: "NO_JOB from a worker is taken without a word.",
		Kills:  cases("packet.types-for-workers"),
		Faults: []string{"drop ERROR when error-text~*NO_JOB?is?never*"}},
	{Name: "header-in-pieces-lost", About: "A header that does not arrive in one piece is thrown away.",
		Kills: cases("packet.in-pieces packet.one-and-a-half"),
		Hook: func(b *bench) {
			b.wrap = func(c net.Conn) net.Conn {
				var s stream
				return mutant.Filtered(c, func(p []byte) []byte {
					if whole := s.whole(p); len(p)-whole > 0 && len(p)-whole < 12 && p[whole] == 0 {
						s = stream{}
						return p[:whole]
					}
					return p
				})
			}
		}},
	{Name: "answers-at-the-end-of-input", About: "Nothing is answered while the input ends in the middle of a packet.",
		Kills: cases("packet.one-and-a-half"),
		Hook:  func(b *bench) { b.wrap = patient }},
	{Name: "full-segment-answered-by-half", About: "Of two packets of one length in one segment the second waits for more to come.",
		Kills: cases("packet.two-in-a-segment echo.order"),
		Hook: func(b *bench) {
			b.wrap = func(c net.Conn) net.Conn {
				return mutant.Filtered(gathered(c), func(p []byte) []byte {
					n := packetSize(p)
					if n == 0 || 2*n > len(p) || !bytes.Equal(p[:12], p[n:n+12]) || p[7] != 16 {
						return p
					}
					return p[:n]
				})
			}
		}},
	{Name: "magic-searched-in-data", About: "Data that contains the magic of a request ends there.",
		Kills: cases("packet.data-like-a-header"),
		Hook: func(b *bench) {
			b.decode = func(s codec.Session, data []byte, f *frame) (int, error) {
				if n := packetSize(data); n > 12 && n <= len(data) {
					if at := bytes.Index(data[12:n], []byte("\x00REQ")); at >= 0 {
						data = bytes.Clone(data[:12+at])
						binary.BigEndian.PutUint32(data[8:], uint32(at))
					}
				}
				return s.Decode(codec.Peer, data, f)
			}
		}},
	{Name: "sizes-signed", About: "A size is signed, and a negative one is none.",
		Kills: cases("packet.size-highest"),
		Hook: func(b *bench) {
			b.decode = func(s codec.Session, data []byte, f *frame) (int, error) {
				return patched(s, data, f, func(head []byte) {
					if head[8] >= 0x80 {
						clear(head[8:12])
					}
				})
			}
		}},
	{Name: "cut-off-packet-ends-the-server", About: "A connection that breaks off within a packet takes the server with it.",
		Kills: cases("packet.cut-off"),
		Hook: func(b *bench) {
			var cutOff atomic.Bool
			b.wrap = func(c net.Conn) net.Conn {
				var s stream
				return mutant.Reading(c, func(p []byte) (int, error) {
					n, err := c.Read(p)
					s.whole(p[:n])
					if err != nil && s.left > 0 {
						cutOff.Store(true)
					} else if s.left == 0 {
						time.Sleep(settle) // the one that breaks off is heard first
					}
					return n, err
				})
			}
			b.leaving = func(c *conn) {
				if cutOff.Load() {
					b.die(c)
				}
			}
		}},

	// Arguments.
	{Name: "missing-unique-passed-over", About: "A submission without a unique ID is passed over.",
		Kills:  cases("args.missing-submit args.missing-all"),
		Faults: []string{"drop ERROR when error-text~*Unique?ID*gearman.args.missing*"}},
	{Name: "submission-without-data-passed-over", About: "A submission without any data is passed over.",
		Kills:  cases("args.missing-all"),
		Faults: []string{"drop ERROR when error-text~byte?12,?Unique?ID*gearman.args.missing*"}},
	{Name: "missing-timeout-awaited", About: "CAN_DO_TIMEOUT without a timeout waits for the rest, for ever.",
		Kills: cases("args.missing-timeout"), Hook: deafens(broken(protocol.RuleArgsMissing, "CAN_DO_TIMEOUT"))},
	{Name: "missing-result-ends-the-server", About: "A result without the data behind the handle is read beyond its end.",
		Kills: cases("args.missing-result"), Hook: dies(broken(protocol.RuleArgsMissing, "WORK_COMPLETE"))},
	{Name: "surplus-option-passed-over", About: "An option request with an argument too many is passed over.",
		Kills:  cases("args.surplus-option"),
		Faults: []string{"drop ERROR when error-text~*Option:*gearman.args.surplus*"}},
	{Name: "surplus-grab-passed-over", About: "GRAB_JOB with data is passed over.",
		Kills:  cases("args.surplus-where-none"),
		Faults: []string{"drop ERROR when error-text~*GRAB_JOB:*gearman.args.surplus*"}},
	{Name: "trailing-nul-of-option-passed-over", About: "An option with a NUL behind it is passed over.",
		Kills:  cases("args.trailing-nul-option"),
		Faults: []string{"drop ERROR when error-text~*Option:*gearman.args.trailing-nul*"}},
	{Name: "trailing-nul-of-handle-awaits-more", About: "A NUL behind a handle makes the server wait for another argument.",
		Kills: cases("args.trailing-nul-handle"), Hook: deafens(broken(protocol.RuleArgsTrailing, "WORK_FAIL"))},
	{Name: "trailing-nul-of-function-ends-the-server", About: "A NUL behind a function's name is an assertion that fails.",
		Kills: cases("args.trailing-nul-function"), Hook: dies(broken(protocol.RuleArgsTrailing, "CAN_DO"))},

	// Handles and numbers.
	{Name: "longest-handle-refused", About: "The limit of a handle is one byte too small.",
		Kills: cases("handle.longest"),
		Hook: func(b *bench) {
			b.on("GET_STATUS", func(c *conn, f *frame) {
				if len(f.Arg(0)) >= protocol.MaxHandle {
					say(c, "ERROR", "ARGUMENT_TOO_LARGE", "the handle is too long")
					return
				}
				b.pass(c, f)
			})
		}},
	{Name: "long-handle-passed-over", About: "A status request for a handle that is one byte too long is passed over.",
		Kills:  cases("handle.one-too-long"),
		Faults: []string{"drop ERROR when error-text~*:?64?bytes*gearman.handle.length*"}},
	{Name: "long-handle-of-result-passed-over", About: "A result with a handle that is too long is passed over.",
		Kills:  cases("handle.two-too-long"),
		Faults: []string{"drop ERROR when error-text~*:?65?bytes*gearman.handle.length*"}},
	{Name: "empty-handle-passed-over", About: "A status request for an empty handle is passed over.",
		Kills:  cases("handle.empty"),
		Faults: []string{"drop ERROR when error-text~*gearman.handle.not-empty*"}},
	{Name: "time-without-digits-passed-over", About: "A job for a time that is no number is passed over.",
		Kills:  cases("number.epoch-not-decimal"),
		Faults: []string{"drop ERROR when error-text~*Epoch*gearman.number.decimal*"}},
	{Name: "timeout-without-digits-ends-the-server", About: "A timeout that is no number ends the server.",
		Kills: cases("number.timeout-not-decimal"), Hook: dies(broken(protocol.RuleDecimal, "CAN_DO_TIMEOUT"))},
	{Name: "progress-without-digits-ends-the-server", About: "Progress that is no number ends the server.",
		Kills: cases("number.progress-not-decimal"), Hook: dies(broken(protocol.RuleDecimal, "WORK_STATUS"))},
	{Name: "schedule-range-unchecked", About: "A minute of 60 is the first of the next hour.",
		Kills: cases("number.schedule-out-of-range"), Waive: []codec.RuleID{protocol.RuleRange}},
}

// settle is long enough for the end of a connection to be heard before what others say
// next.
const settle = 25 * time.Millisecond

// offence says which illegal messages a hook is about.
type offence func(f *frame, e *codec.Error) bool

// broken is a rule broken by a message of a type.
func broken(rule codec.RuleID, typ string) offence {
	return func(f *frame, e *codec.Error) bool { return e.Rule == rule && f.Type != nil && f.Type.Name == typ }
}

// dies ends the server at an illegal message.
func dies(at offence) Hook {
	return func(b *bench) {
		b.rejected = func(c *conn, f *frame, e *codec.Error) bool {
			if !at(f, e) {
				return false
			}
			b.die(c)
			return true
		}
	}
}

// deafens makes the server hear nothing more from who sent an illegal message.
func deafens(at offence) Hook {
	return func(b *bench) {
		b.rejected = func(c *conn, f *frame, e *codec.Error) bool {
			if !at(f, e) {
				return false
			}
			b.deaf[c] = true
			return true
		}
	}
}
