package faults

import (
	"fmt"

	"jobwire/codec/beanstalk"
	"jobwire/refserver/inject"
)

// Beanstalk contains the faults that can be injected into the built-in Beanstalk server.
var Beanstalk = []Fault{
	{Name: "kick-of-none", Oracle: Exit,
		About: "The server divides by zero when a client kicks 0 jobs.",
		Edit:  inject.On("kick", is("Bound", "0"), exits(2, "panic: runtime error: integer divide by zero\n"))},
	{Name: "buried-freed-twice", Oracle: Signal,
		About: "The server frees the memory of a job twice if the connection that buried the job deletes it in its next request.",
		Edit: inject.Both(reserving, inject.On("delete", all(after("bury"), func(m *message) bool { return job(m.Peer) == m.Value("Job ID") }),
			killedBy("ABRT", "free(): double free detected in tcache 2\n")))},
	{Name: "tube-of-200", Oracle: Sanitizer,
		About: "The server reads past the end of a tube name of 200 bytes, the maximum length.",
		Edit: inject.On("watch", sized("Tube", beanstalk.MaxName), exits(1, `==7==ERROR: AddressSanitizer: stack-buffer-overflow on address 0x7ffc00c8 at pc 0x5581 bp 0x7ffd sp 0x7ffd
READ of size 201 at 0x7ffc00c8 thread T0
    #0 0x5581 in tube_find tube.c:73
SUMMARY: AddressSanitizer: stack-buffer-overflow tube.c:73 in tube_find
`))},
	{Name: "ignore-not-answered", Oracle: Hang,
		About: "The server reads no more requests of a client after the client sent watch twice and then ignore.",
		Edit:  inject.StopReading("ignore", after("watch watch"))},
	{Name: "waiting-worker-blocks", Oracle: ServerHang,
		About: "The server blocks if a worker that watches a tube disconnects while it waits in reserve.",
		Edit:  blocks(inject.Closed, after("watch reserve"))},
	{Name: "delayed-release-spins", Oracle: Spin,
		About: "The server polls a timer in an endless loop after a release with a delay.",
		Edit:  spins("release", all(after("reserve"), atLeast("Delay", 1)))},
	{Name: "refused-body-kept", Oracle: Memory,
		About: "The server leaks the body of a put that it rejects because the final CRLF is missing.",
		Edit:  leaks(inject.Illegal, breaks(beanstalk.RulePutCRLF))},
	{Name: "reservation-keeps-descriptor", Oracle: Descriptors,
		About: "The server leaks a file descriptor if a worker disconnects while it has a job reserved.",
		Edit:  inject.Both(reserving, leaksDescriptor(inject.Closed, hasJob))},
	{Name: "body-of-4096-counted-4095", Oracle: Framing,
		About: "The server reports a body of 4096 bytes with a length of 4095.",
		Edit: inject.Out("RESERVED FOUND", sized("Body", 4096), func(m *message) {
			m.Raw = fmt.Appendf(nil, "%s %s 4095\r\n%s\r\n", m.Name, m.Args[0], m.Args[1])
		})},
	{Name: "kicked-below-zero", Oracle: Rule,
		About: "The server replies with a negative number if a client kicks 2147483648 jobs or more.",
		Edit:  inject.Out("KICKED", func(m *message) bool { return atLeast("Bound", 1<<31)(m.Request) }, func(m *message) { m.Raw = []byte("KICKED -1\r\n") })},
	{Name: "empty-body-of-another", Oracle: Disclosure,
		About: "The server replaces an empty body by the last body that another client put.",
		Edit: func(s *inject.Server) {
			var last string
			var of *peer
			inject.On("put", func(m *message) bool { return m.Value("Body") != "" }, func(m *message) { last, of = m.Value("Body"), m.Peer })(s)
			inject.Rewrite("RESERVED FOUND", 1, func(m *message) bool { return m.Args[1] == "" && last != "" && of != m.Peer },
				func(string) string { return last })(s)
		}},
	{Name: "touched-job-lost", Oracle: Lost,
		About: "The server loses a job if the worker that reserved it disconnects immediately after a touch.",
		Edit:  inject.Both(reserving, inject.On(inject.Closed, all(after("touch"), hasJob), func(m *message) { m.Peer.InjectSilently("delete", job(m.Peer)) }))},
	{Name: "last-priority-put-twice", Oracle: Wrong,
		About: "The server queues a job of the lowest priority twice.",
		Edit: inject.On("put", atLeast("Priority", beanstalk.MaxPriority), func(m *message) {
			m.Pass()
			m.Peer.InjectSilently("put", m.Args...)
		})},
	{Name: "default-not-ignored", Oracle: Stray,
		About: "The server still sends jobs of the tube named default to a worker that ignores this tube.",
		Edit:  inject.Answer("ignore", all(is("Tube", "default"), after("watch")), "WATCHING", "1")},
	{Name: "tube-of-64-not-used", Oracle: Stray,
		About: "The server puts the jobs for a tube with a name of 64 bytes into the tube that the client used before it.",
		Edit:  inject.On("use", sized("Tube", 64), func(m *message) { m.Answer("USING", m.Args[0]) })},
	{Name: "list-told-to-another", Oracle: Interference,
		About: "The server sends the list of tubes to the requesting client and also to the oldest of the other active connections.",
		Edit: inject.Out("list-reply", inject.CauseIs("list-tubes"), func(m *message) {
			if o := other(m); o != nil {
				o.Send("list-reply", m.Args...)
			}
		})},
}

// reserving records which job a worker has reserved.
var reserving = inject.Both(notes("RESERVED", "Job ID"), notes("DELETED RELEASED", ""))
