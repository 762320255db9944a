package mutants

import (
	"strings"

	protocol "jobwire/codec/gearman"
	"jobwire/refserver/inject"
)

// administration are faults of section "Administrative Protocol".
var administration = []row{
	{Name: "text-for-good", About: "The server ignores packets on a connection that started with a text command.",
		Kills: "admin.among-packets", Edit: inject.Ignore("ECHO_REQ", func(m *message) bool { return m.Peer.First == "version" })},
	{Name: "packets-for-good", About: "The server ignores text commands on a connection that started with a packet.",
		Kills: "admin.with-packet-in-a-segment", Edit: inject.Ignore("version", func(m *message) bool { return m.Peer.First != "version" })},
	{Name: "line-in-pieces-lost", About: "The server discards a text line that arrives in more than one segment.",
		Kills: "admin.in-pieces", Edit: losing(func(s *stream, _ []byte) bool { return len(s.head) > 0 && s.head[0] != 0 })},
	{Name: "carriage-return-kept", About: "The server treats the carriage return at the end of a line as part of the command.",
		Kills: "admin.line-of-crlf", Edit: inject.Answer("version", func(m *message) bool { return m.Frame.CRLF }, "ERR", "UNKNOWN_COMMAND", "Unknown+server+command")},
	{Name: "endless-line-ends-the-server", About: "The server crashes when a line is too long.",
		Kills: "admin.line-without-end", Edit: inject.Crash(inject.Illegal, func(m *message) bool { return m.Err.Rule == protocol.RuleAdminLine })},
	{Name: "workers-list-late", About: "The server sends the reply to the next request before the reply to \"workers\".",
		Kills: "admin.order", Fault: "delay workers-reply 60ms"},
	{Name: "unknown-command-passed-over", About: "The server does not reply to an unknown command.",
		Kills: "admin.unknown-command", Fault: "drop ERR when error-code=UNKNOWN_COMMAND"},
	{Name: "empty-line-closes", About: "The server closes the connection after an empty line.",
		Kills: "admin.empty-line", Edit: inject.Hangup(inject.Illegal, func(m *message) bool { return m.Text() == "\n" })},
	{Name: "blank-at-the-end-awaits-more", About: "The server waits for another argument after a line that ends with a space.",
		Kills: "admin.blank-at-the-end", Edit: inject.Ignore("version", func(m *message) bool { return strings.HasSuffix(m.Text(), " \n") })},
	{Name: "two-blanks-passed-over", About: "The server does not reply to a line with two consecutive spaces.",
		Kills: "admin.two-blanks", Edit: inject.Ignore("maxqueue", func(m *message) bool { return strings.Contains(m.Text(), "  ") })},
	{Name: "surplus-word-passed-over", About: "The server does not reply to \"version\" with an extra argument.",
		Kills: "admin.surplus-argument", Fault: "drop ERR when error-text~*no+argument+after+version*"},
	{Name: "version-not-ready", About: "The server does not reply to \"version\" if that is the first request it ever receives.",
		Kills: "admin.version admin.among-packets admin.in-pieces admin.line-of-crlf admin.order admin.blank-at-the-end",
		Edit:  inject.Drop("version-reply", func(m *message) bool { return m.Heard == 1 })},
	{Name: "version-echoed", About: "The reply to version is an echo of the command.",
		Kills: "admin.version", Fault: "alter version-reply version=version"},
	{Name: "version-is-an-error-text", About: "The reply to version is an error message that contains a version number.",
		Kills: "admin.version", Fault: "alter version-reply version=unknown-command-in-1.1.20"},
	{Name: "many-sided-workers-unlisted", About: "The reply to \"workers\" omits workers with more than one function.",
		Kills: "admin.workers", Edit: rows("workers-reply", func(_ *message, args []string) bool { return len(strings.Fields(args[3])) < 2 })},
	{Name: "waiting-jobs-not-counted", About: "The reply to \"status\" counts at most one queued job for each function.",
		Kills: "admin.status-queued", Fault: "alter status-reply total=1 when total=2"},
	{Name: "running-not-counted", About: "The reply to \"status\" always reports 0 running jobs.",
		Kills: "admin.status-running", Fault: "alter status-reply running=0"},
	{Name: "second-worker-not-counted", About: "The reply to \"status\" counts at most one worker for each function.",
		Kills: "admin.status-workers", Fault: "alter status-reply available-workers=1 when available-workers=2"},
	{Name: "finished-jobs-counted", About: "The reply to \"status\" still counts jobs that are finished.",
		Kills: "admin.status-finished", Edit: rows("status-reply", func(m *message, args []string) bool {
			args[1] = inject.Decimal(len(m.FindAll(func(j *job) bool { return j.Queue == args[0] })))
			return true
		})},

	// The size of queues.
	{Name: "maxqueue-without-effect", About: "The server confirms \"maxqueue\" and ignores it.",
		Kills: "maxqueue.one maxqueue.every-priority maxqueue.line-of-crlf maxqueue.high maxqueue.normal maxqueue.low", Fault: "answer maxqueue OK when function~?*"},
	{Name: "one-size-not-for-normal", About: "A single size in \"maxqueue\" limits jobs of high and low priority, but not of normal priority.",
		Kills: "maxqueue.one maxqueue.line-of-crlf", Edit: sizes(1, func(s []string) []string { return []string{s[0], "0", s[0]} })},
	{Name: "one-size-not-for-high", About: "A single size in \"maxqueue\" does not limit jobs of high priority.",
		Kills: "maxqueue.every-priority", Edit: sizes(1, func(s []string) []string { return []string{"0", s[0], s[0]} })},
	{Name: "size-with-carriage-return", About: "The server does not accept a size in \"maxqueue\" if the line ends with CR LF.",
		Kills: "maxqueue.line-of-crlf", Edit: inject.On("maxqueue", func(m *message) bool { return m.Frame.CRLF }, func(m *message) { m.Args = m.Args[:1] })},
	{Name: "finished-jobs-fill-the-queue", About: "A limit set with \"maxqueue\" also counts finished jobs.",
		Kills: "maxqueue.room-again", Edit: limits(func(j *job, fn string) bool { return j.Queue == fn && j.Ended != "" })},
	{Name: "size-for-all-functions", About: "A limit set with \"maxqueue\" applies to the jobs of all functions together.",
		Kills: "maxqueue.other-functions", Edit: limits(func(j *job, _ string) bool { return j.Queued() })},
	{Name: "size-of-unknown-function-refused", About: "The server rejects \"maxqueue\" for a function that no job or worker has used yet.",
		Kills: "maxqueue.function-yet-unknown",
		Edit:  inject.Answer("maxqueue", func(m *message) bool { return !m.Announced(m.Args[0]) }, "ERR", "UNKNOWN_FUNCTION", "there+is+none")},
	{Name: "high-size-ignored", About: "The server ignores the size for high priority if \"maxqueue\" has three sizes.",
		Kills: "maxqueue.high", Edit: sizeIgnored(0)},
	{Name: "normal-size-ignored", About: "The server ignores the size for normal priority if \"maxqueue\" has three sizes.",
		Kills: "maxqueue.normal", Edit: sizeIgnored(1)},
	{Name: "low-size-ignored", About: "The server ignores the size for low priority if \"maxqueue\" has three sizes.",
		Kills: "maxqueue.low", Edit: sizeIgnored(2)},
	{Name: "sizes-in-reverse", About: "The server reads three sizes in \"maxqueue\" as low, normal, high instead of high, normal, low.",
		Kills: "maxqueue.high maxqueue.low", Edit: sizes(3, func(s []string) []string { return []string{s[2], s[1], s[0]} })},
	{Name: "zero-does-not-lift", About: "\"maxqueue\" with size 0 does not remove the limit.",
		Kills: "maxqueue.zero", Edit: inject.Answer("maxqueue", func(m *message) bool { return len(m.Args) == 2 && m.Args[1] == "0" }, "OK")},
	{Name: "negative-does-not-lift", About: "\"maxqueue\" with a negative size does not remove the limit.",
		Kills: "maxqueue.negative", Fault: "answer maxqueue OK when size~-*"},
	{Name: "default-does-not-lift", About: "\"maxqueue\" without a size does not remove the limit.",
		Kills: "maxqueue.default", Edit: inject.Answer("maxqueue", func(m *message) bool { return len(m.Args) == 1 }, "OK")},
	{Name: "maxqueue-alone-passed-over", About: "The server does not reply to \"maxqueue\" without a function name.",
		Kills: "maxqueue.no-function", Fault: "drop ERR when error-text~*Function*gearman.admin.arguments*"},
	{Name: "two-sizes-passed-over", About: "The server does not reply to \"maxqueue\" with two sizes.",
		Kills: "maxqueue.two-sizes", Fault: "drop ERR when error-text~*one+size*"},
	{Name: "size-without-digits-passed-over", About: "The server does not reply to \"maxqueue\" with a size that is not a number.",
		Kills: "maxqueue.no-number", Fault: "drop ERR when error-text~*gearman.number.decimal*"},

	// The end.
	{Name: "shutdown-is-graceful", About: "The server keeps existing connections open after \"shutdown\".",
		Kills: "shutdown.now", Edit: inject.On("shutdown", func(m *message) bool { return len(m.Args) == 0 }, func(m *message) { m.Args = []string{"graceful"} })},
	{Name: "graceful-is-shutdown", About: "The server closes all connections at once after \"shutdown graceful\".",
		Kills: "shutdown.graceful shutdown.graceful-waiting shutdown.graceful-refuses", Edit: inject.On("shutdown", graceful, func(m *message) { m.Args = nil })},
	{Name: "graceful-ends-running-jobs", About: "The server closes connections of workers with a running job after \"shutdown graceful\".",
		Kills: "shutdown.graceful", Edit: inject.On("shutdown", graceful, func(m *message) {
			m.Pass()
			for _, w := range m.Peers {
				if len(w.Jobs()) > 0 {
					w.Close()
				}
			}
		})},
	{Name: "graceful-hands-out-nothing", About: "The server assigns no queued jobs after \"shutdown graceful\".",
		Kills: "shutdown.graceful-waiting", Edit: func(s *inject.Server) {
			over := false
			s.On("shutdown", func(m *message) { over = graceful(m) })
			inject.Answer("GRAB_JOB", func(*message) bool { return over }, "NO_JOB")(s)
		}},
	{Name: "graceful-without-effect", About: "The server confirms \"shutdown graceful\" and keeps running.",
		Kills: "shutdown.graceful-refuses", Fault: "answer shutdown OK when mode=graceful"},
	{Name: "any-mode-is-graceful", About: "The server treats \"shutdown\" with any argument as \"shutdown graceful\".",
		Kills: "shutdown.unknown-mode", Fault: "alter shutdown mode=graceful"},
}

// rows changes a list with four values a line: it removes the lines for which keep returns false.
func rows(typ string, keep func(m *message, args []string) bool) inject.Edit {
	return inject.Out(typ, nil, func(m *message) {
		var kept []string
		for args := m.Args; len(args) >= 4; args = args[4:] {
			if keep(m, args[:4]) {
				kept = append(kept, args[:4]...)
			}
		}
		m.Args = kept
	})
}

// sizes changes the sizes of maxqueue, if there are n.
func sizes(n int, change func([]string) []string) inject.Edit {
	return inject.On("maxqueue", func(m *message) bool { return len(m.Args) == 1+n }, func(m *message) {
		m.Args = append(m.Args[:1:1], change(m.Args[1:])...)
	})
}

// sizeIgnored removes the limit of one of three sizes.
func sizeIgnored(i int) inject.Edit {
	return inject.Change("maxqueue", 1+i, func(m *message) bool { return len(m.Args) == 4 }, inject.To("0"))
}

// limits rejects a submission if as many jobs as a function may have are counted for it.
func limits(counts func(j *job, fn string) bool) inject.Edit {
	return func(s *inject.Server) {
		size := 0 // the last single one
		s.On("maxqueue", func(m *message) {
			if size = 0; len(m.Args) == 2 {
				size = inject.Number(m.Args[1])
			}
		})
		inject.Answer(submissions, func(m *message) bool {
			return size > 0 && len(m.FindAll(func(j *job) bool { return counts(j, m.Args[0]) })) >= size
		}, "ERROR", "QUEUE_ERROR", "the queue is full")(s)
	}
}

// graceful is a condition on "shutdown".
func graceful(m *message) bool { return m.Arg(0) == "graceful" }
