package audit

import "time"

// Beanstalk is what drivers of Beanstalk are asked to do.
var Beanstalk = Scenario{
	"Client": {
		{Task: "put t1 {A} ttr=60", Answer: "ok $ID"},
		{Task: "reserve t1 timeout=3", Answer: "ok * {A}", Again: "reserve t1 timeout=1", Needs: 1},
		{Task: "put t2 {B} pri=1 ttr=60", Answer: "ok *"},
		{Task: "work t2 delete 1", Answer: "ok 1", Again: "work t2 delete 0", Needs: 3},

		// A delayed job, in another tube than the one that is used last. The delay is larger than 32 bits in milliseconds.
		{Task: "put t3 {C} delay=5000000", Answer: "ok $LATE", Extra: true},
		{Task: "put t4 {D} pri=30", Answer: "ok $D", Extra: true},
		{Task: "peek $LATE", Answer: "ok {C}", Extra: true, Needs: 5},
		{Task: "stats $LATE", Answer: "ok delayed t3", Extra: true, Needs: 5},
		{Task: "kick t3 10", Answer: "ok 1", Extra: true, Needs: 5},
		{Task: "delete $LATE", Answer: "ok", Extra: true, Needs: 9},
		{Task: "peek 4000000000", Answer: "error not-found ...", Extra: true},

		// Three reserved jobs, in the order of their priorities.
		{Task: "put t4 {B} pri=20 ttr=5000000", Answer: "ok $B", Extra: true, Needs: 6},
		{Task: "put t4 {A} pri=10 ttr=60", Answer: "ok $A", Extra: true, Needs: 12},
		{Task: "reserve t4 timeout=3", Answer: "ok $A {A}", Extra: true, Needs: 13},
		{Task: "reserve t4", Answer: "ok $B {B}", Extra: true, Needs: 14},
		{Task: "reserve t4 timeout=3", Answer: "ok $D {D}", Extra: true, Needs: 15},
		{Task: "touch $A", Answer: "ok", Extra: true, Needs: 16},
		{Task: "release $B pri=3", Answer: "ok", Extra: true, Needs: 16},
		{Task: "stats $B", Answer: "ok ready t4", Extra: true, Needs: 18},
		{Task: "bury $A", Answer: "ok", Extra: true, Needs: 16},
		{Task: "stats $A", Answer: "ok buried t4", Extra: true, Needs: 20},
		{Task: "release $D delay=999", Answer: "ok", Extra: true, Needs: 16},
		{Task: "stats $D", Answer: "ok delayed t4", Extra: true, Needs: 22},

		// A job is ready in t4, which the driver has watched before.
		{Task: "reserve t5,t6 timeout=0", Answer: "error timed-out ...", Extra: true, Needs: 18},
		{Task: "kick t4 1", Answer: "ok 1", Extra: true, Needs: 20},
		{Task: "work t4 release 1", Answer: "ok 1", Extra: true, Needs: 18},
		{Task: "work t4 bury 1", Answer: "ok 1", Extra: true, Needs: 18},
		{Task: "work t4 touch 0", Answer: "ok 1", Extra: true, Needs: 25},

		// The server waits for a second until the job is ready, and again until the time to run of the job has almost passed.
		{Task: "put t7 {D} delay=1 ttr=3", Answer: "ok $SOON", Extra: true},
		{Task: "reserve t7 timeout=4", Answer: "ok $SOON {D}", Extra: true, Needs: 29, Waits: time.Second},
		{Task: "reserve t7 timeout=2", Answer: "error ...", Extra: true, Needs: 30, Waits: 2 * time.Second},
		{Task: "put t8 {C}", Answer: "ok *", Extra: true},
		{Task: "work t8 delete 1", Answer: "ok 1", Extra: true, Needs: 32},
	},
}
