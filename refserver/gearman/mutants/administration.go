package mutants

import (
	"strings"

	"jobwire/refserver/inject"
)

// administration are faults of section "Administrative Protocol".
var administration = []mutantSpec{
	{Name: "line-in-pieces-lost", About: "The server discards a text line that arrives in more than one segment.",
		KilledBy: "admin.in-pieces", Edit: discardIncomplete(func(s *stream, _ []byte) bool { return len(s.head) > 0 && s.head[0] != 0 })},
	{Name: "many-sided-workers-unlisted", About: "The reply to \"workers\" omits workers with more than one function.",
		KilledBy: "admin.workers", Edit: listLines("workers-reply", func(_ *message, args []string) bool { return len(strings.Fields(args[3])) < 2 })},
	{Name: "abilities-add-up", About: "The reply to \"status\" counts a worker for each CAN_DO, up to eight.",
		KilledBy: "admin.status-can-do-twice[n=8]", Edit: listLines("status-reply", func(m *message, args []string) bool {
			for _, p := range m.Peers {
				if len(p.Announced) == 8 && p.Announced[7] == args[0] && p.Announced[0] == args[0] {
					args[3] = "8"
				}
			}
			return true
		})},
	{Name: "finished-jobs-counted", About: "The reply to \"status\" still counts finished jobs.",
		KilledBy: "admin.status-finished admin.status-abandoned", Edit: listLines("status-reply", func(m *message, args []string) bool {
			args[1] = inject.Decimal(len(m.FindAll(func(j *job) bool { return j.Queue == args[0] })))
			return true
		})},
	{Name: "graceful-ends-running-jobs", About: "The server closes connections of workers with a running job after \"shutdown graceful\".",
		KilledBy: "shutdown.graceful", Edit: inject.On("shutdown", graceful, func(m *message) {
			m.Pass()
			for _, w := range m.Peers {
				if len(w.Jobs()) > 0 {
					w.Close()
				}
			}
		})},
}

// listLines changes a list with four values a line: it removes the lines for which keep returns false.
func listLines(typ string, keep func(m *message, args []string) bool) inject.Edit {
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

// graceful is a condition on "shutdown".
func graceful(m *message) bool { return m.Arg(0) == "graceful" }
