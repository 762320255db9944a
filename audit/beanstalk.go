package audit

import (
	"strings"
	"time"
)

// BeanstalkEffects are what fault profiles do to Beanstalk.
var BeanstalkEffects = Effects{JobKey: "id"}

// Beanstalk contains the steps for drivers of Beanstalk.
var Beanstalk = Scenario{
	"Client": {
		// The job in the tube default is the most urgent one, so that a client that watches this tube by mistake receives it.
		// The time to run of jobs that stay reserved is longer than any test: a server may reply DEADLINE_SOON before its
		// end. The timeouts are longer than the delay of one message under a fault profile.
		{Task: "put default {C} pri=0 ttr=6000", Answer: "ok *"},
		{Task: "put t1 {A} pri=1 ttr=6000", Answer: "ok *"},
		{Task: "reserve t1 timeout=4", Answer: "ok * {A}", Needs: 2},
		{Task: "put t2 {B} pri=1 ttr=60", Answer: "ok *"},
		{Task: "work t2 delete 1", Answer: "ok 1", Again: "work t2 delete 0", Needs: 4},
		{Task: "reserve default timeout=4", Answer: "ok * {C}", Needs: 1},

		// A delayed job, in another tube than the one that is used last. The delay is larger than 32 bits in milliseconds.
		{Task: "put t3 {C} delay=5000000", Answer: "ok $LATE", Extra: true},
		{Task: "put t4 {D} pri=30", Answer: "ok $D", Extra: true},
		{Task: "peek $LATE", Answer: "ok {C}", Extra: true, Needs: 7},
		{Task: "stats $LATE", Answer: "ok delayed t3", Extra: true, Needs: 7},
		{Task: "kick t3 10", Answer: "ok 1", Extra: true, Needs: 7},
		{Task: "delete $LATE", Answer: "ok", Extra: true, Needs: 11},
		{Task: "peek 4000000000", Answer: "error not-found ...", Extra: true},

		// Three reserved jobs, in the order of their priorities.
		{Task: "put t4 {B} pri=20 ttr=5000000", Answer: "ok $B", Extra: true, Needs: 8},
		{Task: "put t4 {A} pri=10 ttr=60", Answer: "ok $A", Extra: true, Needs: 14},
		{Task: "reserve t4 timeout=3", Answer: "ok $A {A}", Extra: true, Needs: 15},
		{Task: "reserve t4", Answer: "ok $B {B}", Extra: true, Needs: 16},
		{Task: "reserve t4 timeout=3", Answer: "ok $D {D}", Extra: true, Needs: 17},
		{Task: "touch $A", Answer: "ok", Extra: true, Needs: 18},
		{Task: "release $B pri=3", Answer: "ok", Extra: true, Needs: 18},
		{Task: "stats $B", Answer: "ok ready t4", Extra: true, Needs: 20},
		{Task: "bury $A", Answer: "ok", Extra: true, Needs: 18},
		{Task: "stats $A", Answer: "ok buried t4", Extra: true, Needs: 22},
		{Task: "release $D delay=999", Answer: "ok", Extra: true, Needs: 18},
		{Task: "stats $D", Answer: "ok delayed t4", Extra: true, Needs: 24},

		// A job is ready in t4, which the driver has watched before.
		{Task: "reserve t5,t6 timeout=0", Answer: "error timed-out ...", Extra: true, Needs: 20},
		{Task: "kick t4 1", Answer: "ok 1", Extra: true, Needs: 22},
		{Task: "work t4 release 1", Answer: "ok 1", Extra: true, Needs: 20},
		{Task: "work t4 bury 1", Answer: "ok 1", Extra: true, Needs: 20},
		{Task: "work t4 touch 0", Answer: "ok 1", Extra: true, Needs: 27},

		// The server waits for a second until the job is ready, and again until the time to run of the job has almost passed.
		// A client may ask again until the timeout.
		{Task: "put t7 {D} delay=1 ttr=3", Answer: "ok $SOON", Extra: true},
		{Task: "reserve t7 timeout=4", Answer: "ok $SOON {D}", Extra: true, Needs: 31, Waits: time.Second},
		{Task: "reserve t7 timeout=4", Answer: "error deadline-soon ... | error server DEADLINE_SOON ... | ok $SOON {D}",
			Extra: true, Needs: 32, Waits: 4 * time.Second},
		{Task: "put t8 {C}", Answer: "ok *", Extra: true},
		{Task: "work t8 delete 1", Answer: "ok 1", Extra: true, Needs: 34},
		{Task: "delete $SOON", Answer: "ok", Extra: true, Needs: 32},

		// Jobs whose time to run expires while the driver has reserved them: another client receives them, with bodies that
		// the library may have put into an envelope. A client may reserve the jobs again by their IDs, so that it can touch
		// and release them.
		{Task: "put u1 {A} ttr=1", Answer: "ok $TOUCHED", Extra: true},
		{Task: "put u9 {D} ttr=1", Answer: "ok $RELEASED", Extra: true, Needs: 37},
		{Task: "reserve u1 timeout=1", Answer: "ok $TOUCHED {A}", Extra: true, Needs: 38},
		{Task: "reserve u9 timeout=1", Answer: "ok $RELEASED {D}", Extra: true, Needs: 39},
		{Task: "put u2 {B}", Answer: "ok *", Partner: "Client",
			Others: []Exchange{{"reserve u9 timeout=4", "ok * *"}, {"reserve u1 timeout=4", "ok * *"}}, Waits: time.Second,
			Extra: true, Needs: 40},
		{Task: "touch $TOUCHED", Answer: "error not-found ... | ok", Extra: true, Needs: 41},
		{Task: "release $RELEASED", Answer: "error not-found ... | ok", Extra: true, Needs: 41},
		{Task: "reserve u1 timeout=3", Answer: "ok $TOUCHED {A} | error deadline-soon ...", Extra: true, Needs: 41},
		{Task: "delete $TOUCHED", Answer: "ok", Extra: true, Needs: 44},
		{Task: "delete $RELEASED", Answer: "ok", Extra: true, Needs: 41},

		// A buried job, a job that does not exist, and no ready job.
		{Task: "put u3 {C}", Answer: "ok $GRAVE", Extra: true},
		{Task: "reserve u3 timeout=1", Answer: "ok $GRAVE {C}", Extra: true, Needs: 47},
		{Task: "bury $GRAVE", Answer: "ok", Extra: true, Needs: 48},
		{Task: "delete $GRAVE", Answer: "ok", Extra: true, Needs: 49},
		{Task: "delete 4000000000", Answer: "error not-found ...", Extra: true},
		{Task: "kick u3 10", Answer: "ok 0", Extra: true},

		// The limits of numbers. The server turns a time to run of 0 into one second.
		{Task: "put u4 {B} pri=4294967295 delay=0 ttr=4294967295", Answer: "ok *", Extra: true, MayRefuse: true},
		{Task: "put u4 {A} pri=0", Answer: "ok *", Extra: true, Needs: 53},
		{Task: "reserve u4 timeout=1", Answer: "ok $FIRST {A}", Extra: true, Needs: 54},
		{Task: "reserve u4 timeout=1", Answer: "ok $LAST {B}", Extra: true, Needs: 55},
		{Task: "delete $FIRST", Answer: "ok", Extra: true, Needs: 56},
		{Task: "delete $LAST", Answer: "ok", Extra: true, Needs: 56},
		{Task: "put u5 {C} ttr=0", Answer: "ok *", Extra: true, MayRefuse: true},
		{Task: "work u5 delete 1", Answer: "ok 1", Extra: true, Needs: 59},
		{Task: "put u6 {D} delay=4294967295", Answer: "ok $FAR", Extra: true, MayRefuse: true},
		{Task: "stats $FAR", Answer: "ok delayed u6", Extra: true, Needs: 61},

		// A body that is one byte too large for the server, and another put afterwards. Other servers accept larger bodies.
		{Task: "put u7 {A} ttr=6000", Answer: "ok *", Extra: true},
		{Task: "put u8 " + tooBig, Answer: "error too-big ... | ok *", Extra: true, Needs: 63, MayRefuse: true},
		{Task: "put u7 {B} ttr=6000", Answer: "ok *", Extra: true, Needs: 63},
		{Task: "reserve u7 timeout=1", Answer: "ok * {A}", Extra: true, Needs: 65},

		// A paused tube, and a tube that does not exist.
		{Task: "put v2 {C} ttr=6000", Answer: "ok *", Extra: true},
		{Task: "pause v2 1000", Answer: "ok", Extra: true, Needs: 67},
		{Task: "pause v2 0", Answer: "ok", Extra: true, Needs: 68},
		{Task: "reserve v2 timeout=2", Answer: "ok * {C}", Extra: true, Needs: 69},
		{Task: "pause v3 1", Answer: "error not-found ...", Extra: true},

		// The longest name of a tube, with all characters that it may have.
		{Task: "put " + longest + " {B} ttr=6000", Answer: "ok $LONG", Extra: true, Needs: 67, MayRefuse: true},
		{Task: "reserve " + longest + " timeout=1", Answer: "ok $LONG {B}", Extra: true, Needs: 72},
		{Task: "stats $LONG", Answer: "ok reserved " + longest, Extra: true, Needs: 73},

		// Three jobs are ready: the worker performs two of them, and must not lose the third.
		{Task: "put v4 {A}", Answer: "ok *", Extra: true},
		{Task: "put v4 {B}", Answer: "ok *", Extra: true, Needs: 75},
		{Task: "put v4 {C}", Answer: "ok *", Extra: true, Needs: 76},
		{Task: "work v4 delete 2", Answer: "ok 2", Extra: true, Needs: 77},
		{Task: "work v4 delete 1", Answer: "ok 1", Extra: true, Needs: 78},
		{Task: "work v4 delete 0", Answer: "ok 0", Extra: true, Needs: 79},

		// A tube whose name is a number, and bodies that a client may take for more or less than they are.
		{Task: "put {9} {LF} ttr=6000", Answer: "ok $LF", Extra: true},
		{Task: "put {9} {CRLF} ttr=6000", Answer: "ok $CRLF", Extra: true, Needs: 81},
		{Task: "put {9} {NUL} ttr=6000", Answer: "ok *", Extra: true, Needs: 82},
		{Task: "stats $LF", Answer: "ok ready {9}", Extra: true, Needs: 81},
		{Task: "peek $CRLF", Answer: "ok {CRLF}", Extra: true, Needs: 82},
		{Task: "reserve {9} timeout=1", Answer: "ok $LF {LF}", Extra: true, Needs: 83},
		{Task: "reserve {9} timeout=1", Answer: "ok $CRLF {CRLF}", Extra: true, Needs: 86},
		{Task: "reserve {9} timeout=1", Answer: "ok * {NUL}", Extra: true, Needs: 87},

		// Parts of a second, which the protocol does not have, if the library does; and 30 days, which are more milliseconds
		// than signed 32 bits can count.
		{Task: "put-ms w1 {A} 500", Answer: "ok $PART", Extra: true, MayRefuse: true},
		{Task: "stats $PART", Answer: "ok delayed w1 | ok ready w1", Extra: true, Needs: 89},
		{Task: "put w3 {B} delay=2 ttr=6000", Answer: "ok $HUGE", Extra: true},
		{Task: "reserve-ms w2 500", Answer: "error timed-out ...", Extra: true, Waits: time.Second, MayRefuse: true},
		{Task: "reserve w3 timeout=2592000", Answer: "ok $HUGE {B}", Extra: true, Needs: 91, Waits: 2 * time.Second,
			MayRefuse: true},
	},
}

// tooBig is a body that is one byte larger than the default limit of servers.
var tooBig = strings.Repeat("x", 1<<16)

// longest is the name of a tube that has 200 bytes after names.distinguish has added "-" and six letters.
var longest = "v1-+/;.$_()" + strings.Repeat("x", 120) + "ABCDEFGHIJKLMNOPQRSTUVWXYZ" + "abcdefghijklmnopqrstuvwxyz" +
	"0123456789"
