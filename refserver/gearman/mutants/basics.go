package mutants

import "jobwire/refserver/inject"

// basics are faults of section "Client/Worker": echoes and errors.
var basics = []row{
	{Name: "first-echo-reversed", About: "The server reverses the bytes of its first ECHO_RES if the data has four bytes.",
		Kills: "packet.in-pieces packet.cut-off echo.client admin.with-packet-in-a-segment",
		Edit:  inject.Out("ECHO_RES", func(m *message) bool { return m.Heard == 1 }, reverse)},
	{Name: "idle-worker-echo-reversed", About: "The server reverses the bytes of an ECHO_RES to a worker without a job if the data has four bytes.",
		Kills: "echo.worker echo.asleep", Edit: inject.Out("ECHO_RES", func(m *message) bool {
			return !unregistered(m) && m.Find(func(j *job) bool { return j.Worker == m.Peer }) == nil
		}, reverse)},
	{Name: "empty-echo-passed-over", About: "The server does not reply to ECHO_REQ without data.",
		Kills: "echo.empty", Fault: "drop ECHO_REQ when data="},
	{Name: "echo-of-seven-bits", About: "The server clears the highest bit of every byte in ECHO_RES.",
		Kills: "echo.binary", Edit: inject.Rewrite("ECHO_RES", 0, nil, func(v string) string {
			out := []byte(v)
			for i := range out {
				out[i] &= 0x7f
			}
			return string(out)
		})},
	{Name: "echo-cut-at-64-kibibytes", About: "The server truncates the data of ECHO_RES at 64 KiB.",
		Kills: "echo.large", Edit: inject.Rewrite("ECHO_RES", 0, nil, inject.AtMost(64<<10))},
	{Name: "first-echo-overtaken", About: "The server sends the reply to the next request before the first ECHO_RES of a connection.",
		Kills: "echo.order packet.two-in-a-segment admin.with-packet-in-a-segment", Fault: "delay ECHO_RES 60ms nth=1"},
	{Name: "error-without-text", About: "The ERROR packet for an unknown option lacks its text argument and the NUL before it.",
		Kills: "error.form option.unknown option.empty field.connection-survives",
		Edit:  inject.Out("ERROR", inject.ArgIs(0, "UNKNOWN_OPTION"), func(m *message) { m.Raw = []byte("\x00RES\x00\x00\x00\x13\x00\x00\x00\x0eUNKNOWN_OPTION") })},
	{Name: "workers-errors-unsaid", About: "The server sends no ERROR packet to a worker that has not registered a function.",
		Kills: "error.to-worker worker.unknown-handle", Edit: inject.Ignore(reports, unregistered)},
}

// reverse reverses the bytes of an echo of four bytes, as a server with another byte order would.
func reverse(m *message) {
	if d := m.Args[0]; len(d) == 4 {
		m.Args[0] = string([]byte{d[3], d[2], d[1], d[0]})
	}
}

// unregistered is a condition: the peer has not registered a function.
func unregistered(m *message) bool { return len(m.Peer.Announced) == 0 }
