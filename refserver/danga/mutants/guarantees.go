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

	"jobwire/refserver/inject"
)

// segments are faults of how bytes become packets.
var segments = []row{
	{Name: "first-job-closes", About: "The server soon closes the connection of an application that has received its only result.",
		Kills: "transport.persistent retry.not-after-result complete.once", Edit: inject.On("job_complete_announce", nil, func(m *message) {
			m.Pass()
			for _, p := range m.Peers {
				if m.Job != nil && slices.Contains(m.Job.Clients, p) && len(p.Created) == 1 {
					p.Later(50*time.Millisecond, func() {
						if len(p.Created) == 1 {
							p.Close()
						}
					})
				}
			}
		})},
	{Name: "short-first-read-dropped", About: "The server discards a first segment that is shorter than a packet header.",
		Kills: "transport.in-pieces", Edit: inject.Wrap(func(c net.Conn) net.Conn {
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
		Kills: "transport.one-and-a-half", Edit: inject.Wrap(func(c net.Conn) net.Conn {
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
	{Name: "repeated-packet-dropped", About: "The server ignores the second of two identical packets without data in a segment.",
		Kills: "transport.in-a-segment", Edit: inject.Filter(func(p []byte) []byte {
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
		})},
	{Name: "packet-blocks-others", About: "The server creates no jobs while a packet of another connection is incomplete.",
		Kills: "transport.cut-off", Edit: inject.Blocked("job_create_req", func(b []byte) bool { return len(b) >= 9 })},
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
var duplicates = []row{
	{Name: "own-duplicate-runs", About: "The server runs an application's duplicate of its own job.",
		Kills: "dup.killed task.keys dup.key-length dup.key-of-one-byte", Edit: unkeyed(func(m *message) bool {
			return m.Job.Creator == m.Peer && m.Job.Queued() && m.Job.Lost == 0 && m.Args[3] == throw
		})},
	{Name: "others-duplicate-runs", About: "The server runs a type 2 duplicate of a job that another application created.",
		Kills: "dup.across-applications create.flags-do-nothing dup.types dup.types-while-running", Edit: unkeyed(func(m *message) bool {
			return m.Job.Creator != m.Peer && m.Args[3] == throw && m.Job.Type == throw
		})},
	{Name: "running-job-is-no-original", About: "The server runs a type 2 duplicate of a job that is running.",
		Kills: "dup.while-running dup.types-while-running", Edit: unkeyed(func(m *message) bool { return m.Job.Worker != nil && m.Args[3] == throw })},
	{Name: "key-of-a-type", About: "The server does not treat a type 2 job as a duplicate of a type 1 job.",
		Kills: "dup.across-types dup.types dup.types-while-running", Edit: unkeyed(func(m *message) bool { return m.Job.Type == async && m.Args[3] == throw })},
	{Name: "args-are-a-key", About: "The server treats type 1 jobs without a key as duplicates if their args are equal.",
		Kills: "dup.empty-key create.handles-distinct", Edit: inject.On("job_create_req", func(m *message) bool { return m.Args[1] == "" && m.Args[3] == async },
			func(m *message) { m.Args[1] = "args " + m.Args[4] })},
	{Name: "keys-of-all-names", About: "The server treats jobs with the same key as duplicates even if their names differ.",
		Kills: "dup.per-name task.keys task.one-worker", Edit: duplicateOf(func(m *message, o *job) bool {
			return m.Args[1] != "" && o.Ended == "" && o.Queue != m.Job.Queue && o.Unique == m.Args[1]
		})},
	{Name: "keys-of-five-letters", About: "The server compares only the first five bytes of keys.",
		Kills: "dup.whole-key dup.key-longer-by-one", Edit: inject.Change("job_create_req", 1, nil, inject.AtMost(5))},
	{Name: "keys-in-any-case", About: "The server ignores letter case when it compares keys.",
		Kills: "dup.whole-key", Edit: inject.Change("job_create_req", 1, nil, strings.ToLower)},
	{Name: "duplicate-has-its-own-handle", About: "The server returns a new handle for a type 1 duplicate.",
		Kills: "dup.same-handle retry.still-one dup.many", Edit: inject.Rewrite("job_create_res", 0, func(m *message) bool { return m.Job.Dups > 0 && m.Job.Type == async },
			func(v string) string { return v + "'" })},
	{Name: "thrown-away-has-no-handle", About: "The server returns no handle for a type 1 duplicate of a type 2 job.",
		Kills: "dup.handle-of-thrown-away",
		Edit:  inject.Replace("job_create_res", func(m *message) bool { return m.Job.Dups > 0 && m.Job.Type == throw && m.Job.ID != "" }, "job_create_res")},
	{Name: "handle-of-waiting-unknown", About: "The server does not recognize the handle of a job for which an application waits.",
		Kills: "status.time-unknown complete.elapsed complete.result-empty complete.result-large", Edit: inject.Both(
			inject.Replace("job_complete_res", ofWaiting, "job_complete_res", number(0), "\xff", ""),
			inject.Replace("job_status_res", ofWaiting, "job_status_res", number(0), number(0), number(0)))},
	{Name: "last-args-win", About: "The args of a duplicate replace those of the original job.",
		Kills: "dup.first-args", Edit: inject.Out("job_assign_res", func(m *message) bool { return m.Peer.Job != nil }, func(m *message) { m.Args[1] = m.Peer.Job.LastData })},
	{Name: "first-waiter-only-progress", About: "The server sends progress only to the first of several waiting applications.",
		Kills: "dup.both-wait dup.waits-from-the-middle dup.all-wait", Edit: inject.Drop("job_status_res", func(m *message) bool {
			return m.Cause == "job_status_announce" && slices.Index(m.Job.Clients, m.Peer) > 0
		})},
	{Name: "first-waiter-only-result", About: "The server sends the result only to the first of several waiting applications.",
		Kills: "dup.both-wait dup.waits-from-the-middle dup.all-wait leave.joined", Edit: inject.Drop("job_complete_res", func(m *message) bool {
			return m.Cause == "job_complete_announce" && slices.Index(m.Job.Clients, m.Peer) > 0
		})},
	{Name: "async-has-no-waiters", About: "The server does not send a result to a type 0 duplicate of a type 1 job.",
		Kills: "dup.waits-for-async", Edit: inject.Drop("job_complete_res", func(m *message) bool {
			return m.Cause == "job_complete_announce" && m.Job.Type == async
		})},
	{Name: "duplicate-streamed-to-first", About: "The server also sends the result to the application of a type 1 job if another application waits for the job.",
		Kills: "dup.waits-for-async", Edit: inject.On("job_complete_announce", nil, func(m *message) {
			m.Pass()
			if j := m.Job; j != nil && j.Type == async && len(j.Clients) > 0 && !j.Creator.Left {
				j.Creator.Send("job_complete_res", number(1), m.Args[0], m.Args[1])
			}
		})},
	{Name: "key-kept", About: "The server keeps the key of a successful job, so that it can never be used again.",
		Kills: "dup.finished-anew", Edit: keyKept(func(j *job) bool { return j.Code == 0 })},
	{Name: "key-of-failure-kept", About: "The server keeps the key of a failed job, so that it can never be used again.",
		Kills: "dup.failed-anew", Edit: keyKept(func(j *job) bool { return j.Code != 0 })},
	{Name: "waiters-leave-together", About: "When one waiting application disconnects, the server sends nothing more to the first one.",
		Kills: "dup.second-leaves", Edit: noResultAfterLeave(func(p *peer, j *job) bool { return p == j.Creator })},
	{Name: "creator-takes-job-along", About: "When the application that created a job disconnects, the server sends nothing more to the others that wait.",
		Kills: "dup.first-leaves leave.joined", Edit: noResultAfterLeave(func(p *peer, j *job) bool { return p != j.Creator })},
}

// unkeyed makes the server run a duplicate.
func unkeyed(when inject.When) inject.Edit {
	return inject.Change("job_create_req", 1, func(m *message) bool { return m.Job.Dups > 0 && when(m) }, inject.To(""))
}

// duplicateOf answers a submission with the handle of another job, if there is one for which is holds.
func duplicateOf(is func(m *message, o *job) bool) inject.Edit {
	return inject.On("job_create_req", nil, func(m *message) {
		if other := m.Find(func(o *job) bool { return o != m.Job && is(m, o) }); other != nil {
			m.Answer("job_create_res", other.ID)
		}
	})
}

// keyKept answers a submission with the handle of a finished job with the same name and key.
func keyKept(of func(j *job) bool) inject.Edit {
	return duplicateOf(func(m *message, o *job) bool {
		return o.Ended != "" && o.Unique != "" && o.Queue == m.Job.Queue && o.Unique == m.Job.Unique && of(o)
	})
}

// noResultAfterLeave sends no result to some of the applications that wait for a job after another one of them has disconnected.
func noResultAfterLeave(which func(p *peer, j *job) bool) inject.Edit {
	return func(s *inject.Server) {
		left := map[*job]bool{}
		s.On(inject.Ended, func(m *message) {
			if j := waits(m.Peer); j != nil {
				left[j] = true
			}
		})
		inject.Drop("job_complete_res", func(m *message) bool {
			return m.Cause == "job_complete_announce" && left[m.Job] && which(m.Peer, m.Job)
		})(s)
	}
}

// ofWaiting is a condition on replies: they are about a job of type 0.
func ofWaiting(m *message) bool { return answer(m) && m.Job != nil && m.Job.Type == sync }

// retries are faults in jobs whose worker disconnects.
var retries = []row{
	{Name: "sync-lost-with-worker", About: "The server drops a type 0 job without progress when its worker disconnects.",
		Kills: "retry.worker-closes retry.worker-breaks-off retry.twice retry.returns args.missing-code violation.job-tried-again retry.types",
		Edit:  inject.Ignore(inject.Closed, inject.OfJob(func(j *job) bool { return j.Type == sync && j.Reports == 0 && j.Lost == 0 }))},
	{Name: "reset-noticed-late", About: "The server notices a connection reset one second late.",
		Kills: "retry.worker-breaks-off retry.types", Edit: inject.Wrap(func(c net.Conn) net.Conn {
			return inject.Reading(c, func(p []byte) (int, error) {
				n, err := c.Read(p)
				if errors.Is(err, syscall.ECONNRESET) {
					time.Sleep(time.Second)
				}
				return n, err
			})
		})},
	{Name: "retry-loses-args", About: "The server assigns a type 0 job without progress again with empty args after its worker disconnected.",
		Kills: "retry.worker-closes retry.worker-breaks-off retry.worker-half-closes retry.twice retry.returns args.missing-code violation.job-tried-again retry.goodbye retry.types",
		Edit: inject.Rewrite("job_assign_res", 1, func(m *message) bool {
			j := m.Peer.Job
			return j != nil && j.Lost > 0 && j.Type == sync && j.Reports == 0
		}, inject.To(""))},
	{Name: "progress-forbids-retry", About: "The server drops a job with progress when its worker disconnects.",
		Kills: "retry.after-progress", Edit: inject.Ignore(inject.Closed, inject.OfJob(func(j *job) bool { return j.Reports > 0 }))},
	{Name: "async-lost-with-worker", About: "The server drops a type 1 job without a key when its worker disconnects.",
		Kills: "retry.same-handle retry.types", Edit: inject.Ignore(inject.Closed, inject.OfJob(func(j *job) bool { return j.Type == async && j.Unique == "" }))},
	{Name: "lost-job-complete", About: "The server reports a type 1 job as complete when its worker disconnects.",
		Kills: "retry.same-handle", Edit: inject.Rewrite("job_complete_res", 0, inject.OfJob(func(j *job) bool { return j.Lost > 0 && j.Ended == "" }), inject.To(number(1)))},
	{Name: "thrown-away-lost-with-worker", About: "The server drops a type 2 job when its worker disconnects after its application.",
		Kills: "retry.thrown-away", Edit: inject.Ignore(inject.Closed, inject.OfJob(func(j *job) bool { return j.Type == throw && j.Creator.Left }))},
	{Name: "one-retry", About: "The server drops a job when its second worker disconnects.",
		Kills: "retry.twice", Edit: inject.Ignore(inject.Closed, inject.OfJob(func(j *job) bool { return j.Lost == 1 }))},
	{Name: "retry-cuts-args", About: "The server truncates the args of a job at the first NUL when it assigns the job again.",
		Kills: "retry.all-the-args", Edit: inject.Rewrite("job_assign_res", 1, func(m *message) bool { return m.Peer.Job != nil && m.Peer.Job.Lost > 0 }, inject.ToNUL)},
	{Name: "retry-does-not-wake", About: "The server wakes no worker for a job whose worker disconnected.",
		Kills: "retry.wakes", Edit: inject.Drop("noop", func(m *message) bool {
			return m.Cause == inject.Leave || asWake(func(m *message) bool { return m.Job.Lost > 0 })(m)
		})},
	{Name: "retry-frees-key", About: "The server does not detect duplicates of a job that is queued again after its worker disconnected.",
		Kills: "retry.still-one", Edit: unkeyed(func(m *message) bool { return m.Job.Lost > 0 && m.Job.Worker == nil })},
	{Name: "result-lost-with-worker", About: "The server runs a type 0 job again if its worker disconnects immediately after the result.",
		Kills: "retry.not-after-result",
		Edit: inject.On(inject.Closed, func(m *message) bool { return len(m.Peer.Done) > 0 && m.Peer.Last() == "job_complete_announce" }, func(m *message) {
			if j := m.Peer.Done[len(m.Peer.Done)-1]; j.Type == sync {
				recreate(m.Peer, j)
			}
		})},
	{Name: "failure-tried-again", About: "The server runs a type 0 job again if it fails.",
		Kills: "dup.failed-anew retry.not-after-error", Edit: inject.On("job_complete_announce", nil, func(m *message) {
			m.Pass()
			if j := m.Job; j != nil && j.Type == sync && j.Code != 0 {
				recreate(m.Peer, j)
			}
		})},
	{Name: "two-tasks-of-a-name", About: "The server assigns a worker that has a job a second job of the same name.",
		Kills: "worker.one-task", Edit: assignsInstead(func(m *message) bool { return m.Peer.Job != nil },
			func(p *peer, j *job) bool { return j.Queued() && j.Queue == p.Job.Queue })},
	{Name: "two-tasks-of-two-names", About: "The server assigns a worker that has a job a second job of another name.",
		Kills: "worker.one-task-others-go-on", Edit: assignsInstead(func(m *message) bool { return m.Peer.Job != nil },
			func(p *peer, j *job) bool { return j.Queued() && j.Queue != p.Job.Queue && p.Does(j.Queue) })},
}

// recreate submits a job again, for which no application waits.
func recreate(p *peer, j *job) {
	p.GiveSilently("job_create_req", j.Queue, "", "\x00", throw, j.Data)
}
