package danga

import (
	"slices"

	"jobwire/codec"
)

// Sections of the draft that no row comes from. Those of packets are named like
// their headings.
const (
	secTodo          = "TODO"
	secArchitecture  = "Architecture"
	secGuarantees    = "Guarantees"
	secNonGuarantees = "Non-Guarantees"
	secFlow          = "Work flow"
	secCycles        = "Request/Response cycles"
	secBest          = "Best case conversation example"
	secWorst         = "Worse case"
	secPackets       = "Packet types"
	secLogging       = "Long-term result logging"
	secTasks         = "Task summary"

	secConnect   = "Packet: worker_connect"
	secCreate    = "Packet: job_create_req"
	secCreateRes = "Packet: job_create_res"
)

// manifest states what the draft requires of a packet, a server and a
// conversation. IDs are permanent.
//
// The draft has no words for how binding it is. MUST stands where it gives a
// form, a direction, a guarantee or an answer outright; SHOULD where that
// follows from what it wants, or where our reading fills a hole in the one way
// that fits the rest; MAY where it leaves a choice. No implementation of it is
// known, so nothing is de facto.
var manifest = slices.Concat(packetRules, creationRules, workerRules, resultRules)

// packetRules are about bytes and connections.
var packetRules = []codec.Rule{
	// The header.
	{ID: RuleMagic, Section: secPackets, Level: codec.Must,
		Text:    "Every packet of a connection begins with the same four bytes of magic.",
		Reading: "The draft calls them opaque, there to verify the state machine, and gives no value. So the first packet of a connection fixes them, and another four mean that the stream is out of step, for good: where the next packet begins is unknown."},
	{ID: "danga.packet.magic-both-ways", Section: secPackets, Level: codec.Should,
		Text:    "The server writes the magic that it has read.",
		Reading: "Nothing says that the two directions differ. Whoever opens the connection speaks first, so its magic is the one."},
	{ID: RuleTypeKnown, Section: secPackets, Level: codec.Must,
		Text: "The type is one of the fourteen of the table, 0x00 to 0x0D."},
	{ID: RuleTypeDirection, Section: secPackets, Level: codec.Must,
		Text:    "A type is sent only in the direction that its line of the table gives.",
		Reading: "That goes for noop too: its description would suit any direction, but table and messages have only the job server send it. A connection may be an application's and a worker's at once, as no type is both an application's and a worker's."},
	{ID: RuleInteger, Section: secPackets, Level: codec.Must,
		Text:    "Integers are unsigned, have as many bytes as the draft gives, and the most significant byte comes first.",
		Reading: "The draft gives widths only. Network order is what a protocol over TCP means if it does not say otherwise, and nothing that is counted here can be negative."},
	{ID: "danga.packet.length-exact", Section: secPackets, Level: codec.Must,
		Text: "The length counts the data behind the header, and the next packet begins right after it."},
	{ID: RuleSizeCap, Section: secPackets, Level: codec.Should,
		Text:    "The announced length does not exceed what the receiver takes.",
		Reading: "The field allows 2^32-1 bytes. No server can afford that from everybody, so the cap is an option, judged on the header alone."},
	{ID: "danga.transport.any-segmentation", Section: secArchitecture, Level: codec.Must,
		Text:    "How TCP cuts the stream into segments changes nothing.",
		Reading: "The draft names TCP, which keeps no boundaries."},
	{ID: "danga.transport.persistent", Section: secArchitecture, Level: codec.Must,
		Text: "A connection lasts: neither the end of a job nor silence ends it."},
	{ID: "danga.transport.port", Section: secArchitecture, Level: codec.May,
		Text:       "A server listens where it is told to.",
		Reading:    "The draft names no port. Our default is 7003, which the servers that grew out of it used first.",
		Untestable: "Whoever judges a server says where it listens."},
	{ID: "danga.transport.many-servers", Section: secArchitecture, Level: codec.May,
		Text:       "Applications and workers are connected to any number of job servers, which know nothing of one another.",
		Untestable: "It says how an installation is built; a connection shows one server."},

	// Arguments.
	{ID: RuleArgsMissing, Section: secPackets, Level: codec.Must,
		Text: "All arguments of the type are there: every NUL that ends a text, every byte of an integer."},
	{ID: RuleArgsSurplus, Section: secPackets, Level: codec.Must,
		Text: "Nothing stands behind the arguments of the type; a type without arguments has a length of 0."},
	{ID: RuleArgsTrailing, Section: secConnect, Level: codec.Must,
		Text:    "No NUL follows the last name of a list, nor a handle.",
		Reading: "The draft has a null-separated list that goes up to the length, and null-terminated texts elsewhere, so the words differ on purpose: separators stand between names. A handle has no NUL beside it at all. Who ends them with one all the same breaks a rule that has a name of its own to waive."},
	{ID: RuleASCII, Section: secPackets, Level: codec.Must,
		Text:    "Job names, duplicate keys and handles are ASCII.",
		Reading: "The draft says so of all but the names in worker_connect, which are the same names. Any byte from 0x01 to 0x7F is taken; NUL is their end."},
	{ID: RuleTextCap, Section: secPackets, Level: codec.Should,
		Text:    "Job names, duplicate keys and handles are no longer than the receiver takes.",
		Reading: "The draft sets no limit. Names are held in tables, so ours take 4096 bytes, far beyond any example of the draft."},
	{ID: RuleNameEmpty, Section: secCreate, Level: codec.Should,
		Text:    "A job name is not empty.",
		Reading: "The draft lets only the duplicate key be a bare NUL. An empty name in a list could not be told from an empty list."},
	{ID: RuleNamesCap, Section: secConnect, Level: codec.Should,
		Text:    "A list has no more names than the receiver takes.",
		Reading: "The draft sets no limit but the length. Ours take 1024 names; whoever can do more has more connections."},
	{ID: RuleHandleEmpty, Section: "Packet: job_status_req", Level: codec.Should,
		Text:    "A handle is not empty; whoever asks for a job gives one.",
		Reading: "The draft speaks of a handle that was fetched before. A job_create_res with a length of 0 has no handle at all."},

	// Violations.
	{ID: "danga.violation.closes", Section: secTodo, Level: codec.Should,
		Text:    "A packet that breaks a rule of the form, or comes out of turn, ends the connection.",
		Reading: "What to answer is on the draft's list of things to do, and it has no packet for it. Ending the connection is the one thing left that everybody understands. To ignore the packet is tolerable where the stream stays in step."},
	{ID: "danga.violation.no-error-packet", Section: secTodo, Level: codec.Must,
		Text: "No packet tells of an error: what is wrong is not answered by a type that means something else."},
	{ID: "danga.violation.others-unharmed", Section: secGuarantees, Level: codec.Must,
		Text:    "A violation on one connection costs no other connection anything, and no job but what the offender itself was waiting for.",
		Reading: "Jobs live as long as the server runs. A job that the offender held as a worker is tried again."},

	// Conversations.
	{ID: "danga.flow.job-record", Section: secFlow, Level: codec.Should,
		Text:       "An application sends a job to a server of its choice, and notes it so that it can be created again.",
		Untestable: "It binds applications, and what they note does not show on the wire."},
	{ID: "danga.flow.repopulation", Section: secTodo, Level: codec.May,
		Text:       "Jobs that were lost with a server are created again by a layer above.",
		Untestable: "The draft leaves it to do, outside the protocol."},
	{ID: "danga.flow.best-case", Section: secBest, Level: codec.Must,
		Text:    "A worker asks, gets a job that is locked for it, and returns the result.",
		Reading: "The worker has announced itself before, and an application has created the job."},
	{ID: "danga.flow.worst-case", Section: secWorst, Level: codec.Must,
		Text:    "A worker asks every server, hears no, sleeps, is woken, and asks again.",
		Reading: "It does so with every server by itself: n servers are n conversations."},
	{ID: "danga.flow.sleep-threshold", Section: secWorst, Level: codec.May,
		Text:       "How long a worker goes on asking before it sleeps, and how long it sleeps without being woken, is for it to say.",
		Untestable: "It binds workers, and the draft gives no times."},
	{ID: "danga.announce.unanswered", Section: secCycles, Level: codec.Must,
		Text:    "worker_connect, worker_disconnect, worker_sleep, job_status_announce and job_complete_announce are announcements: nothing answers them.",
		Reading: "A noop that wakes a sleeper for a job that is there already is no answer, but danga.sleep.wakes-late."},
	{ID: "danga.order.pipelined", Section: secCycles, Level: codec.Should,
		Text:    "Requests that one connection sends one behind the other are answered in their order.",
		Reading: "No answer says what it belongs to, so nothing else could be understood."},
	{ID: "danga.application.only-answers", Section: secCycles, Level: codec.Must,
		Text:    "The server speaks to an application only in response to its requests.",
		Reading: "What is streamed of a sync+wait job is the response to having created it."},

	// Beyond the wire.
	{ID: "danga.log.start", Section: secLogging, Level: codec.May,
		Text:       "Workers log that they have begun a task, and when.",
		Untestable: "It is an interface of a layer above, of which the draft has brief notes only; nothing of it passes over the wire."},
	{ID: "danga.log.result", Section: secLogging, Level: codec.May,
		Text:       "Workers log a task's result, and when it came.",
		Untestable: "It is an interface of a layer above; nothing of it passes over the wire."},
	{ID: "danga.log.central", Section: secLogging, Level: codec.May,
		Text:       "What is logged stands in one database, where it can be seen whether asynchronous jobs were completed, and how.",
		Untestable: "It is an interface of a layer above; nothing of it passes over the wire."},
	{ID: "danga.task.examples", Section: secTasks, Level: codec.May,
		Text:    "The jobs of the summary can be created as they stand there, with and without a duplicate key or args.",
		Reading: "The list has no number 5, and number 11 is a question. Number 4 says async alone, which is 1 or 2; args of none are no bytes. Keys are written as patterns, uid-gallid-w-h for one, and a bare 1 is a key as well."},
}
