package mutants

import (
	"errors"
	"net"
	"os"
	"time"

	"jobwire/refserver/mutant"
)

// reserving are faults of section "Worker Commands": reserve, and workers that wait or leave.
var reserving = []Mutant{
	{Name: "reserved-shown-ready", About: "A job that somebody else than its producer has is shown as ready.",
		Kills: cases("reserve.reserved timed-out.others-job reserve-job.ready"),
		Hook: figure("stats-job", "state", func(b *bench, _ *conn, all map[string]string) string {
			if j := b.jobs[all["id"]]; j != nil && j.owner != nil && j.owner != j.producer {
				return "ready"
			}
			return all["state"]
		})},
	{Name: "last-put-first", About: "Of jobs with the priority 7 the last that was put comes first.",
		Kills: cases("reserve.fifo reserve.fifo-many"),
		Hook: func(b *bench) {
			n := 7
			b.on("put", func(c *conn, f *frame) {
				a := args(f)
				if a[0] == "7" {
					a[0] = decimal(n)
					n--
				}
				b.pass(c, compose("put", a...))
			})
		}},
	{Name: "tubes-in-the-order-of-watching", About: "A worker gets the jobs of the tube that it watched first, and then the others.",
		Kills: cases("reserve.across-tubes-priority reserve.across-tubes-fifo pause.other-tubes"),
		Hook: func(b *bench) {
			b.on("reserve", func(c *conn, f *frame) {
				all := args(b.ask(c, "list-tubes-watched"))
				for i, t := range all {
					if b.figures(c, "stats-tube", t)["current-jobs-ready"] == "0" || i == len(all)-1 {
						continue
					}
					for _, other := range all[i+1:] {
						b.ask(c, "ignore", other)
					}
					b.pass(c, f)
					for _, other := range all[i+1:] {
						if !b.peers[c].waits {
							b.ask(c, "watch", other)
						}
					}
					return
				}
				b.pass(c, f)
			})
		}},
	{Name: "all-waiters-served", About: "Every worker that waits gets the same job.",
		Kills: cases("reserve.once reserve.two-jobs-two-workers reserve.waiters-in-order"),
		Hook: func(b *bench) {
			var job []string // that somebody got by a put
			b.out("RESERVED", func(_ *conn, f *frame) verdict {
				if b.cause == "put" {
					job = args(f)
				}
				return verdict{}
			})
			b.on("put", func(c *conn, f *frame) {
				job = nil
				b.pass(c, f)
				for _, p := range b.peers {
					if job != nil && p.waits && p.request.Type.Name == "reserve" {
						b.say(p.conn, "RESERVED", job...)
					}
				}
			})
		}},
	{Name: "one-reserved-at-most", About: "A tube counts no more than one reserved job.",
		Kills: cases("reserve.two-jobs-two-workers kick.two-waiters ttr.expires"), Hook: atMost("stats-tube", "current-jobs-reserved", 1)},
	{Name: "last-waiter-first", About: "Of workers that wait the last that came is served first.",
		Kills: cases("reserve.waiters-in-order reserve.once stats-tube.waiting"),
		Hook: func(b *bench) {
			var waiting []*conn
			b.on("reserve reserve-with-timeout", func(c *conn, f *frame) {
				waiting = append(waiting, c)
				b.pass(c, f)
				if !b.peers[c].waits {
					waiting = waiting[:len(waiting)-1]
				}
			})
			b.leaving = func(c *conn) {
				for i := range waiting {
					if waiting[i] == c {
						waiting = append(waiting[:i], waiting[i+1:]...)
						return
					}
				}
			}
			b.out("RESERVED", func(c *conn, f *frame) verdict {
				n := len(waiting)
				if b.cause != "put" || n == 0 {
					return verdict{}
				}
				last := waiting[n-1]
				waiting = waiting[:n-1]
				if last == c {
					return verdict{}
				}
				b.say(last, "RESERVED", args(f)...)
				return drop
			})
		}},
	{Name: "waits-on-in-the-other-tube", About: "A worker that waited on several tubes gets another job, of which it is not told.",
		Kills: cases("reserve.waits-on-several-tubes"),
		Hook: func(b *bench) {
			var still, next *conn
			b.on("put", func(c *conn, f *frame) {
				b.pass(c, f)
				if still != nil && b.peers[still] != nil {
					b.ask(still, "reserve-with-timeout", "0")
				}
				still = next
			})
			several := map[*conn]bool{}
			b.on("reserve", func(c *conn, f *frame) {
				several[c] = len(args(b.ask(c, "list-tubes-watched"))) > 1
				b.pass(c, f)
			})
			b.out("RESERVED", func(c *conn, _ *frame) verdict {
				if b.cause == "put" && several[c] {
					next = c
				}
				return verdict{}
			})
		}},
	{Name: "one-job-to-release", About: "A worker that has several jobs cannot release one.",
		Kills: cases("reserve.several pause.takes-jobs"),
		Hook:  denied("release", "NOT_FOUND", func(b *bench, c *conn, j *job) bool { return len(b.held(c)) > 1 })},

	// reserve-with-timeout.
	{Name: "no-timeout-is-a-second", About: "A client that has not put yet waits for a second with a timeout of 0.",
		Kills: cases("timeout.zero timeout.no-job-afterwards"),
		Hook: func(b *bench) {
			b.on("reserve-with-timeout", func(c *conn, f *frame) {
				if len(b.order) == 0 && arg(f, 0) == "0" && b.peers[c].tube != "default" {
					b.do(c, "reserve-with-timeout", "1")
					return
				}
				b.pass(c, f)
			})
		}},
	{Name: "second-not-waited", About: "A timeout of a second ends at once.",
		Kills: cases("timeout.expires"), Hook: timeoutAs("1", "0")},
	{Name: "put-does-not-end-a-timeout", About: "A worker that waits with a timeout is not told of a job that is put.",
		Kills: cases("timeout.job-in-time timeout.negative"),
		Hook: func(b *bench) {
			b.out("RESERVED", func(c *conn, _ *frame) verdict {
				return verdict{Drop: b.cause == "put" && b.peers[c].request.Type.Name == "reserve-with-timeout"}
			})
		}},
	{Name: "timeout-of-31-bits", About: "A timeout of 32 bits is malformed.",
		Kills: cases("timeout.job-there"), Hook: refuses("reserve-with-timeout", "BAD_FORMAT", func(a []string) bool { return whole(a[0]) >= 1<<31 })},
	{Name: "negative-timeout-is-zero", About: "A negative timeout ends at once.",
		Kills: cases("timeout.negative timeout.negative-waits"), Hook: timeoutAs("-1", "0")},
	{Name: "timeout-in-letters-is-zero", About: "A word where a timeout is due counts as 0.",
		Kills: cases("timeout.no-number"), Hook: readAs(`^reserve-with-timeout [a-z]+\r`, "reserve-with-timeout 0\r")},
	{Name: "absent-timeout-is-zero", About: "Without its timeout reserve-with-timeout ends at once.",
		Kills: cases("timeout.absent"), Hook: readAs(`^reserve-with-timeout ?\r`, "reserve-with-timeout 0\r")},
	{Name: "waits-on-after-a-timeout", About: "A worker gets a job after TIMED_OUT, of which it is not told.",
		Kills: cases("timeout.zero timeout.no-job-afterwards timeout.expires"),
		Hook: func(b *bench) {
			b.on("put", func(c *conn, f *frame) {
				again := b.peers[c].before == "reserve-with-timeout"
				b.pass(c, f)
				if again {
					b.ask(c, "reserve-with-timeout", "0")
				}
			})
		}},

	// Half-closed clients, and clients that leave.
	{Name: "half-close-unnoticed", About: "A worker that ended its direction while it waited goes on waiting.",
		Kills: cases("half-closed.waiting half-closed.waiting-with-timeout half-closed.before gone.waiting"),
		Hook:  func(b *bench) { b.halved = func(c *conn) bool { return b.peers[c].waits } }},
	{Name: "half-closed-not-answered", About: "A client that ends its direction right behind a reserve hears nothing more.",
		Kills: cases("half-closed.with-a-job"),
		Hook: func(b *bench) {
			pending := map[*conn]bool{}
			b.halved = func(c *conn) bool {
				if !pending[c] {
					return false
				}
				delete(pending, c)
				b.deaf[c] = true
				c.Resume()
				return true
			}
			b.on("reserve", func(c *conn, f *frame) {
				if b.find(func(j *job) bool { return j.producer == c && j.state == "ready" }) == nil {
					b.pass(c, f)
					return
				}
				pending[c] = true
				c.Hold()
				b.after(30*time.Millisecond, func() {
					if pending[c] {
						delete(pending, c)
						c.Resume()
						b.pass(c, compose("reserve"))
					}
				})
			})
			b.leaving = func(c *conn) { delete(pending, c) }
		}},
	{Name: "last-words-lost", About: "What comes right before a client ends its direction is thrown away.",
		Kills: cases("half-closed.replies"), Hook: func(b *bench) { b.wrap = hasty }},
	{Name: "half-close-answered", About: "A client that ends its direction without waiting is told that time is over.",
		Kills: cases("half-closed.ends"),
		Hook: func(b *bench) {
			b.halved = func(c *conn) bool {
				if p := b.peers[c]; !p.waits && p.heard == 1 {
					b.blurt(c, "TIMED_OUT\r\n")
				}
				return false
			}
		}},
	{Name: "job-for-who-has-left", About: "The next job after a waiting worker left is given to it.",
		Kills: cases("gone.waiting gone.waiting-behind"),
		Hook: func(b *bench) {
			gone := false
			b.leaving = func(c *conn) { gone = gone || b.peers[c].waits && len(b.order) == 0 }
			b.halved = func(c *conn) bool {
				gone = gone || b.peers[c].waits && len(b.order) == 0
				return false
			}
			b.on("put", func(c *conn, f *frame) {
				if gone {
					b.say(c, "INSERTED", "1")
					return
				}
				b.pass(c, f)
			})
		}},
	{Name: "jobs-lost-with-their-worker", About: "The jobs of a worker that leaves are gone.",
		Kills: cases("gone.closes gone.resets gone.quits gone.half-closes gone.delay-not-again reserve.two-jobs-two-workers stats-job.lost-connection"),
		Hook: func(b *bench) {
			b.leaving = func(c *conn) {
				for _, j := range b.held(c) {
					b.Machine.Handle(c, compose("delete", j.id))
				}
			}
		}},
	{Name: "second-job-lost-by-quit", About: "Of the jobs of a worker that quits only one is ready again.",
		Kills: cases("gone.quits"),
		Hook: func(b *bench) {
			b.leaving = func(c *conn) {
				for i, j := range b.held(c) {
					if i > 0 && b.peers[c].quit {
						b.Machine.Handle(c, compose("delete", j.id))
					}
				}
			}
		}},
	{Name: "left-job-delayed-again", About: "The job of a worker that left is delayed as it was at first.",
		Kills: cases("gone.delay-not-again"),
		Hook: func(b *bench) {
			b.leaving = func(c *conn) {
				for _, j := range b.held(c) {
					if j.delay != "0" {
						b.Machine.Handle(c, compose("release", j.id, j.priority, j.delay))
					}
				}
			}
		}},

	// The safety margin.
	{Name: "no-safety-margin", About: "A worker is not told that the time of its job will soon be over.",
		Kills:  cases("deadline.in-margin deadline.while-waiting deadline.with-timeout deadline.still-held deadline.again deadline.first-of-several"),
		Faults: []string{"retype DEADLINE_SOON TIMED_OUT"}},
	{Name: "no-margin-while-waiting", About: "A worker that waits is not told when the last second of its job begins.",
		Kills: cases("deadline.while-waiting"),
		Hook: func(b *bench) {
			b.out("DEADLINE_SOON", func(*conn, *frame) verdict { return verdict{Drop: b.cause == byTime} })
		}},
	{Name: "no-margin-with-timeout", About: "reserve-with-timeout knows no safety margin.",
		Kills: cases("deadline.with-timeout"),
		Hook: func(b *bench) {
			b.out("DEADLINE_SOON", func(c *conn, _ *frame) verdict {
				if b.peers[c].request.Type.Name == "reserve-with-timeout" {
					return replace("TIMED_OUT")
				}
				return verdict{}
			})
		}},
	{Name: "deadline-told-once", About: "DEADLINE_SOON is said once to a worker.",
		Kills: cases("deadline.again deadline.still-held"), Faults: []string{"retype DEADLINE_SOON TIMED_OUT nth=2"}},
	{Name: "job-lost-at-the-deadline", About: "A worker that has heard DEADLINE_SOON cannot touch its job.",
		Kills: cases("deadline.still-held"),
		Hook:  denied("touch", "NOT_FOUND", func(b *bench, c *conn, _ *job) bool { return b.peers[c].heardOf == "DEADLINE_SOON" })},
	{Name: "holder-always-warned", About: "A worker that has a job hears DEADLINE_SOON where time is over.",
		Kills: cases("deadline.timeout-first life.exclusive deadline.first-of-several"),
		Hook: func(b *bench) {
			b.out("TIMED_OUT", func(c *conn, _ *frame) verdict {
				if len(b.held(c)) > 0 {
					return replace("DEADLINE_SOON")
				}
				return verdict{}
			})
		}},
	{Name: "warned-of-others-jobs", About: "A worker hears DEADLINE_SOON for a job that another has.",
		Kills: cases("deadline.not-others"),
		Hook: func(b *bench) {
			b.out("TIMED_OUT", func(c *conn, _ *frame) verdict {
				if b.find(func(j *job) bool { return j.owner != nil && j.owner != c && j.ttr == "1" }) != nil {
					return replace("DEADLINE_SOON")
				}
				return verdict{}
			})
		}},
	{Name: "margin-keeps-jobs-back", About: "A worker in the last second of its job gets no other, though one is ready.",
		Kills: cases("deadline.a-job-is-ready"),
		Hook: silent("reserve", func(b *bench, c *conn, _ []string) bool {
			for _, j := range b.held(c) {
				if j.ttr == "1" && b.find(func(j *job) bool { return j.state == "ready" }) != nil {
					return true
				}
			}
			return false
		})},
}

// timeoutAs takes one timeout for another.
func timeoutAs(from, to string) Hook {
	return takenFor("reserve-with-timeout", func(a []string) []string {
		if a[0] == from {
			a[0] = to
		}
		return a
	})
}

// hasty throws away what the end of the peer's direction follows at once.
func hasty(c net.Conn) net.Conn {
	return mutant.Reading(c, func(p []byte) (int, error) {
		n, err := c.Read(p)
		if err != nil || n == len(p) {
			return n, err
		}
		c.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
		more, err := c.Read(p[n:])
		c.SetReadDeadline(time.Time{})
		if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			return n + more, nil
		}
		return 0, err
	})
}
