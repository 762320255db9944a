package mutants

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"slices"
	"strings"
	"syscall"
	"time"

	"jobwire/codec"
	"jobwire/refserver/mutant"
)

// segments are faults of how bytes become packets.
var segments = []Mutant{
	{Name: "first-job-closes", About: "An application that has got its only result is hung up on soon.",
		Kills: cases("transport.persistent retry.not-after-result complete.once"),
		Hook: func(b *bench) {
			b.on("job_complete_announce", func(p *peer, f *frame, j *job) {
				b.pass(p, f)
				for _, q := range b.peers {
					if j != nil && slices.Contains(j.waits, q.conn) && len(q.created) == 1 {
						b.After(50*time.Millisecond, func() {
							if !q.left && len(q.created) == 1 {
								q.conn.Close()
							}
						})
					}
				}
			})
		}},
	{Name: "short-first-read-dropped", About: "A first segment that is shorter than a header is thrown away.",
		Kills: cases("transport.in-pieces"),
		Hook: func(b *bench) {
			b.wrap = func(c net.Conn) net.Conn {
				first := true
				return mutant.Filtered(c, func(p []byte) []byte {
					if was := first; was {
						first = false
						if len(p) < 9 {
							return nil
						}
					}
					return p
				})
			}
		}},
	{Name: "rest-of-segment-dropped", About: "What stands behind the last whole packet of a segment is thrown away.",
		Kills: cases("transport.one-and-a-half"),
		Hook: func(b *bench) {
			b.wrap = func(c net.Conn) net.Conn {
				return mutant.Reading(c, func(p []byte) (int, error) {
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
			}
		}},
	{Name: "repeated-packet-dropped", About: "A packet without data that comes twice in a segment counts once.",
		Kills: cases("transport.in-a-segment"),
		Hook: func(b *bench) {
			b.wrap = func(c net.Conn) net.Conn {
				return mutant.Filtered(c, func(p []byte) []byte {
					kept, last := p[:0:0], []byte(nil)
					for len(p) > 0 {
						n := packet(p)
						if n == 0 {
							return append(kept, p...)
						}
						if n > 9 || !bytes.Equal(last, p[:n]) {
							kept = append(kept, p[:n]...)
						}
						last, p = p[:n], p[n:]
					}
					return kept
				})
			}
		}},
	{Name: "packet-blocks-others", About: "While a packet's data is on its way nobody creates a job, and if it never comes, for ever.",
		Kills: cases("transport.cut-off"),
		Hook: func(b *bench) {
			var in codec.Session // the one in the middle of a packet
			b.decode = func(s codec.Session, p []byte, f *frame) (int, error) {
				n, err := s.Decode(codec.Peer, p, f)
				if err == codec.ErrShort && len(p) >= 9 {
					in = s
				} else if in == s {
					in = nil
				}
				return n, err
			}
			b.on("job_create_req", func(p *peer, f *frame, _ *job) {
				if in == nil {
					b.pass(p, f)
				}
			})
		}},
}

// packet returns the length of the packet that p begins with, or 0 if it is not there as a whole.
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

// duplicates are faults of which jobs are one.
var duplicates = []Mutant{
	{Name: "own-duplicate-runs", About: "An application's own duplicate is a job of its own.",
		Kills: cases("dup.killed task.keys"),
		Hook: unkeyed(func(dup []string, p *peer, j *job) bool {
			return j.by == p.conn && j.queued() && j.lost == 0 && dup[3] == throw
		})},
	{Name: "others-duplicate-runs", About: "A job that another application created is no original of one that is thrown away.",
		Kills: cases("dup.across-applications create.flags-do-nothing"),
		Hook: unkeyed(func(dup []string, p *peer, j *job) bool {
			return j.by != p.conn && dup[3] == throw && j.kind == 2
		})},
	{Name: "running-job-is-no-original", About: "A duplicate that is thrown away runs if the job that stands is being done.",
		Kills: cases("dup.while-running"),
		Hook:  unkeyed(func(dup []string, _ *peer, j *job) bool { return j.worker != nil && dup[3] == throw })},
	{Name: "key-of-a-type", About: "A job of type 2 is no duplicate of one of type 1.",
		Kills: cases("dup.across-types"),
		Hook:  unkeyed(func(dup []string, _ *peer, j *job) bool { return j.kind == 1 && dup[3] == throw })},
	{Name: "args-are-a-key", About: "Without a key jobs of type 1 with the same args are duplicates.",
		Kills: cases("dup.empty-key create.handles-distinct"),
		Hook: created(func(_ *bench, _ *peer, a []string, _ *job) {
			if a[1] == "" && a[3] == async {
				a[1] = "args " + a[4]
			}
		})},
	{Name: "keys-of-all-names", About: "A key that another name has makes a job a duplicate.",
		Kills: cases("dup.per-name task.keys task.one-worker"),
		Hook: func(b *bench) {
			b.on("job_create_req", func(p *peer, f *frame, j *job) {
				a := args(f)
				other := b.find(func(o *job) bool { return o != j && a[1] != "" && !o.finished && o.name != j.name && o.key == a[1] })
				if other == nil {
					b.pass(p, f)
					return
				}
				b.say(p, "job_create_res", other.handle)
			})
		}},
	{Name: "keys-of-five-letters", About: "Keys are compared up to their fifth letter.",
		Kills: cases("dup.whole-key"),
		Hook:  created(func(_ *bench, _ *peer, a []string, _ *job) { a[1] = a[1][:min(5, len(a[1]))] })},
	{Name: "keys-in-any-case", About: "Keys are compared whatever their case.",
		Kills: cases("dup.whole-key"),
		Hook:  created(func(_ *bench, _ *peer, a []string, _ *job) { a[1] = strings.ToLower(a[1]) })},
	{Name: "duplicate-has-its-own-handle", About: "A duplicate gets a handle of its own.",
		Kills: cases("dup.same-handle retry.still-one"),
		Hook: value("job_create_res", 0, func(_ *bench, _ *peer, v string, j *job) string {
			if j.dups > 0 && j.kind == 1 {
				return v + "'"
			}
			return v
		})},
	{Name: "thrown-away-has-no-handle", About: "Whoever asks for a job that is thrown away gets no handle.",
		Kills: cases("dup.handle-of-thrown-away"),
		Hook:  instead("job_create_res", func(_ *bench, _ *peer, j *job) bool { return j.dups > 0 && j.kind == 2 && j.handle != "" }, "job_create_res")},
	{Name: "handle-of-waiting-unknown", About: "The handle of a job that somebody waits for names none.",
		Kills: cases("status.time-unknown complete.elapsed complete.result-empty complete.result-large"),
		Hook: func(b *bench) {
			of := func(_ *bench, _ *peer, j *job) bool { return b.answer() && j != nil && j.kind == 0 }
			instead("job_complete_res", of, "job_complete_res", number(0), "\xff", "")(b)
			instead("job_status_res", of, "job_status_res", number(0), number(0), number(0))(b)
		}},
	{Name: "last-args-win", About: "A duplicate's args replace those of the job that stands.",
		Kills: cases("dup.first-args"),
		Hook: value("job_assign_res", 1, func(b *bench, p *peer, v string, _ *job) string {
			if p.job != nil {
				return p.job.lastArgs
			}
			return v
		})},
	{Name: "first-waiter-only-progress", About: "Only the first of those that wait is told of progress.",
		Kills: cases("dup.both-wait dup.waits-from-the-middle"),
		Hook: silent("job_status_res", func(b *bench, p *peer, j *job) bool {
			return b.cause == "job_status_announce" && slices.Index(j.waits, p.conn) > 0
		})},
	{Name: "first-waiter-only-result", About: "Only the first of those that wait is told the result.",
		Kills: cases("dup.both-wait dup.waits-from-the-middle"),
		Hook: silent("job_complete_res", func(b *bench, p *peer, j *job) bool {
			return b.cause == "job_complete_announce" && slices.Index(j.waits, p.conn) > 0
		})},
	{Name: "async-has-no-waiters", About: "Nobody can wait for a job of type 1.",
		Kills: cases("dup.waits-for-async"),
		Hook: silent("job_complete_res", func(b *bench, _ *peer, j *job) bool {
			return b.cause == "job_complete_announce" && j.kind == 1
		})},
	{Name: "duplicate-streamed-to-first", About: "The application of a job of type 1 is told the result when somebody else waits for it.",
		Kills: cases("dup.waits-for-async"),
		Hook: func(b *bench) {
			b.on("job_complete_announce", func(p *peer, f *frame, j *job) {
				b.pass(p, f)
				if j == nil {
					return
				}
				if q := b.peers[j.by]; q != nil && j.kind == 1 && len(j.waits) > 0 {
					b.say(q, "job_complete_res", number(1), arg(f, 0), arg(f, 1))
				}
			})
		}},
	{Name: "key-kept", About: "A key that was used once successfully is used for ever.",
		Kills: cases("dup.finished-anew"),
		Hook:  keyKept(func(j *job) bool { return j.code == 0 })},
	{Name: "key-of-failure-kept", About: "The key of a job that failed is not free again.",
		Kills: cases("dup.failed-anew"),
		Hook:  keyKept(func(j *job) bool { return j.code != 0 })},
	{Name: "waiters-leave-together", About: "When one of those that wait leaves, the first one hears no more.",
		Kills: cases("dup.second-leaves"),
		Hook:  leftAlone(func(p *peer, j *job) bool { return p.conn == j.by })},
	{Name: "creator-takes-job-along", About: "When the one that created a job leaves, others that wait hear no more.",
		Kills: cases("dup.first-leaves"),
		Hook:  leftAlone(func(p *peer, j *job) bool { return p.conn != j.by })},
}

// keyKept answers for a job that is a duplicate of a finished one.
func keyKept(of func(j *job) bool) Hook {
	return func(b *bench) {
		b.on("job_create_req", func(p *peer, f *frame, j *job) {
			old := b.find(func(o *job) bool {
				return o != j && o.finished && o.key != "" && o.name == j.name && o.key == j.key && of(o)
			})
			if old == nil {
				b.pass(p, f)
				return
			}
			b.say(p, "job_create_res", old.handle)
		})
	}
}

// leftAlone streams nothing any more to some of those that wait when another one of them leaves.
func leftAlone(whom func(p *peer, j *job) bool) Hook {
	return func(b *bench) {
		left := map[*job]bool{}
		b.ending = func(p *peer) {
			if j := p.waits(); j != nil {
				left[j] = true
			}
		}
		b.out("job_complete_res", func(p *peer, _ *frame, j *job) verdict {
			return verdict{Drop: b.cause == "job_complete_announce" && left[j] && whom(p, j)}
		})
	}
}

// retries are faults of what becomes of a job whose worker is lost.
var retries = []Mutant{
	{Name: "sync-lost-with-worker", About: "A job of type 0 without progress is lost with its worker.",
		Kills: cases("retry.worker-closes retry.worker-breaks-off retry.twice retry.returns args.missing-code violation.job-tried-again"),
		Hook:  lost(func(_ *bench, _ *peer, j *job) bool { return j.kind == 0 && j.announced == 0 && j.lost == 0 })},
	{Name: "reset-noticed-late", About: "That a connection broke off is noticed a second later.",
		Kills: cases("retry.worker-breaks-off"),
		Hook: func(b *bench) {
			b.wrap = func(c net.Conn) net.Conn {
				return mutant.Reading(c, func(p []byte) (int, error) {
					n, err := c.Read(p)
					if errors.Is(err, syscall.ECONNRESET) {
						time.Sleep(time.Second)
					}
					return n, err
				})
			}
		}},
	{Name: "retry-loses-args", About: "A job of type 0 without progress is tried again without its args.",
		Kills: cases("retry.worker-closes retry.worker-breaks-off retry.worker-half-closes retry.twice retry.returns args.missing-code violation.job-tried-again retry.goodbye"),
		Hook: value("job_assign_res", 1, func(_ *bench, p *peer, v string, _ *job) string {
			if j := p.job; j != nil && j.lost > 0 && j.kind == 0 && j.announced == 0 {
				return ""
			}
			return v
		})},
	{Name: "progress-forbids-retry", About: "A job that has made progress is lost with its worker.",
		Kills: cases("retry.after-progress"),
		Hook:  lost(func(_ *bench, _ *peer, j *job) bool { return j.announced > 0 })},
	{Name: "async-lost-with-worker", About: "A job of type 1 without a key is lost with its worker.",
		Kills: cases("retry.same-handle"),
		Hook:  lost(func(_ *bench, _ *peer, j *job) bool { return j.kind == 1 && j.key == "" })},
	{Name: "lost-job-complete", About: "A job of type 1 whose worker was lost is finished.",
		Kills: cases("retry.same-handle"),
		Hook: value("job_complete_res", 0, func(b *bench, _ *peer, v string, j *job) string {
			if j != nil && j.lost > 0 && !j.finished {
				return number(1)
			}
			return v
		})},
	{Name: "thrown-away-lost-with-worker", About: "A job of type 2 whose application has left is lost with its worker.",
		Kills: cases("retry.thrown-away"),
		Hook:  lost(func(b *bench, _ *peer, j *job) bool { return j.kind == 2 && b.peers[j.by] == nil })},
	{Name: "one-retry", About: "A job is lost with its second worker.",
		Kills: cases("retry.twice"),
		Hook:  lost(func(_ *bench, _ *peer, j *job) bool { return j.lost == 1 })},
	{Name: "retry-cuts-args", About: "The args of a job that is tried again end at their first NUL.",
		Kills: cases("retry.all-the-args"),
		Hook: value("job_assign_res", 1, func(_ *bench, p *peer, v string, _ *job) string {
			if p.job != nil && p.job.lost > 0 {
				v, _, _ = strings.Cut(v, "\x00")
			}
			return v
		})},
	{Name: "retry-does-not-wake", About: "Nobody is woken for a job whose worker was lost.",
		Kills: cases("retry.wakes"),
		Hook: silent("noop", func(b *bench, p *peer, j *job) bool {
			again := asWake(func(_ *bench, _ *peer, j *job) bool { return j.lost > 0 })
			return b.cause == byLeave || again(b, p, j)
		})},
	{Name: "retry-frees-key", About: "A job that waits to be tried again has duplicates.",
		Kills: cases("retry.still-one"),
		Hook:  unkeyed(func(_ []string, _ *peer, j *job) bool { return j.lost > 0 && j.worker == nil })},
	{Name: "result-lost-with-worker", About: "A job of type 0 runs again when the worker leaves right behind its result.",
		Kills: cases("retry.not-after-result"),
		Hook: whenLeaving(func(b *bench, p *peer) {
			if p.last == "job_complete_announce" && len(p.done) > 0 {
				if j := p.done[len(p.done)-1]; j.kind == 0 {
					b.recreate(p, j)
				}
			}
		})},
	{Name: "failure-tried-again", About: "A job of type 0 that failed runs again.",
		Kills: cases("dup.failed-anew retry.not-after-error"),
		Hook: func(b *bench) {
			b.on("job_complete_announce", func(p *peer, f *frame, j *job) {
				b.pass(p, f)
				if j != nil && j.kind == 0 && j.code != 0 {
					b.recreate(p, j)
				}
			})
		}},
	{Name: "two-tasks-of-a-name", About: "A worker that has a job gets another one of its name.",
		Kills: cases("worker.one-task"),
		Hook: stolen(func(_ *bench, p *peer, _ *job) bool { return p.job != nil },
			func(_ *bench, p *peer, j *job) bool { return j.queued() && j.name == p.job.name })},
	{Name: "two-tasks-of-two-names", About: "A worker that has a job gets another one of another name.",
		Kills: cases("worker.one-task-others-go-on"),
		Hook: stolen(func(_ *bench, p *peer, _ *job) bool { return p.job != nil },
			func(_ *bench, p *peer, j *job) bool { return j.queued() && j.name != p.job.name && p.does(j.name) })},
}

// recreate has a job run again, for nobody.
func (b *bench) recreate(p *peer, j *job) {
	b.muted = true
	b.give(p, "job_create_req", j.name, "", "\x00", throw, j.args)
	b.muted = false
}
