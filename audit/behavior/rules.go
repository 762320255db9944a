// Package behavior checks what clients and workers do over time: how often they ask for jobs, connect again, repeat a
// command that the server has refused, and which jobs they do not end. It reads the effects of messages, so that it
// serves every protocol. Its rules are of level BEHAVIOR: no specification contains them.
package behavior

import (
	"time"

	"jobwire/codec"
)

// The rates. A program that exceeds the first number in a second, where a loop without a pause over the loopback
// interface repeats thousands of times, has no pause. A program that exceeds the second number in each of three seconds
// in a row pauses too little: all these servers can let a program wait, or say at the first attempt that others are
// useless.
var (
	polls      = limits{250, 30} // requests without a job: a worker that pauses 50 ms sends 20 per second
	reconnects = limits{60, 15}  // useless connections, one after the other: 10 per second with a pause of 100 ms
	refusals   = limits{120, 15} // refusals of the same command: 10 per second with a pause of 100 ms
)

// The other thresholds.
const (
	// A server refuses to wait only in the last second of a time limit. A worker that pauses 20 ms asks 50 times. One that
	// asks again and then loses the job has ignored the reply.
	maxEarly = 60 // such refusals in a row, in which the worker sends nothing about its jobs
	minEarly = 3  // such refusals in a row before a job is lost

	// A worker that waits has nothing else to do. One slow reaction may be a stall of the machine.
	slowWake   = time.Second
	minSlow    = 3               // slow reactions, if they are the majority
	ignoreWake = 5 * time.Second // without any reaction
	leaveWake  = 3 * time.Second // without any reaction, before the worker ends its connection

	// A program that was stopped for some seconds does not exceed this.
	overLimit = 5 * time.Second // after the time limit of several jobs

	// A library announces its functions directly after it has connected.
	slowAnnounce = 5 * time.Second
)

// A rate is exceeded only if its events are in most parts of each second: a short burst is not a loop.
const (
	second   = time.Second
	parts    = 10
	minParts = 8
	steadily = 3 // seconds in a row
)

// rules are the rules of this package.
var rules = []codec.Rule{
	{ID: "behavior.polling", Text: "A worker that gets no job waits before it asks again, or lets the server wake it: " +
		"it does not ask more than 250 times in a second, or 30 times in each of three seconds in a row, without getting a " +
		"job."},
	{ID: "behavior.reconnects", Text: "A program pauses before it connects again if its last connection was of no use: " +
		"there are at most 60 such connections in a second, or 15 in each of three seconds in a row, one after the other. " +
		"A connection is of use if the program submits or " +
		"gets a job, or receives information."},
	{ID: "behavior.refused", Text: "A program does not repeat a command that the server refuses more than 120 times in " +
		"a second, or 15 times in each of three seconds in a row, except for requests for information."},
	{ID: "behavior.unknown", Text: "A program that learns that the server does not know a job does not name it " +
		"again: not six times in a row."},
	{ID: "behavior.setup", Text: "A program whose request to use, watch or ignore a queue is refused does not " +
		"submit or ask for jobs as if it had not been: not three times."},
	{ID: "behavior.late", Text: "A worker ends, gives back or touches a job within its time limit: it is not " +
		"refused three times because the limit has passed."},
	{ID: "behavior.overdue", Text: "A worker does not end a job more than a second after its time limit, when the " +
		"server has taken the job back and may have given it to another worker: not three times, one after the other."},
	{ID: "behavior.deletes", Text: "A worker that has given a job back does not delete it: not three jobs."},
	{ID: "behavior.unique", Text: "Clients do not submit other data with the unique ID of an unfinished job, " +
		"because the server then makes both one job, with the data of the first: not three times."},
	{ID: "behavior.duplicates", Text: "A client whose connection ends before the reply to a request for a new job " +
		"leaves it to its user whether to submit the job again, because the job may exist already. Jobs with a unique ID " +
		"may be submitted again."},
	{ID: "behavior.worker-ids", Text: "Connections with the same ID of a worker do not ask for jobs at the same time: " +
		"the ID distinguishes connections."},
	{ID: "behavior.kicks", Text: "A program names the queue whose jobs are to be kicked, if it has not used it and does " +
		"not get its jobs: it does not forget this three times."},
	{ID: "behavior.start-time", Text: "The start time of a job is in seconds since 1970. It is not a number of " +
		"seconds from now, or of milliseconds: it is 0, or a time from 1985 to 5138."},
	{ID: "behavior.deadline", Text: "If the server refuses to wait for a job because the time limit of another job " +
		"ends, the worker ends, releases or touches a job, or pauses: it does not ask more than 60 times in a row, nor " +
		"three times and then loses a job."},
	{ID: "behavior.holds", Text: "A worker that has several jobs does not keep them without a word: it does not end its " +
		"connection with two or more jobs after at least a second without a message about them, and does not keep two or " +
		"more jobs for 5 s longer than their time limits."},
	{ID: "behavior.abandons", Text: "A worker that ends its connection has ended or given back the jobs that it has."},
	{ID: "behavior.wake", Text: "A worker that sleeps asks for a job within a second after the server has woken it. " +
		"Reported if the worker is slower three times and in most cases, or does not ask for 5 s, or for 3 s " +
		"before it ends its connection."},
	{ID: "behavior.announces", Text: "A worker that has lost its connection announces its functions again within 5 s " +
		"after it has connected."},
	{ID: "behavior.processor", Text: "A program that waits for the server, for the rest of a message, or for a server " +
		"that is gone, does not poll: it uses at most 80 % of a processor core over two seconds, without the time for " +
		"which it waits for a core, or less than a tenth of that in the kernel."},
	{ID: "behavior.memory", Text: "The memory of a program that waits for the server does not grow by 64 MiB or more."},
	{ID: "behavior.descriptors", Text: "A program closes the file descriptors of connections that have ended: three " +
		"times in a row, 64 connections do not leave 80 % as many file descriptors."},
	{ID: "behavior.threads", Text: "A program ends the threads of connections that have ended: three times in a row, 64 " +
		"connections do not leave 80 % as many threads."},
}

func init() {
	for i := range rules {
		rules[i].Level, rules[i].Section = codec.Behavioral, "Behavior over time"
	}
}

// Rules returns the rules of this package.
func Rules() []codec.Rule { return rules }

// rule returns the rule with the last part of its ID.
func rule(name string) *codec.Rule {
	for i := range rules {
		if string(rules[i].ID) == "behavior."+name {
			return &rules[i]
		}
	}
	panic("no rule " + name)
}
