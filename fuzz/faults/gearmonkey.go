package faults

import (
	"strings"

	"jobwire/refserver/inject"
)

// GearMonkey contains the faults that can be injected into the built-in Redis server of GearMonkey.
var GearMonkey = []Fault{
	{Name: "range-from-the-end", Oracle: Signal,
		About: "The server reads memory before the start of a list if a client requests a range that counts from the end of the list.",
		Edit: inject.On("LRANGE_QUEUE", func(m *message) bool { return strings.HasPrefix(m.Value("Start"), "-") },
			killedBy("SEGV", "=== REDIS BUG REPORT START ===\nRedis crashed by signal: 11\n"))},
	{Name: "never-subscribed", Oracle: Hang,
		About: "The server reads no more requests of a client after the client unsubscribes without a subscription.",
		Edit:  inject.StopReading("UNSUBSCRIBE_CHANNEL", func(m *message) bool { return m.Peer.Count["SUBSCRIBE_CHANNEL"] == 0 })},
	{Name: "waiting-client-spins", Oracle: Spin,
		About: "If a client disconnects while it waits for a lock, the server searches for this client in an endless loop.",
		Edit:  spins(inject.Closed, after("BRPOP_LOCK"))},
	{Name: "empty-input-unended", Oracle: Framing,
		About: "The server omits the final CRLF of an empty string.",
		Edit:  inject.Out("bulk", func(m *message) bool { return m.Text() == "$0\r\n\r\n" }, func(m *message) { m.Raw = []byte("$0\r\n") })},
	{Name: "count-below-zero", Oracle: Rule,
		About: "The server replies with a negative worker count as an unsigned 64-bit number.",
		Edit:  inject.Out("integer", func(m *message) bool { return m.Text() == ":-1\r\n" }, func(m *message) { m.Raw = []byte(":18446744073709551615\r\n") })},
	{Name: "low-queue-lost", Oracle: Lost,
		About: "If a client pushes a job to the low-priority queue, the server confirms the push, but drops the job.",
		Edit:  inject.Answer("LPUSH_QUEUE", is("Priority", "low"), "integer", "1")},
	{Name: "finish-closes-another", Oracle: Interference,
		About: "When a worker reports a job as finished, the server closes the oldest of the other active connections.",
		Edit:  inject.On("PUBLISH_FINISH", nil, closesOther)},
}
