package mutants

import (
	"time"

	"jobwire/codec"
	"jobwire/refserver/gearman"
)

// workers are faults of section "Worker Requests".
var workers = []Mutant{
	{Name: "others-jobs-when-idle", About: "A worker without a job for it gets one that nobody has announced to do.",
		Kills: cases("worker.can-do wake.only-able"),
		Hook: func(b *bench) {
			b.on("GRAB_JOB", func(c *conn, f *frame) {
				p := b.peers[c]
				var other *job
				if len(p.abilities) > 0 && len(p.functions) == 1 {
					other = b.find(func(j *job) bool { return j.queued() && !b.announced(j.fn) })
				}
				if other == nil {
					b.pass(c, f)
					return
				}
				b.Machine.Handle(c, b.compose("CAN_DO", other.fn))
				b.pass(c, f)
				b.Machine.Handle(c, b.compose("CANT_DO", other.fn))
			})
		}},
	{Name: "one-function-once-busy", About: "After its first result a worker can do only the function that it was for.",
		Kills: cases("worker.can-do-two"),
		Hook: func(b *bench) {
			b.on("WORK_COMPLETE", func(c *conn, f *frame) {
				b.pass(c, f)
				if j := b.jobs[arg(f, 0)]; j != nil && j.worker == c {
					for _, fn := range b.peers[c].functions {
						if fn != j.fn {
							b.pass(c, b.compose("CANT_DO", fn))
						}
					}
				}
			})
		}},
	{Name: "abilities-counted", About: "What is announced twice has to be taken back twice.",
		Kills: cases("worker.can-do-again"),
		Hook: func(b *bench) {
			type ability struct {
				c  *conn
				fn string
			}
			counts := map[ability]int{}
			b.on("CAN_DO", func(c *conn, f *frame) {
				counts[ability{c, arg(f, 0)}]++
				b.pass(c, f)
			})
			b.on("CANT_DO", func(c *conn, f *frame) {
				a := ability{c, arg(f, 0)}
				if counts[a]--; counts[a] <= 0 {
					b.pass(c, f)
				}
			})
		}},
	{Name: "cant-do-resets", About: "CANT_DO takes back all that a worker announced.",
		Kills:  cases("worker.cant-do"),
		Faults: []string{"retype CANT_DO RESET_ABILITIES"}},
	{Name: "cant-do-passed-over", About: "CANT_DO has no effect.",
		Kills:  cases("worker.can-do-again worker.cant-do worker.of-one-connection timeout.announces wake.not-after-cant-do admin.status-workers"),
		Faults: []string{"drop CANT_DO"}},
	{Name: "unannounced-cant-do-closes", About: "CANT_DO for what was never announced ends the connection.",
		Kills: cases("worker.cant-do-unannounced"),
		Hook: func(b *bench) {
			b.on("CANT_DO", func(c *conn, f *frame) {
				if !b.peers[c].abilities[arg(f, 0)] {
					c.Close()
					return
				}
				b.pass(c, f)
			})
		}},
	{Name: "cant-do-fails-the-job", About: "A worker that takes a function back has failed the job that it runs.",
		Kills: cases("worker.cant-do-while-running"),
		Hook: func(b *bench) {
			b.on("CANT_DO", func(c *conn, f *frame) {
				for _, j := range b.running(c) {
					if j.fn == arg(f, 0) {
						b.pass(c, b.compose("WORK_FAIL", j.handle))
					}
				}
				b.pass(c, f)
			})
		}},
	{Name: "reset-passed-over", About: "RESET_ABILITIES has no effect.",
		Kills:  cases("worker.reset worker.reset-and-again"),
		Faults: []string{"drop RESET_ABILITIES"}},
	{Name: "reset-for-good", About: "After RESET_ABILITIES nothing can be announced any more.",
		Kills: cases("worker.reset-and-again"),
		Hook: func(b *bench) {
			reset := map[*conn]bool{}
			b.on("RESET_ABILITIES", func(c *conn, f *frame) {
				reset[c] = true
				b.pass(c, f)
			})
			b.on("CAN_DO", func(c *conn, f *frame) {
				if !reset[c] {
					b.pass(c, f)
				}
			})
		}},
	{Name: "cant-do-for-all", About: "One worker's CANT_DO holds for all.",
		Kills: cases("worker.of-one-connection admin.status-workers"),
		Hook: func(b *bench) {
			b.on("CANT_DO", func(_ *conn, f *frame) {
				for c := range b.peers {
					b.pass(c, f)
				}
			})
		}},

	// Timeouts.
	{Name: "timeout-in-hours", About: "CAN_DO_TIMEOUT counts hours.",
		Kills: cases("timeout.fails timeout.late-result"), Server: gearman.Options{TimeoutUnit: time.Hour}},
	{Name: "timeout-in-nanoseconds", About: "CAN_DO_TIMEOUT counts nanoseconds.",
		Kills: cases("timeout.in-time timeout.announces"), Server: gearman.Options{TimeoutUnit: time.Nanosecond}},
	{Name: "late-result-told", About: "A result that comes after the timeout reaches the client.",
		Kills: cases("timeout.late-result"),
		Hook: func(b *bench) {
			b.on("WORK_COMPLETE", func(c *conn, f *frame) {
				if j := b.jobs[arg(f, 0)]; j != nil && j.ended == "timeout" {
					say(j.submitter, "WORK_COMPLETE", arg(f, 0), arg(f, 1))
				}
				b.pass(c, f)
			})
		}},
	{Name: "timed-ability-kept", About: "CANT_DO takes back what CAN_DO announced, but not CAN_DO_TIMEOUT.",
		Kills: cases("timeout.announces"),
		Hook: func(b *bench) {
			timed := map[*conn]bool{}
			b.on("CAN_DO_TIMEOUT", func(c *conn, f *frame) {
				timed[c] = true
				b.pass(c, f)
			})
			b.on("CANT_DO", func(c *conn, f *frame) {
				if !timed[c] {
					b.pass(c, f)
				}
			})
		}},
	{Name: "can-do-timeout-passed-over", About: "CAN_DO_TIMEOUT announces nothing.",
		Kills:  cases("timeout.fails timeout.late-result timeout.in-time timeout.announces"),
		Faults: []string{"drop CAN_DO_TIMEOUT"}},

	// Sleeping and waking.
	{Name: "background-does-not-wake", About: "Nobody is woken for a background job.",
		Kills: cases("wake.background wake.again"),
		Hook: func(b *bench) {
			b.out("NOOP", func(*conn, *frame) verdict {
				return verdict{Drop: b.request != nil && submission(b.request.Type.Name) && background(b.request.Type.Name)}
			})
		}},
	{Name: "foreground-does-not-wake", About: "Nobody is woken for a job that a client waits for.",
		Kills:  cases("wake.sleeper wake.second-function wake.not-after-grab submit.created-first example.walkthrough retry.before-grab"),
		Faults: inOrder,
		Hook: func(b *bench) {
			b.out("NOOP", func(*conn, *frame) verdict {
				return verdict{Drop: b.request != nil && b.request.Type.Name == "SUBMIT_JOB"}
			})
		}},
	{Name: "second-sleeper-told-no-job", About: "Of the workers that sleep one is woken, and the next told that there is no job.",
		Kills: cases("wake.two-sleepers grab.woken-together"),
		Hook: func(b *bench) {
			woken := 0 // message for which somebody was woken last
			b.out("NOOP", func(*conn, *frame) verdict {
				if woken == b.heard {
					return replace(&codec.Message{Type: row("NO_JOB")})
				}
				woken = b.heard
				return verdict{}
			})
		}},
	{Name: "first-function-wakes", About: "A worker is woken only for the function that it announced first.",
		Kills: cases("wake.second-function"),
		Hook: func(b *bench) {
			b.out("NOOP", func(c *conn, _ *frame) verdict {
				r := b.request
				return verdict{Drop: r != nil && submission(r.Type.Name) && b.peers[c].functions[0] != arg(r, 0)}
			})
		}},
	{Name: "woken-once", About: "A worker is woken once in its life.",
		Kills:  cases("wake.again"),
		Faults: []string{"drop NOOP nth=2"}},
	{Name: "newcomer-woken", About: "A worker that has announced a function counts as asleep before it has grabbed.",
		Kills: cases("wake.not-awake"),
		Hook:  wakes(func(p *peer, fn string) bool { return p.abilities[fn] && !p.grabbed })},
	{Name: "asleep-until-no-job", About: "A worker that grabs a job still counts as asleep.",
		Kills: cases("wake.not-after-grab"),
		Hook:  wakes(func(p *peer, fn string) bool { return p.abilities[fn] && p.slept && !p.asleep })},

	// The rest.
	{Name: "client-id-forgotten", About: "SET_CLIENT_ID has no effect.",
		Kills:  cases("worker.client-id worker.client-id-anew admin.workers"),
		Faults: []string{"drop SET_CLIENT_ID"}},
	{Name: "first-client-id-stays", About: "A worker's first ID cannot be changed.",
		Kills:  cases("worker.client-id-anew"),
		Faults: []string{"drop SET_CLIENT_ID nth=2"}},
	{Name: "all-yours-wakes", About: "ALL_YOURS is answered with NOOP.",
		Kills:  cases("worker.all-yours"),
		Faults: []string{"answer ALL_YOURS NOOP"}},
	{Name: "warning-of-no-job-passed-over", About: "A warning for a handle that is none is passed over.",
		Kills: cases("worker.unknown-handle"),
		Hook: func(b *bench) {
			b.on("WORK_WARNING", func(c *conn, f *frame) {
				if b.jobs[arg(f, 0)] != nil {
					b.pass(c, f)
				}
			})
		}},
}

// inOrder makes sure that what a worker said before a client submitted is heard before it.
var inOrder = []string{"delay SUBMIT_JOB 30ms"}

// wakes sends NOOP for a submission to workers that the machine leaves alone.
func wakes(who func(p *peer, fn string) bool) Hook {
	return func(b *bench) {
		b.on(submissions, func(c *conn, f *frame) {
			var extra []*peer
			for _, p := range b.peers {
				if who(p, arg(f, 0)) && !(p.asleep && !p.woken && p.abilities[arg(f, 0)]) {
					extra = append(extra, p)
				}
			}
			b.pass(c, f)
			for _, p := range extra {
				say(p.conn, "NOOP")
			}
		})
	}
}

// announced reports whether any worker has announced the function.
func (l *ledger) announced(fn string) bool {
	for _, p := range l.peers {
		if p.abilities[fn] {
			return true
		}
	}
	return false
}
