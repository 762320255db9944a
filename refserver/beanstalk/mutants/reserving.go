package mutants

import (
	"errors"
	"net"
	"os"
	"slices"
	"time"

	"jobwire/refserver/inject"
)

// reserving are faults of section "Worker Commands": reserve, and workers that wait or leave.
var reserving = []row{
	{Name: "reserved-shown-ready", About: "stats-job reports a job that a client other than its producer has reserved as ready.",
		Kills: "reserve.reserved timed-out.others-job reserve-job.ready",
		Edit:  shownIf("stats-job", "state", "ready", func(j *job, all figures) bool { return j.Worker != nil && j.Worker != j.Creator })},
	{Name: "last-put-first", About: "reserve returns the newest instead of the oldest job with priority 7.",
		Kills: "reserve.fifo reserve.fifo-many", Edit: func(s *inject.Server) {
			n := 8
			inject.Change("put", 0, inject.ArgIs(0, "7"), func(string) string { n--; return decimal(n) })(s)
		}},
	{Name: "tubes-in-the-order-of-watching", About: "reserve prefers the tube that was watched first, whatever the priorities of the jobs.",
		Kills: "reserve.across-tubes-priority reserve.across-tubes-fifo pause.other-tubes", Edit: inject.On("reserve", nil, func(m *message) {
			all := m.Peer.Ask("list-tubes-watched").Args
			i := slices.IndexFunc(all, func(t string) bool { return ask(m.Peer, "stats-tube", t)["current-jobs-ready"] != "0" })
			if i < 0 || i == len(all)-1 {
				return
			}
			for _, other := range all[i+1:] {
				m.Peer.Ask("ignore", other)
			}
			m.Pass()
			for _, other := range all[i+1:] {
				if !m.Peer.Waits {
					m.Peer.Ask("watch", other)
				}
			}
		})},
	{Name: "all-waiters-served", About: "The server sends the same job to all waiting workers.",
		Kills: "reserve.once reserve.two-jobs-two-workers reserve.waiters-in-order", Edit: func(s *inject.Server) {
			var job []string // that a worker got by a put
			s.Out("RESERVED", func(m *message) {
				if m.Cause == "put" {
					job = m.Args
				}
			})
			s.On("put", func(m *message) {
				job = nil
				m.Pass()
				for _, p := range m.Peers {
					if job != nil && p.Waits && p.Asked() == "reserve" {
						p.Send("RESERVED", job...)
					}
				}
			})
		}},
	{Name: "one-reserved-at-most", About: "stats-tube counts at most one reserved job.",
		Kills: "reserve.two-jobs-two-workers kick.two-waiters ttr.expires", Edit: atMost("stats-tube", "current-jobs-reserved", 1)},
	{Name: "last-waiter-first", About: "The server serves the worker that started to wait last first.",
		Kills: "reserve.waiters-in-order reserve.once stats-tube.waiting", Edit: func(s *inject.Server) {
			var waiting []*peer
			s.On("reserve reserve-with-timeout", func(m *message) {
				if m.Pass(); m.Peer.Waits {
					waiting = append(waiting, m.Peer)
				}
			})
			s.On(inject.Closed, func(m *message) {
				waiting = slices.DeleteFunc(waiting, func(p *peer) bool { return p == m.Peer })
			})
			s.Out("RESERVED", func(m *message) {
				n := len(waiting)
				if m.Cause != "put" || n == 0 {
					return
				}
				last := waiting[n-1]
				if waiting = waiting[:n-1]; last != m.Peer {
					last.Send("RESERVED", m.Args...)
					m.Drop()
				}
			})
		}},
	{Name: "waits-on-in-the-other-tube", About: "The server reserves another job for a worker that waited on several tubes and does not send it.",
		Kills: "reserve.waits-on-several-tubes", Edit: func(s *inject.Server) {
			var still, next *peer
			s.On("put", func(m *message) {
				m.Pass()
				if still != nil && !still.Left {
					still.Ask("reserve-with-timeout", "0")
				}
				still = next
			})
			s.On("reserve", func(m *message) { m.Peer.Mark = len(m.Peer.Ask("list-tubes-watched").Args) > 1 })
			s.Out("RESERVED", func(m *message) {
				if m.Cause == "put" && m.Peer.Mark {
					next = m.Peer
				}
			})
		}},
	{Name: "one-job-to-release", About: "release fails for a worker that has several jobs.",
		Kills: "reserve.several pause.takes-jobs", Edit: inject.Answer("release", func(m *message) bool { return m.Job != nil && len(m.Peer.Jobs()) > 1 }, "NOT_FOUND")},

	// reserve-with-timeout.
	{Name: "no-timeout-is-a-second", About: "reserve-with-timeout 0 waits for a second if the client has not sent a put.",
		Kills: "timeout.zero timeout.no-job-afterwards", Edit: inject.Change("reserve-with-timeout", 0, func(m *message) bool {
			return len(m.Jobs) == 0 && m.Args[0] == "0" && m.Peer.Tube != "default"
		}, inject.To("1"))},
	{Name: "second-not-waited", About: "reserve-with-timeout 1 returns at once.",
		Kills: "timeout.expires", Edit: inject.Change("reserve-with-timeout", 0, inject.ArgIs(0, "1"), inject.To("0"))},
	{Name: "put-does-not-end-a-timeout", About: "A worker that waits in reserve-with-timeout does not get a new job.",
		Kills: "timeout.job-in-time timeout.negative",
		Edit:  inject.Drop("RESERVED", func(m *message) bool { return m.Cause == "put" && m.Peer.Asked() == "reserve-with-timeout" })},
	{Name: "timeout-of-31-bits", About: "The server rejects a timeout above 2147483647.",
		Kills: "timeout.job-there", Edit: inject.Answer("reserve-with-timeout", func(m *message) bool { return number(m.Args[0]) >= 1<<31 }, "BAD_FORMAT")},
	{Name: "negative-timeout-is-zero", About: "reserve-with-timeout with a negative timeout returns at once.",
		Kills: "timeout.negative timeout.negative-waits", Edit: inject.Change("reserve-with-timeout", 0, inject.ArgIs(0, "-1"), inject.To("0"))},
	{Name: "timeout-in-letters-is-zero", About: "The server reads a timeout that is not a number as 0.",
		Kills: "timeout.no-number", Edit: readAs(`^reserve-with-timeout [a-z]+\r`, "reserve-with-timeout 0\r")},
	{Name: "absent-timeout-is-zero", About: "reserve-with-timeout without a timeout returns at once.",
		Kills: "timeout.absent", Edit: readAs(`^reserve-with-timeout ?\r`, "reserve-with-timeout 0\r")},
	{Name: "waits-on-after-a-timeout", About: "The server reserves a job for a worker after TIMED_OUT and does not send it.",
		Kills: "timeout.zero timeout.no-job-afterwards timeout.expires",
		Edit: inject.On("put", func(m *message) bool { return m.Peer.Last() == "reserve-with-timeout" }, func(m *message) {
			m.Pass()
			m.Peer.Ask("reserve-with-timeout", "0")
		})},

	// Half-closed clients, and clients that leave.
	{Name: "half-close-unnoticed", About: "A reserve keeps waiting after the worker has half-closed the connection.",
		Kills: "half-closed.waiting half-closed.waiting-with-timeout half-closed.before gone.waiting",
		Edit:  inject.Ignore(inject.HalfClosed, func(m *message) bool { return m.Peer.Waits })},
	{Name: "half-closed-not-answered", About: "The server sends no more replies to a client that half-closes the connection immediately after reserve.",
		Kills: "half-closed.with-a-job", Edit: func(s *inject.Server) {
			pending := map[*peer]bool{}
			s.On(inject.HalfClosed, func(m *message) {
				if !pending[m.Peer] {
					return
				}
				delete(pending, m.Peer)
				m.Peer.Ignored = true
				m.Peer.Resume()
				m.Drop()
			})
			s.On("reserve", func(m *message) {
				if m.Find(func(j *job) bool { return j.Creator == m.Peer && j.State == "ready" }) == nil {
					return
				}
				pending[m.Peer] = true
				m.Drop()
				m.Peer.Hold()
				m.Peer.Later(30*time.Millisecond, func() {
					if pending[m.Peer] {
						delete(pending, m.Peer)
						m.Peer.Resume()
						m.Peer.Give("reserve")
					}
				})
			})
		}},
	{Name: "last-words-lost", About: "The server discards commands that arrive immediately before a client half-closes the connection.",
		Kills: "half-closed.replies", Edit: inject.Wrap(losesLastData)},
	{Name: "half-close-answered", About: "The server sends TIMED_OUT to a client that half-closes the connection without waiting.",
		Kills: "half-closed.ends",
		Edit:  inject.On(inject.HalfClosed, func(m *message) bool { return !m.Peer.Waits && m.Peer.Heard == 1 }, func(m *message) { m.Peer.Send("TIMED_OUT\r\n") })},
	{Name: "job-for-who-has-left", About: "The server reserves the next job for a waiting worker that has disconnected.",
		Kills: "gone.waiting gone.waiting-behind", Edit: func(s *inject.Server) {
			gone := false
			s.On(inject.Closed+" "+inject.HalfClosed, func(m *message) { gone = gone || m.Peer.Waits && len(m.Jobs) == 0 })
			inject.Answer("put", func(*message) bool { return gone }, "INSERTED", "1")(s)
		}},
	{Name: "jobs-lost-with-their-worker", About: "The server loses the reserved jobs of a worker that disconnects.",
		Kills: "gone.closes gone.resets gone.quits gone.half-closes gone.delay-not-again reserve.two-jobs-two-workers stats-job.lost-connection",
		Edit: inject.On(inject.Closed, nil, func(m *message) {
			for _, j := range m.Peer.Jobs() {
				m.Peer.Ask("delete", j.ID)
			}
		})},
	{Name: "second-job-lost-by-quit", About: "Only one of the reserved jobs of a worker becomes ready again when the worker quits.",
		Kills: "gone.quits", Edit: inject.On(inject.Closed, func(m *message) bool { return m.Peer.Count["quit"] > 0 }, func(m *message) {
			for i, j := range m.Peer.Jobs() {
				if i > 0 {
					m.Peer.Ask("delete", j.ID)
				}
			}
		})},
	{Name: "left-job-delayed-again", About: "The job of a worker that disconnects is delayed again as in its put.",
		Kills: "gone.delay-not-again", Edit: inject.On(inject.Closed, nil, func(m *message) {
			for _, j := range m.Peer.Jobs() {
				if j.Args[1] != "0" {
					m.Peer.Ask("release", j.ID, j.Args[0], j.Args[1])
				}
			}
		})},

	// The safety margin.
	{Name: "no-safety-margin", About: "The server never sends DEADLINE_SOON.",
		Kills: "deadline.in-margin deadline.while-waiting deadline.with-timeout deadline.still-held deadline.again deadline.first-of-several",
		Fault: "retype DEADLINE_SOON TIMED_OUT"},
	{Name: "no-margin-while-waiting", About: "The server does not send DEADLINE_SOON to a worker that is waiting already.",
		Kills: "deadline.while-waiting", Edit: inject.Drop("DEADLINE_SOON", inject.CauseIs(inject.Time))},
	{Name: "no-margin-with-timeout", About: "The server does not send DEADLINE_SOON in reply to reserve-with-timeout.",
		Kills: "deadline.with-timeout", Edit: inject.Replace("DEADLINE_SOON", func(m *message) bool { return m.Peer.Asked() == "reserve-with-timeout" }, "TIMED_OUT")},
	{Name: "deadline-told-once", About: "The server sends DEADLINE_SOON to a worker only once.",
		Kills: "deadline.again deadline.still-held", Fault: "retype DEADLINE_SOON TIMED_OUT nth=2"},
	{Name: "job-lost-at-the-deadline", About: "A worker that has received DEADLINE_SOON cannot touch its job.",
		Kills: "deadline.still-held", Edit: inject.Answer("touch", func(m *message) bool { return m.Job != nil && m.Peer.Reply == "DEADLINE_SOON" }, "NOT_FOUND")},
	{Name: "holder-always-warned", About: "The server sends DEADLINE_SOON instead of TIMED_OUT to a worker that has a job.",
		Kills: "deadline.timeout-first life.exclusive deadline.first-of-several",
		Edit:  inject.Replace("TIMED_OUT", func(m *message) bool { return len(m.Peer.Jobs()) > 0 }, "DEADLINE_SOON")},
	{Name: "warned-of-others-jobs", About: "The server sends DEADLINE_SOON to a worker because of another worker's job.",
		Kills: "deadline.not-others", Edit: inject.Replace("TIMED_OUT", func(m *message) bool {
			return m.Find(func(j *job) bool { return j.Worker != nil && j.Worker != m.Peer && j.Args[2] == "1" }) != nil
		}, "DEADLINE_SOON")},
	{Name: "margin-keeps-jobs-back", About: "The server sends DEADLINE_SOON instead of a job that is ready.",
		Kills: "deadline.a-job-is-ready", Edit: inject.Ignore("reserve", func(m *message) bool {
			return slices.ContainsFunc(m.Peer.Jobs(), func(j *job) bool { return j.Args[2] == "1" }) &&
				m.Find(func(j *job) bool { return j.State == "ready" }) != nil
		})},
}

// losesLastData discards data that the peer sends immediately before it closes its direction.
func losesLastData(c net.Conn) net.Conn {
	return inject.Reading(c, func(p []byte) (int, error) {
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
