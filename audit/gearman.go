package audit

import (
	"strings"
	"time"

	"jobwire/codec"
)

// GearmanEffects are what fault profiles do to Gearman.
var GearmanEffects = Effects{Breaks: map[string][]codec.RuleID{
	"needless-noops":   {"gearman.worker.awake-undisturbed"},
	"late-progress":    {"gearman.work.status"},
	"unknown-handles":  {"gearman.submit.created-first"},
	"unrequested-jobs": {"gearman.grab.assign"},
}}

// Gearman contains the steps for drivers of Gearman.
var Gearman = Scenario{
	"Client": {
		{Task: "submit f1 {A}", Answer: "ok {A'} ...", Partner: "Worker", Serves: "work f1 reverse 100000"},
		{Task: "batch f2 {A} {B} {C}", Answer: "ok {A'} {B'} {C'}", Partner: "Worker", Serves: "work f2 reverse 100000",
			Batch: true},
		{Task: "submit f3 {D} unique=u1", Answer: "ok {D} ...", Partner: "Worker", Serves: "work f3 echo 100000",
			Extra: true},
		{Task: "submit f4 {B} exceptions", Answer: "error exception ... | error failed ...", Partner: "Worker",
			Serves: "work f4 exception 100000", Extra: true},
		{Task: "submit f5 {C} background", Answer: "ok $H"},
		{Task: "status $H", Answer: "ok * * * *", Needs: 5},
		{Task: "status H:no-such-job:1", Answer: "ok 0 0 0 0", Extra: true},
		{Task: "submit f7 {C} at=1", Answer: "ok *", Extra: true},
		{Task: "submit f8 {D}", Answer: "ok {D} data {D} ... | ok {D+D} data {D} ... | ok {D} | ok {D+D}", Partner: "Worker",
			Serves: "work f8 data 100000", Extra: true},
		{Task: "submit f9 {A}", Answer: "ok {A} warning {A} ... | ok {A} data {A} ... | ok {A}", Partner: "Worker",
			Serves: "work f9 warning 100000", Extra: true},
		{Task: "submit g1 {B}", Answer: "ok {B} status 1/2 ... | ok {B}", Partner: "Worker", Serves: "work g1 status 100000",
			Extra: true},
		{Task: "submit g2 {C}", Answer: "error failed ...", Partner: "Worker", Serves: "work g2 fail 100000", Extra: true},
		{Task: "submit g3 {C}", Answer: "ok {} ...", Partner: "Worker", Serves: "work g3 empty 100000", Extra: true},
		{Task: "submit g4 {A} priority=high", Answer: "ok {A} ...", Partner: "Worker", Serves: "work g4 echo 100000",
			Extra: true},
		{Task: "submit g5 {B} priority=low unique=u5", Answer: "ok {B} ...", Partner: "Worker", Serves: "work g5 echo 100000",
			Extra: true},
		{Task: "submit g6 {A} priority=high background", Answer: "ok *", Extra: true},
		{Task: "submit g7 {B} priority=low background", Answer: "ok *", Extra: true},
		{Task: "echo {D}", Answer: "ok {D}", Extra: true},

		// The result of the first job arrives while the client waits for the second one, unless the client connects again.
		{Task: "submit h1 {A} timeout=1", Answer: "error timed-out ...", Extra: true, Waits: time.Second},
		{Task: "submit h1 {B}", Answer: "ok {B'} ...", Partner: "Worker", Serves: "work h1 reverse 100000", Extra: true,
			Needs: 19},

		// The driver requests the status of a waiting job, and then of the same job when it must have
		// finished, because a job that was submitted later has finished.
		{Task: "submit h2 {A} priority=high background", Answer: "ok $STATUS", Extra: true},
		{Task: "status $STATUS", Answer: "ok 1 0 0 0", Extra: true, Needs: 21},
		{Task: "submit h2 {B}", Answer: "ok {B} ...", Partner: "Worker", Serves: "work h2 echo 100000", Extra: true,
			Needs: 21},
		{Task: "status $STATUS", Answer: "ok 0 0 0 0", Extra: true, Needs: 23},

		// Some libraries use types that are too small for the last second of 2099 and the last minute of a year.
		{Task: "submit h3 {C} at=4102444799", Answer: "ok $LATE", Extra: true},
		{Task: "status $LATE", Answer: "ok 1 0 0 0", Extra: true, Needs: 25},
		{Task: "submit h3 {D} schedule=59,23,31,12,6", Answer: "ok * | error server ...", Extra: true}, // not in all servers
		{Task: "submit h3 {D} schedule=0,0,1,1,0", Answer: "ok * | error server ...", Extra: true},

		// A job with an empty unique ID, and jobs with the unique ID of a waiting job: the latter are one job with the
		// workload of the first. The worker may perform it before the third one is submitted.
		{Task: "submit h4 {A} unique=", Answer: "ok {A} ...", Partner: "Worker", Serves: "work h4 echo 100000", Extra: true},
		{Task: "submit h5 {C} unique=u6 background", Answer: "ok $SAME", Extra: true},
		{Task: "submit h5 {D} unique=u6 background", Answer: "ok $SAME", Extra: true, Needs: 30},
		{Task: "submit h5 {D} unique=u6", Answer: "ok {C} ... | ok {D} ...", Partner: "Worker", Serves: "work h5 echo 100000",
			Extra: true, Needs: 31},

		{Task: "batch h6 {A}", Answer: "ok {A'}", Partner: "Worker", Serves: "work h6 reverse 100000", Batch: true,
			Extra: true},
		{Task: "batch h7 {A} {B} {A} {A}", Answer: "ok {A'} {B'} {A'} {A'}", Partner: "Worker",
			Serves: "work h7 reverse 100000", Batch: true, Extra: true},
		{Task: "batch h8" + twentyPayloads, Answer: "ok" + twentyPayloads, Partner: "Worker", Serves: "work h8 echo 100000",
			Batch: true, Extra: true},

		// Names that are numbers, payloads that a client may take for more or less than they are, and the longest names that
		// servers accept.
		{Task: "submit {9} {LF} unique={9}", Answer: "ok {LF} ...", Partner: "Worker", Serves: "work {9} echo 100000",
			Extra: true},
		{Task: "submit {9} {CRLF}", Answer: "ok {CRLF} ...", Partner: "Worker", Serves: "work {9} echo 100000", Extra: true},
		{Task: "submit {9} {NUL}", Answer: "ok {NUL} ...", Partner: "Worker", Serves: "work {9} echo 100000", Extra: true},
		{Task: "submit " + longFunction + " {A} unique=" + longID, Answer: "ok {A} ...", Partner: "Worker",
			Serves: "work " + longFunction + " echo 100000", Extra: true, MayRefuse: true},

		// 30 days are more milliseconds than signed 32 bits can count.
		{Task: "submit i2 {A} timeout=2592000", Answer: "ok {A} ...", Partner: "Worker", Serves: "work i2 echo 100000",
			Extra: true, MayRefuse: true},
	},
	"Worker": {
		{Task: "work f1 reverse 3", Answer: "ok 3", Again: "work f1 reverse 0", Partner: "Client",
			Others: []Exchange{{"submit f1 {A}", "ok {A'} ..."}, {"submit f1 {B}", "ok {B'} ..."},
				{"submit f1 {C}", "ok {C'} ..."}}},
		{Task: "work f2 echo 3", Answer: "ok 3", Again: "work f2 echo 0", Partner: "Client", Batch: true,
			Others: []Exchange{{"batch f2 {C} {B} {A}", "ok {C} {B} {A}"}}},
		{Task: "work f3 status 1", Answer: "ok 1", Again: "work f3 status 0", Partner: "Client",
			Others: []Exchange{{"submit f3 {D}", "ok {D} ... status 1/2 ..."}}, Extra: true},
		{Task: "work f4 data 1", Answer: "ok 1", Again: "work f4 data 0", Partner: "Client",
			Others: []Exchange{{"submit f4 {D}", "ok {D} ... data {D} ..."}}, Extra: true},
		{Task: "work f5 fail 1", Answer: "ok 1", Again: "work f5 fail 0", Partner: "Client",
			Others: []Exchange{{"submit f5 {A}", "error failed ..."}}, Extra: true},
		{Task: "work f7 warning 1", Answer: "ok 1", Again: "work f7 warning 0", Partner: "Client",
			Others: []Exchange{{"submit f7 {D}", "ok {D} ... warning {D} ..."}}, Extra: true},
		{Task: "work f8 exception 1", Answer: "ok 1", Again: "work f8 exception 0", Partner: "Client",
			Others: []Exchange{{"submit f8 {A}", "error failed ..."}}, Extra: true},
		{Task: "work f9 empty 1", Answer: "ok 1", Again: "work f9 empty 0", Partner: "Client",
			Others: []Exchange{{"submit f9 {B}", "ok {} ..."}}, Extra: true},
		{Task: "work g1,g2 reverse 2", Answer: "ok 2", Again: "work g1,g2 reverse 0", Partner: "Client",
			Others: []Exchange{{"submit g2 {C}", "ok {C'} ..."}, {"submit g1 {D}", "ok {D'} ..."}}, Extra: true},
		{Task: "work f6 echo 1 timeout=60000", Answer: "ok 1", Again: "work f6 echo 0", Partner: "Client",
			Others: []Exchange{{"submit f6 {B}", "ok {B} ..."}}, Extra: true},
		{Task: "work g4 echo 1 id=w1", Answer: "ok 1", Again: "work g4 echo 0", Partner: "Client",
			Others: []Exchange{{"submit g4 {A} unique=u4", "ok {A} ..."}}, Extra: true},
		{Task: "work g5 exception 1", Answer: "ok 1", Again: "work g5 exception 0", Partner: "Client",
			Others: []Exchange{{"submit g5 {A} exceptions", "error exception ... | error failed ..."}}, Extra: true},

		// Three jobs wait: the worker performs two of them, and must not lose the third.
		{Task: "work h1 echo 1", Answer: "ok 1", Again: "work h1 echo 0", Partner: "Client", Extra: true, Others: []Exchange{
			{"submit h2 {A} background", "ok *"}, {"submit h2 {B} background", "ok *"}, {"submit h2 {C} background", "ok *"},
			{"submit h1 {D}", "ok {D} ..."}}},
		{Task: "work h2 echo 2", Answer: "ok 2", Extra: true, Needs: 13},
		{Task: "work h2 echo 1", Answer: "ok 1", Extra: true, Needs: 14},
		{Task: "work h2 echo 0", Answer: "ok 0", Extra: true, Needs: 15, Waits: 15 * time.Second}, // some answer after 12 s

		{Task: "work h3 echo 20", Answer: "ok 20", Again: "work h3 echo 0", Partner: "Client", Batch: true, Extra: true,
			Others: []Exchange{{"batch h3" + twentyPayloads, "ok" + twentyPayloads}}},

		// A function whose name is a number, payloads that a worker may take for more or less than they are, the longest
		// names, and more milliseconds than 32 bits can count.
		{Task: "work {9} echo 3", Answer: "ok 3", Again: "work {9} echo 0", Partner: "Client", Extra: true,
			Others: []Exchange{{"submit {9} {LF} unique={9}", "ok {LF} ..."}, {"submit {9} {CRLF}", "ok {CRLF} ..."},
				{"submit {9} {NUL}", "ok {NUL} ..."}}},
		{Task: "work " + longFunction + " echo 1", Answer: "ok 1", Again: "work " + longFunction + " echo 0",
			Partner: "Client", Extra: true, MayRefuse: true,
			Others: []Exchange{{"submit " + longFunction + " {A} unique=" + longID, "ok {A} ..."}}},
		{Task: "work i1 echo 1 timeout=2000000000", Answer: "ok 1", Again: "work i1 echo 0", Partner: "Client", Extra: true,
			MayRefuse: true, Others: []Exchange{{"submit i1 {B}", "ok {B} ..."}}},
	},
}

// longFunction is the name of a function that has 200 bytes, and longID is a unique ID that has 63 bytes, after
// names.addSuffix has added "-" and six letters. Servers accept longer names of functions; some of them, no longer IDs.
var longFunction, longID = "v1-" + strings.Repeat("x", 190), "u7-" + strings.Repeat("x", 53)

// twentyPayloads is twenty payloads.
var twentyPayloads = strings.Repeat(" {A} {B} {C} {D}", 5)
