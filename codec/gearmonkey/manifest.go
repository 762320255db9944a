package gearmonkey

import (
	"slices"

	"jobwire/codec"
)

// Sections of the document that no row comes from. It has few headings; these
// name its parts.
const (
	secIntroduction = "Introduction"
	secJobs         = "Jobs"
	secPlaceholders = "Placeholders"
	secRun          = "Client.run"
	secGet          = "Client.get"
	secCommands     = secClient
	secAccept       = "Worker.accept"
	secWork         = "Worker.work"
	secUpdate       = "Worker.update"
	secServer       = "Redis" // what the document leaves to the server
)

// manifest states what the document requires of the server, of clients and of
// workers. IDs are permanent.
var manifest = slices.Concat(commonRules, clientRules, workerRules, serverRules)

// commonRules come from the introduction and from what all listings share.
var commonRules = []codec.Rule{
	// Introduction.
	{ID: "gearmonkey.spec.internals", Section: secIntroduction, Level: codec.Must,
		Text:       "What an implementation does inside follows the document.",
		Reading:    "The document names RFC 2119 and then writes most of its demands in small letters. We read them as demands all the same, and its listings as demands on what is sent.",
		Untestable: "It says that the other rules bind."},
	{ID: "gearmonkey.spec.externals", Section: secIntroduction, Level: codec.May,
		Text:       "Names of classes and functions, parameters and all else that users see may be anything.",
		Untestable: "It is a freedom, and does not show on the wire."},
	{ID: "gearmonkey.architecture.server", Section: secIntroduction, Level: codec.Must,
		Text:    "The server is a Redis, and stores the jobs.",
		Reading: "What that asks of it stands in the section Redis."},
	{ID: "gearmonkey.architecture.through-server", Section: secIntroduction, Level: codec.Must,
		Text:    "Clients and workers meet through the server only.",
		Reading: "The three parts are described so: one stores, one submits, one polls. Any client's job can be done by any worker, in whatever language each is written."},
	{ID: "gearmonkey.architecture.submits", Section: secIntroduction, Level: codec.Must,
		Text: "A client submits jobs to the server."},
	{ID: "gearmonkey.architecture.monitors", Section: secIntroduction, Level: codec.May,
		Text: "It may follow a job's status to its completion."},
	{ID: "gearmonkey.architecture.polls", Section: secIntroduction, Level: codec.Must,
		Text: "A worker polls for queued jobs, does them, and brings the result or the error back to the server."},
	{ID: "gearmonkey.job.function", Section: secIntroduction, Level: codec.Must,
		Text:    "A job names its function, and that decides who gets it.",
		Reading: "A function may hold any bytes, also colons and blanks. A key is then split at its last colon, since no ID holds one."},
	{ID: "gearmonkey.job.input", Section: secIntroduction, Level: codec.May,
		Text:    "A job may do without input.",
		Reading: "It usually has one. The listing always stores the field, so it is then empty."},

	// Jobs.
	{ID: "gearmonkey.job.anything", Section: secJobs, Level: codec.May,
		Text:       "A job may be anything, down to the plainest call of a function.",
		Untestable: "It is a freedom."},
	{ID: "gearmonkey.job.suitable", Section: secJobs, Level: codec.Should,
		Text:       "What a client cannot do itself, or should not wait for, is made a job.",
		Untestable: "It is advice to those who use jobs."},

	// Placeholders.
	{ID: "gearmonkey.placeholder.substituted", Section: secPlaceholders, Level: codec.Must,
		Text:    "Values stand in the place of placeholders, in every command.",
		Reading: "The braces are part of the placeholder's name, and are not sent."},
	{ID: "gearmonkey.placeholder.function", Section: secPlaceholders, Level: codec.Must,
		Text: "A function is a string, and stands in keys and channels as it is."},
	{ID: RuleID, Section: secPlaceholders, Level: codec.Must,
		Text:    "A job's ID is an integer that the server has generated.",
		Reading: "It is the number that INCR answers, in decimal."},
	{ID: RulePriority, Section: secPlaceholders, Level: codec.Must,
		Text:    "A priority is low, normal, high or scheduled, in small letters.",
		Reading: "The letters are those of a key's name, whose case matters."},
	{ID: "gearmonkey.placeholder.options", Section: secPlaceholders, Level: codec.Must,
		Text:       "Options are a set of none, one or both of OPT_BLOCKING and OPT_ROLLCALL.",
		Reading:    "They change what a client does, and are not sent themselves.",
		Untestable: "The set does not show on the wire; what each option does, and both together, has rules of its own under Client.run."},
	{ID: "gearmonkey.placeholder.input", Section: secPlaceholders, Level: codec.Must,
		Text: "An input is a string, which is stored as the caller gave it."},
	{ID: "gearmonkey.placeholder.output", Section: secPlaceholders, Level: codec.Must,
		Text: "An output is a string: what the working function returned."},
	{ID: RuleTimeout, Section: secPlaceholders, Level: codec.Must,
		Text:    "A timeout is an integer, in seconds.",
		Reading: "Redis takes fractions too. BRPOP with one is read as a command of no typed row."},
	{ID: RuleTimestamp, Section: secPlaceholders, Level: codec.Must,
		Text:    "A time is the integer of seconds since 1970.",
		Reading: "A script has 0 for the least: what is scheduled for a negative time never becomes due."},

	// What the listings leave to be said of their arguments.
	{ID: RuleStatus, Section: secWork, Level: codec.Must,
		Text: "The status of a finished job is success or error."},
	{ID: "gearmonkey.placeholder.status", Section: secWorker, Level: codec.Must,
		Text:    "A status is idle, busy, success or error, in this order of a job's life.",
		Reading: "No other stands in the document."},
	{ID: RuleEvent, Section: secWorker, Level: codec.Must,
		Text:    "An event is create, start or finish, a colon and the job's ID.",
		Reading: "Others may publish what they like on a channel: an event of another name is read as one, if an ID stands behind its last colon."},
	{ID: RuleSHA1, Section: secWorker, Level: codec.Must,
		Text:    "A script is named by the 40 hex digits of its SHA1.",
		Reading: "Redis takes capitals too."},
	{ID: RuleSeconds, Section: secWorker, Level: codec.Must,
		Text:    "An expiry is an integer, in seconds.",
		Reading: "Redis takes negative ones, and deletes the key then: no row has them."},
	{ID: RuleCount, Section: secRun, Level: codec.Must,
		Text:    "A count of workers is an integer.",
		Reading: "It may have become negative: see gearmonkey.rollcall.negative."},
	{ID: RuleRange, Section: secServer, Level: codec.DeFacto,
		Text:    "A position in a queue is an integer, negative ones counted from the end.",
		Reading: "Only an operator, who looks, needs one."},
}
