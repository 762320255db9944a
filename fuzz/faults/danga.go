package faults

import (
	"slices"

	"jobwire/codec/danga"
	"jobwire/refserver/inject"
)

// Danga contains the faults that can be injected into the built-in server of the Danga draft.
var Danga = []Fault{
	{Name: "asleep-disconnected", Oracle: Exit,
		About: "An assertion in the server fails if a sleeping worker removes its job names.",
		Edit:  inject.On("worker_disconnect", after("worker_connect worker_sleep"), exits(1, "Assertion 'worker.awake' failed.\n"))},
	{Name: "names-missing", Oracle: Hang,
		About: "The server reads no more requests of a worker after the worker sent an empty list of job names and asked for a job.",
		Edit: inject.Both(
			inject.On("worker_connect", nil, func(m *message) { m.Peer.Mark = len(m.Args) == 0 }),
			inject.StopReading("job_assign_req", func(m *message) bool { return m.Peer.Mark }))},
	{Name: "empty-result-counted-one", Oracle: Framing,
		About: "The server reports the length of an empty result as 1 byte.",
		Edit: inject.Out("job_complete_res", is("Result data", ""), func(m *message) {
			m.Raw = slices.Clone(m.Frame.Raw)
			m.Raw[8]++ // the last byte of the length
		})},
	{Name: "empty-args-of-another", Oracle: Disclosure,
		About: "If a job has no arguments, the server sends the arguments of an earlier job to the worker.",
		Edit: func(s *inject.Server) {
			last := ""
			inject.On("job_create_req", func(m *message) bool { return m.Value("Args") != "" }, func(m *message) { last = m.Value("Args") })(s)
			inject.Rewrite("job_assign_res", 1, func(m *message) bool { return m.Args[1] == "" }, func(string) string { return last })(s)
		}},
	{Name: "long-key-lost", Oracle: Lost,
		About: "The server acknowledges a job of type 1 (asynchronous) whose duplicate key has the maximum length of 4096 bytes, but never assigns this job.",
		Edit: inject.Change("job_create_req", 0, all(sized("Duplicate key", danga.MaxText), is("Job type", "\x01")),
			func(name string) string { return name + "~" })},
}
