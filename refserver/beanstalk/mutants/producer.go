package mutants

import (
	"bytes"
	"strings"

	"jobwire/codec"
	protocol "jobwire/codec/beanstalk"
	"jobwire/refserver/inject"
)

// producer are faults of section "Producer Commands".
var producer = []row{
	{Name: "new-job-shown-in-default", About: "stats-job reports a ready job that was never reserved as being in the tube default.",
		Kills: "put.inserted",
		Edit: shownIf("stats-job", "tube", "default", func(_ *job, all figures) bool {
			return all["state"] == "ready" && all["reserves"] == "0" && all["kicks"] == "0"
		})},
	{Name: "put-does-not-wake", About: "A worker that waits in reserve does not get a new job.",
		Kills: "put.wakes reserve.blocks connection.behind-reserve connection.put-behind-reserve reserve.once reserve.two-jobs-two-workers reserve.waiters-in-order reserve.waits-on-several-tubes gone.waiting-behind stats-tube.waiting",
		Edit:  inject.Drop("RESERVED", func(m *message) bool { return m.Cause == "put" && m.Peer.Asked() == "reserve" })},
	{Name: "own-first-job-not-found", About: "delete does not find a client's first job if the client itself has reserved it.",
		Kills: "put.own-reserve body.in-pieces body.all-kinds-of-bytes body.like-commands body.line-ends-only body.large delay.waits timeout.job-there delete.reserved",
		Edit: inject.Ignore("delete", func(m *message) bool {
			return m.Heard == 6 && m.Job != nil && m.Job.Worker == m.Peer && m.Job.Creator == m.Peer
		})},

	// Priorities.
	{Name: "zero-is-no-priority", About: "The server treats priority 0 as the lowest priority.",
		Kills: "put.priority-order release.priority bury.priority stats-tube.urgent stats.jobs", Edit: inject.Change("put", 0, inject.ArgIs(0, "0"), inject.To("4294967295"))},
	{Name: "priorities-compared-as-text", About: "The server treats priority 9 as 90.",
		Kills: "put.priority-not-by-text", Edit: inject.Change("put", 0, inject.ArgIs(0, "9"), inject.To("90"))},
	{Name: "highest-priority-shown-negative", About: "stats-job reports priority 4294967295 as -1.",
		Kills: "put.priority-highest", Edit: shownIf("stats-job", "pri", "-1", func(_ *job, all figures) bool { return all["pri"] == "4294967295" })},
	{Name: "priority-cut-off", About: "The server replaces a priority above 4294967295 by 4294967295.",
		Kills: "put.priority-too-high", Edit: readAs(`^put 4294967296 100 `, "put 4294967295 100 ")},
	{Name: "sign-of-a-priority-dropped", About: "The server ignores a minus sign before a priority.",
		Kills: "put.priority-negative", Edit: readAs(`^put -1 `, "put 1 ")},
	{Name: "priority-in-letters-is-zero", About: "The server reads a priority that is not a number as 0.",
		Kills: "put.priority-no-number", Edit: readAs(`^put high `, "put 0 ")},
	{Name: "priority-of-release-cut-off", About: "release and bury truncate a priority to 32 bits.",
		Kills: "release.priority-too-high", Edit: readAs(`^(release|bury) (\d+) 4294967296`, "$1 $2 0")},

	// Delays.
	{Name: "second-of-delay-skipped", About: "A job with a delay of 1 second is ready at once.",
		Kills: "delay.waits", Edit: inject.Change("put", 1, inject.ArgIs(1, "1"), inject.To("0"))},
	{Name: "delayed-job-peeked-as-ready", About: "peek-ready returns a delayed job if there is no ready one.",
		Kills: "delay.not-at-once", Edit: instead("NOT_FOUND", "FOUND", func(m *message, j *job) bool {
			return m.Cause == "peek-ready" && j.State == "delayed" && j.Queue == m.Peer.Tube && j.Args[1] == "100"
		})},
	{Name: "delay-of-31-bits", About: "The server rejects a delay above 2147483647.",
		Kills: "delay.highest", Edit: inject.Answer("put", func(m *message) bool { return above(m.Args[1], 1<<31) }, "BAD_FORMAT")},
	{Name: "delay-wraps", About: "The server reads a delay modulo 2^32.",
		Kills: "delay.too-high", Edit: readAs(`^put 0 4294967296 60 `, "put 0 0 60 ")},
	{Name: "sign-of-a-delay-dropped", About: "The server ignores a minus sign before a delay.",
		Kills: "delay.no-number", Edit: readAs(`^put 0 -1 60 `, "put 0 1 60 ")},

	// Times to run.
	{Name: "time-outs-not-counted", About: "stats-job does not count timeouts of a job.",
		Kills: "ttr.expires timed-out.others-job", Edit: always("stats-job", "timeouts", "0")},
	{Name: "no-time-is-endless", About: "A time to run of 0 means no limit.",
		Kills: "ttr.zero ttr.zero-told", Edit: inject.Change("put", 2, inject.ArgIs(2, "0"), inject.To("4294967295"))},
	{Name: "time-runs-from-put", About: "stats-job computes the time left of a reserved job from the put instead of the reserve.",
		Kills: "ttr.from-reservation touch.extends", Edit: figure("stats-job", "time-left", func(m *message, all figures) string {
			if all["state"] == "reserved" && all["age"] != "0" {
				return decimal(all.number("ttr") - all.number("age") - 1)
			}
			return all["time-left"]
		})},
	{Name: "time-of-31-bits", About: "The server rejects a time to run above 2147483647.",
		Kills: "ttr.highest", Edit: inject.Answer("put", func(m *message) bool { return above(m.Args[2], 1<<31) }, "BAD_FORMAT")},
	{Name: "time-wraps", About: "The server reads a time to run modulo 2^32.",
		Kills: "ttr.too-high", Edit: readAs(`^put 0 0 4294967296 `, "put 0 0 0 ")},
	{Name: "sign-of-a-time-dropped", About: "The server ignores a minus sign before a time to run.",
		Kills: "ttr.no-number", Edit: readAs(`^put 0 100 -1 `, "put 0 100 1 ")},

	// Sizes.
	{Name: "body-of-65534", About: "The server rejects bodies of more than 65534 bytes.",
		Kills: "size.largest", Codec: codec.Options{MaxData: 65534}},
	{Name: "too-big-is-malformed", About: "The server replies BAD_FORMAT to a body that is two bytes too large.",
		Kills: "size.too-big", Edit: inject.Answer(inject.Illegal, text(`^put 0 100 60 65537\r`), "BAD_FORMAT")},
	{Name: "too-big-by-one-is-malformed", About: "The server replies BAD_FORMAT to a body that is one byte too large.",
		Kills: "size.one-too-big", Edit: inject.Answer(inject.Illegal, text(`^put 0 100 60 65536\r`), "BAD_FORMAT")},
	{Name: "big-body-run", About: "The server executes a body that is too large as commands.",
		Kills: "size.too-big-skipped size.too-big-twice", Edit: inject.Decode(func(s codec.Session, p []byte, f *codec.Frame) (int, error) {
			n, err := s.Decode(codec.Peer, p, f)
			if e, ok := err.(*codec.Error); ok && e.Rule == protocol.RulePutSize {
				if k := bytes.IndexByte(p, '\n') + 1; bytes.Contains(p[:k], []byte(" 69000")) || bytes.Contains(p[:k], []byte(" 70000")) {
					n = k
				}
			}
			return n, err
		})},
	{Name: "announced-memory-taken", About: "The server allocates memory for a body when its size is announced.",
		Kills: "size.4-gigabytes", Edit: inject.Crash(inject.Illegal, text(`^put 0 0 60 4294967295\r`))},
	{Name: "overflowing-size-is-zero", About: "The server reads a size that does not fit in an integer as 0.",
		Kills: "size.beyond-32-bits", Edit: readAs(`(?s)^put 0 100 60 (4294967296|18446744073709551616)\r\n.*`, "put 0 100 60 0\r\n\r\n")},
	{Name: "size-in-letters-is-zero", About: "The server reads a size that is not a number as 0.",
		Kills: "size.no-number", Edit: readAs(`(?s)^put 0 100 60 x\r\n.*`, "put 0 100 60 0\r\n\r\n")},
	{Name: "size-of-33-bits-awaited", About: "The server waits for a body with a size of 33 bits instead of rejecting it.",
		Kills: "size.wraps", Edit: inject.Ignore(inject.Illegal, text(`^put 0 100 60 4294967297\r`))},

	// The end of a body.
	{Name: "surplus-of-a-body-dropped", About: "The server ignores the bytes of a body beyond its announced size.",
		Kills: "crlf.missing crlf.longer-body", Edit: readAs(`(?s)^(put 0 100 60 5\r\nhello)(xx|, world)`, "$1")},
	{Name: "short-body-malformed", About: "The server replies BAD_FORMAT to a body that is shorter than announced.",
		Kills: "crlf.shorter-body", Edit: inject.Answer(inject.Illegal, text(`(?s)^put 0 100 60 9\r\nhello\r\n`), "BAD_FORMAT")},
	{Name: "lf-ends-a-body", About: "The server accepts LF instead of CR LF after a body.",
		Kills: "crlf.lf-alone", Edit: readAs(`(?s)^(put 0 100 60 5\r\nhello)\nx`, "$1")},
	{Name: "rest-of-a-body-run", About: "The server executes the bytes of a body beyond its announced size as commands.",
		Kills: "crlf.resync crlf.resync-no-command crlf.resync-pipeline", Edit: inject.On(inject.Illegal, text(`(?s)^put 0 100 60 [35]\r\n`), func(m *message) {
			line, body, _ := strings.Cut(m.Text(), "\r\n")
			m.Answer("EXPECTED_CRLF")
			m.Peer.Feed(body[number(line[len(line)-1:])+2:])
		})},
	{Name: "body-of-a-malformed-put-run", About: "The server executes the body of a malformed put as commands.",
		Kills: "malformed.priority malformed.delay malformed.ttr malformed.surplus malformed.pipeline size.too-big-skipped",
		Edit: inject.On(inject.Illegal, text(`(?s)^put [^\r]*\r\n(use|quit)`), func(m *message) {
			_, body, _ := strings.Cut(m.Text(), "\r\n")
			m.Answer("BAD_FORMAT")
			m.Peer.Feed(body)
		})},
	{Name: "half-a-body-put", About: "The server creates a job from an incomplete body when the client disconnects.",
		Kills: "put.half-a-body put.body-reset", Edit: func(s *inject.Server) {
			var partial string
			inject.Incomplete(func(_ codec.Session, p []byte) []byte {
				partial = ""
				if inBody(p) {
					partial = string(p)
				}
				return nil
			})(s)
			s.On(inject.Closed, func(m *message) {
				if strings.HasPrefix(partial, "put 0 0 60 10\r\n") {
					m.Peer.Ask("put", "0", "0", "60", "hello")
					partial = ""
				}
			})
		}},

	// use.
	{Name: "use-noted-late", About: "list-tube-used immediately after the first use returns the previous tube.",
		Kills: "use.using quit.after-replies",
		Edit:  inject.Answer("list-tube-used", func(m *message) bool { return m.Peer.Heard == 2 && m.Peer.Last() == "use" }, "USING", "default")},
	{Name: "use-counted-twice", About: "current-using counts a client twice that uses the same tube again.",
		Kills: "use.again", Edit: func(s *inject.Server) {
			again := 0
			s.On("use", func(m *message) {
				if m.Peer.Tube == m.Args[0] && m.Args[0] != "default" {
					again++
				}
			})
			figure("stats-tube", "current-using", func(_ *message, all figures) string { return decimal(all.number("current-using") + again) })(s)
		}},
	{Name: "first-put-decides", About: "After a client has put a delayed job, its later jobs go into the same tube, whatever tube it uses.",
		Kills: "use.subsequent-puts", Edit: inject.On("put", nil, func(m *message) {
			first := m.Find(func(j *job) bool { return j.Creator == m.Peer && j.Args[1] != "0" })
			if first != nil && first.Queue != m.Peer.Tube && m.Args[1] != "0" {
				putInto(m, first.Queue)
			}
		})},
	{Name: "watch-uses", About: "\"watch\" of a second tube also uses that tube.",
		Kills: "use.not-watch list.used ignore.no-more-jobs stats.commands-about-tubes stats.tubes list.tubes", Edit: inject.On("watch", nil, func(m *message) {
			if used := m.Peer.Tube; used != "default" && used != m.Args[0] {
				m.Peer.Ask("use", m.Args[0])
			}
		})},
	{Name: "use-for-all", About: "list-tube-used returns another client's tube to a client that has sent no \"use\".",
		Kills: "use.own-connection connection.close crlf.resync-no-command stats-job.lost-connection", Edit: func(s *inject.Server) {
			last := "default"
			s.On("use", func(m *message) { last = m.Args[0] })
			s.On("list-tube-used", func(m *message) {
				if m.Peer.Heard == 1 {
					m.Answer("USING", last)
				}
			})
		}},
}

// putInto puts a job into another tube than the one that the client uses.
func putInto(m *message, tube string) {
	used := m.Peer.Tube
	m.Peer.Ask("use", tube)
	m.Pass()
	m.Peer.Ask("use", used)
}
