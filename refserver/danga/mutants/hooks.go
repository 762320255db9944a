package mutants

import (
	"encoding/binary"
	"slices"
	"time"

	"jobwire/codec"
)

// Job types as they stand in packets.
const (
	sync  = "\x00"
	async = "\x01"
	throw = "\x02"
)

// when is a condition of a fault: a peer that is spoken to, and the job that it is about, or
// nil.
type when func(b *bench, p *peer, j *job) bool

// silent keeps packets back from their peers.
func silent(types string, cond when) Hook {
	return func(b *bench) {
		b.out(types, func(p *peer, _ *frame, j *job) verdict { return verdict{Drop: cond(b, p, j)} })
	}
}

// instead sends something else for packets.
func instead(types string, cond when, name string, args ...string) Hook {
	return func(b *bench) {
		b.out(types, func(p *peer, _ *frame, j *job) verdict {
			if cond(b, p, j) {
				return replace(name, args...)
			}
			return verdict{}
		})
	}
}

// incomplete tells who asks for a finished job that it is not.
func incomplete(cond when) Hook {
	return instead("job_complete_res", func(b *bench, p *peer, j *job) bool {
		return b.answer() && j != nil && j.finished && cond(b, p, j)
	}, "job_complete_res", number(0), "\x00", "")
}

// besides sends something behind what a peer's packet brought about.
func besides(types string, cond when, name string, args ...string) Hook {
	return func(b *bench) {
		b.on(types, func(p *peer, f *frame, j *job) {
			b.pass(p, f)
			if cond(b, p, j) {
				b.say(p, name, args...)
			}
		})
	}
}

// ignored keeps packets of peers from the machine.
func ignored(types string, cond when) Hook {
	return func(b *bench) {
		b.on(types, func(p *peer, f *frame, j *job) {
			if !cond(b, p, j) {
				b.pass(p, f)
			}
		})
	}
}

// value changes the i-th value of packets.
func value(types string, i int, to func(b *bench, p *peer, v string, j *job) string) Hook {
	return func(b *bench) {
		b.out(types, func(p *peer, f *frame, j *job) verdict {
			if was := arg(f, i); len(args(f)) > i {
				if v := to(b, p, was, j); v != was {
					return changed(f, i, v)
				}
			}
			return verdict{}
		})
	}
}

// created gives the machine another job than the peer's: to changes its name, its key, its
// flags, its type and its args. j is the job, or the one that it is a duplicate of.
func created(to func(b *bench, p *peer, a []string, j *job)) Hook {
	return func(b *bench) {
		b.on("job_create_req", func(p *peer, f *frame, j *job) {
			a := args(f)
			to(b, p, a, j)
			b.give(p, "job_create_req", a...)
		})
	}
}

// announcedAs gives the machine another list than the worker's.
func announcedAs(to func(b *bench, p *peer, names []string) []string) Hook {
	return func(b *bench) {
		b.on("worker_connect", func(p *peer, f *frame, _ *job) { b.give(p, "worker_connect", to(b, p, args(f))...) })
	}
}

// unkeyed has a duplicate run.
func unkeyed(cond func(dup []string, p *peer, j *job) bool) Hook {
	return created(func(_ *bench, p *peer, a []string, j *job) {
		if j.dups > 0 && cond(a, p, j) {
			a[1] = ""
		}
	})
}

// refused does something else with an illegal packet.
func refused(rule codec.RuleID, do func(b *bench, p *peer, f *frame) (done bool)) Hook {
	return func(b *bench) {
		b.rejected = func(p *peer, f *frame, e *codec.Error) bool { return e.Rule == rule && do(b, p, f) }
	}
}

// told answers an illegal packet of a type, and closes nothing.
func told(rule codec.RuleID, typ, name string, args ...string) Hook {
	return refused(rule, func(b *bench, p *peer, f *frame) bool {
		if f.Type == nil || f.Type.Name != typ {
			return false
		}
		b.say(p, name, args...)
		return true
	})
}

// lost never notices that a worker has left with its job.
func lost(cond func(b *bench, p *peer, j *job) bool) Hook {
	return func(b *bench) {
		b.leaving = func(p *peer) bool { return p.job != nil && cond(b, p, p.job) }
	}
}

// whenLeaving does something before a connection ends.
func whenLeaving(do func(b *bench, p *peer)) Hook {
	return func(b *bench) {
		b.leaving = func(p *peer) bool { do(b, p); return false }
	}
}

// stolen gives a worker that would be told no a job that is not its own.
func stolen(cond when, which func(b *bench, p *peer, j *job) bool) Hook {
	return func(b *bench) {
		b.out("noop", func(p *peer, _ *frame, j *job) verdict {
			if b.cause != "job_assign_req" || !cond(b, p, j) {
				return verdict{}
			}
			if j := b.find(func(j *job) bool { return which(b, p, j) }); j != nil {
				return replace("job_assign_res", j.name, j.args)
			}
			return verdict{}
		})
	}
}

func queued(_ *bench, _ *peer, j *job) bool { return j.queued() }

// toWaiting tells those who have waited for a job.
func (b *bench) toWaiting(j *job, name string, args ...string) {
	for _, c := range j.waits {
		if q := b.peers[c]; q != nil {
			b.say(q, name, args...)
		}
	}
}

// ofName returns the first unfinished job that the worker can do, or nil.
func (b *bench) ofName(p *peer) *job {
	return b.find(func(j *job) bool { return !j.finished && p.does(j.name) })
}

// sendLater says something in so much time, if it still holds then.
func (b *bench) sendLater(d time.Duration, p *peer, cond func() bool, name string, args ...string) {
	b.After(d, func() {
		if !p.left && cond() {
			b.say(p, name, args...)
		}
	})
}

// answer reports whether a packet is the answer to a request, and not streamed.
func (b *bench) answer() bool { return b.cause == "job_status_req" || b.cause == "job_complete_req" }

// workers counts those that are connected and can do a name.
func (b *bench) workers(name string) int {
	n := 0
	for _, p := range b.peers {
		if p.does(name) {
			n++
		}
	}
	return n
}

// finished reports whether the worker was the one to finish the job.
func (p *peer) finished(j *job) bool { return slices.Contains(p.done, j) }

func number(n uint32) string { return string(binary.BigEndian.AppendUint32(nil, n)) }

func numberOf(v string) uint32 { return binary.BigEndian.Uint32([]byte(v)) }
