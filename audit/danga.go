package audit

import "jobwire/codec"

// DangaEffects are what fault profiles do to the Danga draft. A checker takes a needless NOOP before an assignment for
// the reply to the request, and the worker may do so, too. The draft requires that a worker does nothing when it
// receives a NOOP, so that the worker must handle the assignment nevertheless.
var DangaEffects = Effects{Breaks: map[string][]codec.RuleID{
	"needless-noops": {"danga.assign.asked-for", "danga.sleep.once", "danga.sleep.awake-undisturbed",
		"danga.sleep.hears-first"},
}}

// Danga contains the steps for drivers of the Danga draft.
var Danga = Scenario{
	"Application": {
		// The draft does not say what the server replies to a request for the result of a job that it does not know.
		{Task: "create f1 {A}", Answer: "ok {A'} ...", Partner: "Worker", Serves: "work f1 reverse 100000"},
		{Task: "batch f2 {A} {B} {C}", Answer: "ok {A'} {B'} {C'}", Partner: "Worker", Serves: "work f2 reverse 100000",
			Batch: true, Lasting: true},
		{Task: "create f3 {D} key=k1", Answer: "ok {D} status 1/2 | ok {D}", Partner: "Worker",
			Serves: "work f3 status 100000", Extra: true},
		{Task: "create f4 {B}", Answer: "error failed 1 ...", Partner: "Worker", Serves: "work f4 fail 100000", Extra: true},
		{Task: "create f5 {C} handle", Answer: "ok $H"},
		{Task: "status $H", Answer: "ok 0 * *", Needs: 5},
		{Task: "result $H", Answer: "ok 0 * *", Needs: 5, Extra: true},
		{Task: "create f8 {C} away", Answer: "ok", Extra: true},

		// The driver requests the status of a waiting job, and then of the same job when it must have
		// finished, because a job that was created later has finished.
		{Task: "create g1 {A} handle", Answer: "ok $DONE", Extra: true},
		{Task: "result $DONE", Answer: "ok 0 0 *", Extra: true, Needs: 9},
		{Task: "create g1 {B}", Answer: "ok {B'} ...", Partner: "Worker", Serves: "work g1 reverse 100000", Extra: true,
			Needs: 9},
		{Task: "status $DONE", Answer: "ok 1 1 0", Extra: true, Needs: 11},
		{Task: "result $DONE", Answer: "ok * 0 {A'}", Extra: true, Needs: 11},

		// A job with an empty key, and jobs with the key of a waiting job: the latter are one job with the args of the
		// first. The worker may perform it before the third one is created.
		{Task: "create g2 {A} key=", Answer: "ok {A} ...", Partner: "Worker", Serves: "work g2 echo 100000", Extra: true},
		{Task: "create g3 {C} key=k3 handle", Answer: "ok $SAME", Extra: true},
		{Task: "create g3 {D} key=k3 handle", Answer: "ok $SAME", Extra: true, Needs: 15},
		{Task: "create g3 {D} key=k3", Answer: "ok {C} ... | ok {D} ...", Partner: "Worker", Serves: "work g3 echo 100000",
			Extra: true, Needs: 16},

		{Task: "create g4 {C}", Answer: "ok {} ...", Partner: "Worker", Serves: "work g4 empty 100000", Extra: true},
		{Task: "batch g5 {A}", Answer: "ok {A'}", Partner: "Worker", Serves: "work g5 reverse 100000", Batch: true,
			Extra: true},
		{Task: "batch g6 {A} {B} {A} {A}", Answer: "ok {A'} {B'} {A'} {A'}", Partner: "Worker",
			Serves: "work g6 reverse 100000", Batch: true, Extra: true},
		{Task: "batch g7" + twentyPayloads, Answer: "ok" + twentyPayloads, Partner: "Worker", Serves: "work g7 echo 100000",
			Batch: true, Extra: true},

		// Names that are numbers, args that an application may take for more or less than they are, and long names.
		{Task: "create {9} {LF} key={9}", Answer: "ok {LF} ...", Partner: "Worker", Serves: "work {9} echo 100000",
			Extra: true},
		{Task: "create {9} {CRLF}", Answer: "ok {CRLF} ...", Partner: "Worker", Serves: "work {9} echo 100000", Extra: true},
		{Task: "create {9} {NUL}", Answer: "ok {NUL} ...", Partner: "Worker", Serves: "work {9} echo 100000", Extra: true},
		{Task: "create " + longFunction + " {A}", Answer: "ok {A} ...", Partner: "Worker",
			Serves: "work " + longFunction + " echo 100000", Extra: true, MayRefuse: true},
	},
	"Worker": {
		{Task: "work f1 reverse 3", Answer: "ok 3", Again: "work f1 reverse 0", Partner: "Application",
			Others: []Exchange{{"create f1 {A}", "ok {A'} ..."}, {"create f1 {B}", "ok {B'} ..."},
				{"create f1 {C}", "ok {C'} ..."}}},
		{Task: "work f2 echo 3", Answer: "ok 3", Again: "work f2 echo 0", Partner: "Application", Batch: true,
			Others: []Exchange{{"batch f2 {C} {B} {A}", "ok {C} {B} {A}"}}},
		{Task: "work e3,f3 status 1", Answer: "ok 1", Again: "work f3 status 0", Partner: "Application",
			Others: []Exchange{{"create f3 {D}", "ok {D} ... status 1/2 ..."}}, Extra: true},
		{Task: "work f4 fail 1", Answer: "ok 1", Again: "work f4 fail 0", Partner: "Application",
			Others: []Exchange{{"create f4 {A}", "error failed 1 ..."}}, Extra: true},
		{Task: "work f5 empty 1", Answer: "ok 1", Again: "work f5 empty 0", Partner: "Application",
			Others: []Exchange{{"create f5 {B}", "ok {} ..."}}, Extra: true},

		// Three jobs wait: the worker performs two of them, and must not lose the third.
		{Task: "work g1 echo 1", Answer: "ok 1", Again: "work g1 echo 0", Partner: "Application", Extra: true,
			Others: []Exchange{
				{"create g2 {A} away", "ok"}, {"create g2 {B} away", "ok"}, {"create g2 {C} away", "ok"},
				{"create g1 {D}", "ok {D} ..."}}},
		{Task: "work g2 echo 2", Answer: "ok 2", Extra: true, Needs: 6},
		{Task: "work g2 echo 1", Answer: "ok 1", Extra: true, Needs: 7},
		{Task: "work g2 echo 0", Answer: "ok 0", Extra: true, Needs: 8},

		{Task: "work g3 echo 20", Answer: "ok 20", Again: "work g3 echo 0", Partner: "Application", Batch: true, Extra: true,
			Others: []Exchange{{"batch g3" + twentyPayloads, "ok" + twentyPayloads}}},

		// A job name that is a number, args that a worker may take for more or less than they are, and a long name.
		{Task: "work {9} echo 3", Answer: "ok 3", Again: "work {9} echo 0", Partner: "Application", Extra: true,
			Others: []Exchange{{"create {9} {LF} key={9}", "ok {LF} ..."}, {"create {9} {CRLF}", "ok {CRLF} ..."},
				{"create {9} {NUL}", "ok {NUL} ..."}}},
		{Task: "work " + longFunction + " echo 1", Answer: "ok 1", Again: "work " + longFunction + " echo 0",
			Partner: "Application", Extra: true, MayRefuse: true,
			Others: []Exchange{{"create " + longFunction + " {A}", "ok {A} ..."}}},
	},
}
