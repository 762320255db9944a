package mutants

import (
	"bytes"
	"strings"

	"jobwire/codec"
	protocol "jobwire/codec/beanstalk"
)

// producer are faults of section "Producer Commands".
var producer = []Mutant{
	{Name: "new-job-shown-in-default", About: "A ready job that nobody has had yet is shown to be in default.",
		Kills: cases("put.inserted"),
		Hook: figure("stats-job", "tube", func(_ *bench, _ *conn, all map[string]string) string {
			if all["state"] == "ready" && all["reserves"] == "0" && all["kicks"] == "0" {
				return "default"
			}
			return all["tube"]
		})},
	{Name: "put-does-not-wake", About: "A worker that waits in reserve is not told of a job that is put.",
		Kills: cases("put.wakes reserve.blocks connection.behind-reserve connection.put-behind-reserve reserve.once reserve.two-jobs-two-workers reserve.waiters-in-order reserve.waits-on-several-tubes gone.waiting-behind stats-tube.waiting"),
		Hook: func(b *bench) {
			b.out("RESERVED", func(c *conn, _ *frame) verdict {
				return verdict{Drop: b.cause == "put" && b.peers[c].request.Type.Name == "reserve"}
			})
		}},
	{Name: "own-first-job-not-found", About: "A client does not find the first job that it has put and reserved, to delete it.",
		Kills: cases("put.own-reserve body.in-pieces body.all-kinds-of-bytes body.like-commands body.line-ends-only body.large delay.waits timeout.job-there delete.reserved"),
		Hook: silent("delete", func(b *bench, c *conn, a []string) bool {
			j := b.jobs[a[0]]
			return b.heard == 6 && j != nil && j.owner == c && j.producer == c
		})},

	// Priorities.
	{Name: "zero-is-no-priority", About: "A job that is put with priority 0 comes last.",
		Kills: cases("put.priority-order release.priority bury.priority stats-tube.urgent stats.jobs"), Hook: prioritized("0", "4294967295")},
	{Name: "priorities-compared-as-text", About: "The priority 9 counts as 90.",
		Kills: cases("put.priority-not-by-text"), Hook: prioritized("9", "90")},
	{Name: "highest-priority-shown-negative", About: "The priority 2^32-1 is shown as -1.",
		Kills: cases("put.priority-highest"),
		Hook: figure("stats-job", "pri", func(_ *bench, _ *conn, all map[string]string) string {
			if all["pri"] == "4294967295" {
				return "-1"
			}
			return all["pri"]
		})},
	{Name: "priority-cut-off", About: "A priority that is too high counts as the highest one.",
		Kills: cases("put.priority-too-high"), Hook: readAs(`^put 4294967296 100 `, "put 4294967295 100 ")},
	{Name: "sign-of-a-priority-dropped", About: "A minus before a priority is not seen.",
		Kills: cases("put.priority-negative"), Hook: readAs(`^put -1 `, "put 1 ")},
	{Name: "priority-in-letters-is-zero", About: "A word where a priority is due counts as 0.",
		Kills: cases("put.priority-no-number"), Hook: readAs(`^put high `, "put 0 ")},
	{Name: "priority-of-release-cut-off", About: "release and bury cut a priority to 32 bits.",
		Kills: cases("release.priority-too-high"), Hook: readAs(`^(release|bury) (\d+) 4294967296`, "$1 $2 0")},

	// Delays.
	{Name: "second-of-delay-skipped", About: "A job with a delay of 1 is ready at once.",
		Kills: cases("delay.waits"), Hook: putWith(1, "1", "0")},
	{Name: "delayed-job-peeked-as-ready", About: "Without a ready job peek-ready shows a delayed one.",
		Kills: cases("delay.not-at-once"),
		Hook: func(b *bench) {
			b.out("NOT_FOUND", func(c *conn, _ *frame) verdict {
				p := b.peers[c]
				j := b.find(func(j *job) bool { return j.state == "delayed" && j.tube == p.tube && j.delay == "100" })
				if p.request.Type.Name != "peek-ready" || j == nil {
					return verdict{}
				}
				return replace("FOUND", j.id, j.body)
			})
		}},
	{Name: "delay-of-31-bits", About: "A delay of 32 bits is malformed.",
		Kills: cases("delay.highest"), Hook: refuses("put", "BAD_FORMAT", func(a []string) bool { return above(a[1], 1<<31) })},
	{Name: "delay-wraps", About: "A delay is taken modulo 2^32.",
		Kills: cases("delay.too-high"), Hook: readAs(`^put 0 4294967296 60 `, "put 0 0 60 ")},
	{Name: "sign-of-a-delay-dropped", About: "A minus before a delay is not seen.",
		Kills: cases("delay.no-number"), Hook: readAs(`^put 0 -1 60 `, "put 0 1 60 ")},

	// Times to run.
	{Name: "time-outs-not-counted", About: "A job does not count how often it timed out.",
		Kills: cases("ttr.expires timed-out.others-job"),
		Hook:  figure("stats-job", "timeouts", func(*bench, *conn, map[string]string) string { return "0" })},
	{Name: "no-time-is-endless", About: "A time to run of 0 is one without an end.",
		Kills: cases("ttr.zero ttr.zero-told"), Hook: putWith(2, "0", "4294967295")},
	{Name: "time-runs-from-put", About: "What is left of a reserved job's time is told as if it ran from the put.",
		Kills: cases("ttr.from-reservation touch.extends"),
		Hook: figure("stats-job", "time-left", func(_ *bench, _ *conn, all map[string]string) string {
			if all["state"] == "reserved" && all["age"] != "0" {
				return decimal(whole(all["ttr"]) - whole(all["age"]) - 1)
			}
			return all["time-left"]
		})},
	{Name: "time-of-31-bits", About: "A time to run of 32 bits is malformed.",
		Kills: cases("ttr.highest"), Hook: refuses("put", "BAD_FORMAT", func(a []string) bool { return above(a[2], 1<<31) })},
	{Name: "time-wraps", About: "A time to run is taken modulo 2^32.",
		Kills: cases("ttr.too-high"), Hook: readAs(`^put 0 0 4294967296 `, "put 0 0 0 ")},
	{Name: "sign-of-a-time-dropped", About: "A minus before a time to run is not seen.",
		Kills: cases("ttr.no-number"), Hook: readAs(`^put 0 100 -1 `, "put 0 100 1 ")},

	// Sizes.
	{Name: "body-of-65534", About: "A body may have no more than 65534 bytes.",
		Kills: cases("size.largest"), Codec: codec.Options{MaxData: 65534}},
	{Name: "too-big-is-malformed", About: "A body that is too big by two bytes is answered by BAD_FORMAT.",
		Kills: cases("size.too-big"), Hook: refusedAs(`^put 0 100 60 65537\r`, "BAD_FORMAT")},
	{Name: "too-big-by-one-is-malformed", About: "A body that is too big by one byte is answered by BAD_FORMAT.",
		Kills: cases("size.one-too-big"), Hook: refusedAs(`^put 0 100 60 65536\r`, "BAD_FORMAT")},
	{Name: "big-body-run", About: "A body that is too big is not skipped.",
		Kills: cases("size.too-big-skipped size.too-big-twice"),
		Hook: func(b *bench) {
			b.decode = func(s codec.Session, p []byte, f *frame) (int, error) {
				n, err := s.Decode(codec.Peer, p, f)
				if e, ok := err.(*codec.Error); ok && e.Rule == protocol.RulePutSize {
					if k := bytes.IndexByte(p, '\n') + 1; bytes.Contains(p[:k], []byte(" 69000")) || bytes.Contains(p[:k], []byte(" 70000")) {
						n = k
					}
				}
				return n, err
			}
		}},
	{Name: "announced-memory-taken", About: "Memory for a body is taken when it is announced.",
		Kills: cases("size.4-gigabytes"),
		Hook:  refused(`^put 0 0 60 4294967295\r`, func(b *bench, c *conn, _ string) { b.die(c) })},
	{Name: "overflowing-size-is-zero", About: "A size that no integer holds counts as 0.",
		Kills: cases("size.beyond-32-bits"), Hook: readAs(`(?s)^put 0 100 60 (4294967296|18446744073709551616)\r\n.*`, "put 0 100 60 0\r\n\r\n")},
	{Name: "size-in-letters-is-zero", About: "A word where a size is due counts as 0.",
		Kills: cases("size.no-number"), Hook: readAs(`(?s)^put 0 100 60 x\r\n.*`, "put 0 100 60 0\r\n\r\n")},
	{Name: "size-of-33-bits-awaited", About: "A body of 33 bits is waited for.",
		Kills: cases("size.wraps"), Hook: passedOver(`^put 0 100 60 4294967297\r`)},

	// What stands behind a body.
	{Name: "surplus-of-a-body-dropped", About: "What a body has more than it was said is not seen.",
		Kills: cases("crlf.missing crlf.longer-body"),
		Hook:  readAs(`(?s)^(put 0 100 60 5\r\nhello)(xx|, world)`, "$1")},
	{Name: "short-body-malformed", About: "A body that is shorter than it was said is answered by BAD_FORMAT.",
		Kills: cases("crlf.shorter-body"), Hook: refusedAs(`(?s)^put 0 100 60 9\r\nhello\r\n`, "BAD_FORMAT")},
	{Name: "lf-ends-a-body", About: "LF alone ends a body.",
		Kills: cases("crlf.lf-alone"), Hook: readAs(`(?s)^(put 0 100 60 5\r\nhello)\nx`, "$1")},
	{Name: "rest-of-a-body-run", About: "Where a body should have ended a command begins.",
		Kills: cases("crlf.resync crlf.resync-no-command crlf.resync-pipeline"),
		Hook: refused(`(?s)^put 0 100 60 [35]\r\n`, func(b *bench, c *conn, text string) {
			line, body, _ := strings.Cut(text, "\r\n")
			b.say(c, "EXPECTED_CRLF")
			b.feed(c, body[whole(line[len(line)-1:])+2:])
		})},
	{Name: "body-of-a-malformed-put-run", About: "Behind the line of a malformed put a command begins.",
		Kills: cases("malformed.priority malformed.delay malformed.ttr malformed.surplus malformed.pipeline size.too-big-skipped"),
		Hook: refused(`(?s)^put [^\r]*\r\n(use|quit)`, func(b *bench, c *conn, text string) {
			_, body, _ := strings.Cut(text, "\r\n")
			b.say(c, "BAD_FORMAT")
			b.feed(c, body)
		})},
	{Name: "half-a-body-put", About: "A body that its client has not finished becomes a job when the client is gone.",
		Kills: cases("put.half-a-body put.body-reset"),
		Hook: func(b *bench) {
			var partial string
			b.decode = func(s codec.Session, p []byte, f *frame) (int, error) {
				n, err := s.Decode(codec.Peer, p, f)
				partial = ""
				if err == codec.ErrShort && inBody(p) {
					partial = string(p)
				}
				return n, err
			}
			b.leaving = func(c *conn) {
				if strings.HasPrefix(partial, "put 0 0 60 10\r\n") {
					b.Machine.Handle(c, compose("put", "0", "0", "60", "hello"))
					partial = ""
				}
			}
		}},

	// use.
	{Name: "use-noted-late", About: "list-tube-used right behind the first use tells the tube before.",
		Kills: cases("use.using quit.after-replies"),
		Hook: func(b *bench) {
			b.on("list-tube-used", func(c *conn, f *frame) {
				if p := b.peers[c]; p.heard == 2 && p.before == "use" {
					b.say(c, "USING", "default")
					return
				}
				b.pass(c, f)
			})
		}},
	{Name: "use-counted-twice", About: "A client that uses a tube again is counted twice.",
		Kills: cases("use.again"),
		Hook: func(b *bench) {
			again := 0
			b.on("use", func(c *conn, f *frame) {
				if b.peers[c].tube == arg(f, 0) && arg(f, 0) != "default" {
					again++
				}
				b.pass(c, f)
			})
			figure("stats-tube", "current-using", func(_ *bench, _ *conn, all map[string]string) string {
				return decimal(whole(all["current-using"]) + again)
			})(b)
		}},
	{Name: "first-put-decides", About: "A client that has put delayed jobs goes on putting into their tube.",
		Kills: cases("use.subsequent-puts"),
		Hook: func(b *bench) {
			b.on("put", func(c *conn, f *frame) {
				p := b.peers[c]
				first := b.find(func(j *job) bool { return j.producer == c && j.delay != "0" })
				if first == nil || first.tube == p.tube || arg(f, 1) == "0" {
					b.pass(c, f)
					return
				}
				used := p.tube
				b.ask(c, "use", first.tube)
				b.pass(c, f)
				b.ask(c, "use", used)
			})
		}},
	{Name: "watch-uses", About: "A client that watches a second tube uses it too.",
		Kills: cases("use.not-watch list.used ignore.no-more-jobs stats.commands-about-tubes stats.tubes list.tubes"),
		Hook: func(b *bench) {
			b.on("watch", func(c *conn, f *frame) {
				if used := b.peers[c].tube; used != "default" && used != arg(f, 0) {
					b.ask(c, "use", arg(f, 0))
				}
				b.pass(c, f)
			})
		}},
	{Name: "use-for-all", About: "A client that has used no tube is told the one that another uses.",
		Kills: cases("use.own-connection connection.close crlf.resync-no-command stats-job.lost-connection"),
		Hook: func(b *bench) {
			last := "default"
			b.on("use", func(c *conn, f *frame) {
				last = arg(f, 0)
				b.pass(c, f)
			})
			b.on("list-tube-used", func(c *conn, f *frame) {
				if b.peers[c].heard == 1 {
					b.say(c, "USING", last)
					return
				}
				b.pass(c, f)
			})
		}},
}

// prioritized puts jobs of one priority with another.
func prioritized(from, to string) Hook { return putWith(0, from, to) }

// putWith changes an argument of put if it has that value.
func putWith(i int, from, to string) Hook {
	return takenFor("put", func(a []string) []string {
		if a[i] == from {
			a[i] = to
		}
		return a
	})
}
