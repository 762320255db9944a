package mutants

import (
	"net"
	"strconv"
	"strings"

	"jobwire/codec"
	protocol "jobwire/codec/gearman"
	"jobwire/refserver/mutant"
)

// administration are faults of section "Administrative Protocol".
var administration = []Mutant{
	{Name: "text-for-good", About: "A connection that began with text is not answered packets.",
		Kills: cases("admin.among-packets"),
		Hook: func(b *bench) {
			b.on("ECHO_REQ", func(c *conn, f *frame) {
				if b.peers[c].first != "version" {
					b.pass(c, f)
				}
			})
		}},
	{Name: "packets-for-good", About: "A connection that began with a packet is not answered text.",
		Kills: cases("admin.with-packet-in-a-segment"),
		Hook: func(b *bench) {
			b.on("version", func(c *conn, f *frame) {
				if first := b.peers[c].first; first == "" || first == "version" {
					b.pass(c, f)
				}
			})
		}},
	{Name: "line-in-pieces-lost", About: "A line that does not arrive in one piece is thrown away.",
		Kills: cases("admin.in-pieces"),
		Hook: func(b *bench) {
			b.wrap = func(c net.Conn) net.Conn {
				var s stream
				return mutant.Filtered(c, func(p []byte) []byte {
					if whole := s.whole(p); len(s.head) > 0 && s.head[0] != 0 {
						s = stream{}
						return p[:whole]
					}
					return p
				})
			}
		}},
	{Name: "carriage-return-kept", About: "The carriage return at the end of a line belongs to the command.",
		Kills: cases("admin.line-of-crlf"),
		Hook: func(b *bench) {
			b.on("version", func(c *conn, f *frame) {
				if f.CRLF {
					say(c, "ERR", "UNKNOWN_COMMAND", "Unknown+server+command")
					return
				}
				b.pass(c, f)
			})
		}},
	{Name: "endless-line-ends-the-server", About: "A line that is too long overflows.",
		Kills: cases("admin.line-without-end"), Hook: dies(func(_ *frame, e *codec.Error) bool { return e.Rule == protocol.RuleAdminLine })},
	{Name: "workers-list-late", About: "The list of workers is overtaken by what is asked for next.",
		Kills:  cases("admin.order"),
		Faults: []string{"delay workers-reply 60ms"}},
	{Name: "unknown-command-passed-over", About: "A command that is none is not answered.",
		Kills:  cases("admin.unknown-command"),
		Faults: []string{"drop ERR when error-code=UNKNOWN_COMMAND"}},
	{Name: "empty-line-closes", About: "An empty line ends the connection.",
		Kills: cases("admin.empty-line"),
		Hook: func(b *bench) {
			b.rejected = func(c *conn, f *frame, _ *codec.Error) bool {
				if string(f.Raw) == "\n" {
					c.Close()
					return true
				}
				return false
			}
		}},
	{Name: "blank-at-the-end-awaits-more", About: "A blank at the end of a line makes the server wait for an argument.",
		Kills: cases("admin.blank-at-the-end"),
		Hook: func(b *bench) {
			b.on("version", func(c *conn, f *frame) {
				if !strings.HasSuffix(string(f.Raw), " \n") {
					b.pass(c, f)
				}
			})
		}},
	{Name: "two-blanks-passed-over", About: "A line with two blanks in a row is passed over.",
		Kills: cases("admin.two-blanks"),
		Hook: func(b *bench) {
			b.on("maxqueue", func(c *conn, f *frame) {
				if !strings.Contains(string(f.Raw), "  ") {
					b.pass(c, f)
				}
			})
		}},
	{Name: "surplus-word-passed-over", About: "A command with a word too many is passed over.",
		Kills:  cases("admin.surplus-argument"),
		Faults: []string{"drop ERR when error-text~*version*no+argument*"}},
	{Name: "version-not-ready", About: "A server that is asked for its version first of all says nothing.",
		Kills: cases("admin.version admin.among-packets admin.in-pieces admin.line-of-crlf admin.order admin.blank-at-the-end"),
		Hook: func(b *bench) {
			b.out("version-reply", func(*conn, *frame) verdict { return verdict{Drop: b.heard == 1} })
		}},
	{Name: "many-sided-workers-unlisted", About: "A worker with two functions is not in the list.",
		Kills: cases("admin.workers"),
		Hook: func(b *bench) {
			b.out("workers-reply", func(_ *conn, f *frame) verdict {
				return rows(f, 4, func(args [][]byte) bool { return len(strings.Fields(string(args[3]))) < 2 })
			})
		}},
	{Name: "waiting-jobs-not-counted", About: "Of several jobs that wait for a function only one is counted.",
		Kills:  cases("admin.status-queued"),
		Faults: []string{"alter status-reply total=1 when total=2"}},
	{Name: "running-not-counted", About: "No job is counted as running.",
		Kills:  cases("admin.status-running"),
		Faults: []string{"alter status-reply running=0"}},
	{Name: "second-worker-not-counted", About: "A function has one worker at most.",
		Kills:  cases("admin.status-workers"),
		Faults: []string{"alter status-reply available-workers=1 when available-workers=2"}},
	{Name: "finished-jobs-counted", About: "The jobs of a function are counted up, and never down.",
		Kills: cases("admin.status-finished"),
		Hook: func(b *bench) {
			b.out("status-reply", func(_ *conn, f *frame) verdict {
				return rows(f, 4, func(args [][]byte) bool {
					ever := 0
					for _, j := range b.order {
						if j.fn == string(args[0]) {
							ever++
						}
					}
					args[1] = []byte(strconv.Itoa(ever))
					return true
				})
			})
		}},

	// The size of queues.
	{Name: "maxqueue-without-effect", About: "maxqueue is confirmed, and forgotten.",
		Kills:  cases("maxqueue.one maxqueue.every-priority maxqueue.line-of-crlf maxqueue.high maxqueue.normal maxqueue.low"),
		Faults: []string{"answer maxqueue OK when function~?*"}},
	{Name: "one-size-not-for-normal", About: "A single size holds for jobs of high and of low priority only.",
		Kills: cases("maxqueue.one maxqueue.line-of-crlf"),
		Hook: sizes(func(s []string) ([]string, bool) {
			if len(s) == 1 {
				return []string{s[0], "0", s[0]}, true
			}
			return s, true
		})},
	{Name: "one-size-not-for-high", About: "A single size does not hold for jobs of high priority.",
		Kills: cases("maxqueue.every-priority"),
		Hook: sizes(func(s []string) ([]string, bool) {
			if len(s) == 1 {
				return []string{"0", s[0], s[0]}, true
			}
			return s, true
		})},
	{Name: "size-with-carriage-return", About: "A size at the end of a line that ends CR LF is no size.",
		Kills: cases("maxqueue.line-of-crlf"),
		Hook: func(b *bench) {
			b.on("maxqueue", func(c *conn, f *frame) {
				if f.CRLF {
					f = b.compose("maxqueue", arg(f, 0))
				}
				b.pass(c, f)
			})
		}},
	{Name: "finished-jobs-fill-the-queue", About: "A limited function takes so many jobs in all.",
		Kills: cases("maxqueue.room-again"), Hook: limits(func(j *job, fn string) bool { return j.fn == fn && j.ended != "" })},
	{Name: "size-for-all-functions", About: "A size holds for the jobs of all functions together.",
		Kills: cases("maxqueue.other-functions"), Hook: limits(func(j *job, _ string) bool { return j.queued() })},
	{Name: "size-of-unknown-function-refused", About: "maxqueue knows only functions that have been mentioned.",
		Kills: cases("maxqueue.function-yet-unknown"),
		Hook: func(b *bench) {
			b.on("maxqueue", func(c *conn, f *frame) {
				if !b.announced(arg(f, 0)) {
					say(c, "ERR", "UNKNOWN_FUNCTION", "there+is+none")
					return
				}
				b.pass(c, f)
			})
		}},
	{Name: "high-size-ignored", About: "Of three sizes the one for high priority is not kept.",
		Kills: cases("maxqueue.high"), Hook: sizeIgnored(0)},
	{Name: "normal-size-ignored", About: "Of three sizes the one for normal priority is not kept.",
		Kills: cases("maxqueue.normal"), Hook: sizeIgnored(1)},
	{Name: "low-size-ignored", About: "Of three sizes the one for low priority is not kept.",
		Kills: cases("maxqueue.low"), Hook: sizeIgnored(2)},
	{Name: "sizes-in-reverse", About: "Three sizes are taken for low, normal and high priority.",
		Kills: cases("maxqueue.high maxqueue.low"),
		Hook: sizes(func(s []string) ([]string, bool) {
			if len(s) == 3 {
				s[0], s[2] = s[2], s[0]
			}
			return s, true
		})},
	{Name: "zero-does-not-lift", About: "A size of zero leaves the limit as it is.",
		Kills: cases("maxqueue.zero"),
		Hook:  sizes(func(s []string) ([]string, bool) { return s, len(s) != 1 || s[0] != "0" })},
	{Name: "negative-does-not-lift", About: "A negative size leaves the limit as it is.",
		Kills:  cases("maxqueue.negative"),
		Faults: []string{"answer maxqueue OK when size~-*"}},
	{Name: "default-does-not-lift", About: "maxqueue without a size leaves the limit as it is.",
		Kills: cases("maxqueue.default"),
		Hook:  sizes(func(s []string) ([]string, bool) { return s, len(s) > 0 })},
	{Name: "maxqueue-alone-passed-over", About: "maxqueue without a function is passed over.",
		Kills:  cases("maxqueue.no-function"),
		Faults: []string{"drop ERR when error-text~*Function*gearman.admin.arguments*"}},
	{Name: "two-sizes-passed-over", About: "maxqueue with two sizes is passed over.",
		Kills:  cases("maxqueue.two-sizes"),
		Faults: []string{"drop ERR when error-text~one+size*"}},
	{Name: "size-without-digits-passed-over", About: "maxqueue with a size that is no number is passed over.",
		Kills:  cases("maxqueue.no-number"),
		Faults: []string{"drop ERR when error-text~*gearman.number.decimal*"}},

	// The end.
	{Name: "shutdown-is-graceful", About: "shutdown leaves the connections alone.",
		Kills: cases("shutdown.now"),
		Hook: func(b *bench) {
			b.on("shutdown", func(c *conn, f *frame) {
				if f.Arg(0) == nil {
					f = b.compose("shutdown", "graceful")
				}
				b.pass(c, f)
			})
		}},
	{Name: "graceful-is-shutdown", About: "A graceful shutdown ends everything at once.",
		Kills: cases("shutdown.graceful shutdown.graceful-waiting shutdown.graceful-refuses"),
		Hook: func(b *bench) {
			b.on("shutdown", func(c *conn, f *frame) {
				if arg(f, 0) == "graceful" {
					f = b.compose("shutdown")
				}
				b.pass(c, f)
			})
		}},
	{Name: "graceful-ends-running-jobs", About: "A graceful shutdown cuts workers off that have a job.",
		Kills: cases("shutdown.graceful"),
		Hook: func(b *bench) {
			b.on("shutdown", func(c *conn, f *frame) {
				b.pass(c, f)
				for w := range b.peers {
					if arg(f, 0) == "graceful" && len(b.running(w)) > 0 {
						w.Close()
					}
				}
			})
		}},
	{Name: "graceful-hands-out-nothing", About: "After a graceful shutdown there is no job for anybody.",
		Kills: cases("shutdown.graceful-waiting"),
		Hook: func(b *bench) {
			over := false
			b.on("shutdown", func(c *conn, f *frame) {
				over = arg(f, 0) == "graceful"
				b.pass(c, f)
			})
			b.on("GRAB_JOB", func(c *conn, f *frame) {
				if over {
					say(c, "NO_JOB")
					return
				}
				b.pass(c, f)
			})
		}},
	{Name: "graceful-without-effect", About: "A graceful shutdown is confirmed, and does not happen.",
		Kills:  cases("shutdown.graceful-refuses"),
		Faults: []string{"answer shutdown OK when mode=graceful"}},
	{Name: "any-mode-is-graceful", About: "shutdown with any word is graceful.",
		Kills:  cases("shutdown.unknown-mode"),
		Faults: []string{"alter shutdown mode=graceful"}},
}

// rows leaves those lines in a list, of so many fields each, that keep says yes to.
func rows(f *frame, width int, keep func(args [][]byte) bool) verdict {
	m := &codec.Message{}
	f.Message(m)
	var kept [][]byte
	for args := m.Args; len(args) >= width; args = args[width:] {
		if keep(args[:width]) {
			kept = append(kept, args[:width]...)
		}
	}
	m.Args = kept
	return replace(m)
}

// sizes changes the sizes of maxqueue. Without touch, the limit stays as it is.
func sizes(change func([]string) (are []string, touch bool)) Hook {
	return func(b *bench) {
		b.on("maxqueue", func(c *conn, f *frame) {
			var were []string
			for i := 1; f.Arg(i) != nil; i++ {
				were = append(were, arg(f, i))
			}
			are, touch := change(were)
			if !touch {
				say(c, "OK")
				return
			}
			b.pass(c, b.compose("maxqueue", append([]string{arg(f, 0)}, are...)...))
		})
	}
}

// sizeIgnored lifts one of three sizes.
func sizeIgnored(i int) Hook {
	return sizes(func(s []string) ([]string, bool) {
		if len(s) == 3 {
			s[i] = "0"
		}
		return s, true
	})
}

// limits refuses a submission where as many jobs as a function may have are counted for it.
func limits(counts func(j *job, fn string) bool) Hook {
	return func(b *bench) {
		size := 0 // the last single one
		b.on("maxqueue", func(c *conn, f *frame) {
			size, _ = strconv.Atoi(arg(f, 1))
			if f.Arg(2) != nil {
				size = 0
			}
			b.pass(c, f)
		})
		b.on(submissions, func(c *conn, f *frame) {
			n := 0
			for _, j := range b.order {
				if counts(j, arg(f, 0)) {
					n++
				}
			}
			if size > 0 && n >= size {
				say(c, "ERROR", "QUEUE_ERROR", "the queue is full")
				return
			}
			b.pass(c, f)
		})
	}
}
