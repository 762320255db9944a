package audit

import "time"

// GearMonkeyEffects are what fault profiles do to GearMonkey.
var GearMonkeyEffects = Effects{}

// GearMonkey contains the steps for drivers of GearMonkey.
var GearMonkey = Scenario{
	"Client": {
		{Task: "run f1 {A} blocking=10", Answer: "ok $ID", Partner: "Worker", Serves: "work f1 reverse 100000"},
		{Task: "get f1 $ID", Answer: "ok success {A'} ...", Needs: 1},
		{Task: "run f3 {B} priority=high", Answer: "ok *", Extra: true},
		{Task: "get f1 $ID", Answer: "ok success {A'} ...", Needs: 1, Extra: true},

		// Waiting jobs. The last one is scheduled for the last second of 2099.
		{Task: "run f4 {A} priority=low", Answer: "ok $LOW", Extra: true},
		{Task: "get f4 $LOW", Answer: "ok idle {} ...", Extra: true, Needs: 5},
		{Task: "run f4 {A} priority=normal", Answer: "ok $NORMAL", Extra: true},
		{Task: "get f4 $NORMAL", Answer: "ok idle {} ...", Extra: true, Needs: 7},
		{Task: "run f4 {A} priority=scheduled at=4102444799", Answer: "ok $LATE", Extra: true},
		{Task: "get f4 $LATE", Answer: "ok idle {} ...", Extra: true, Needs: 9},
		{Task: "get f5 1", Answer: "ok {} {}", Extra: true},
		{Task: "get f4 4000000000", Answer: "ok {} {}", Extra: true},

		// A worker has registered and deregistered the first function; no worker has ever registered the second one.
		{Task: "run f6 {B} priority=scheduled at=1 blocking=10", Answer: "ok $DUE", Partner: "Worker",
			Others: []Exchange{{"work f6 reverse 1", "ok 1"}}, Extra: true},
		{Task: "get f6 $DUE", Answer: "ok success {B'} ...", Extra: true, Needs: 13},
		{Task: "run f6 {B} rollcall", Answer: "error nothing-registered ...", Extra: true, Needs: 13},
		{Task: "run f7 {B} rollcall blocking=10", Answer: "error nothing-registered ...", Extra: true},

		{Task: "run f8 {C} blocking=1", Answer: "error timed-out $OVER", Extra: true, Waits: time.Second},
		{Task: "get f8 $OVER", Answer: "ok idle {} ...", Extra: true, Needs: 17},
		{Task: "run f8 {D} blocking=10", Answer: "ok $AFTER", Partner: "Worker", Serves: "work f8 reverse 100000",
			Extra: true, Needs: 17},
		{Task: "get f8 $OVER", Answer: "ok success {C'} ...", Extra: true, Needs: 19},
		{Task: "get f8 $AFTER", Answer: "ok success {D'} ...", Extra: true, Needs: 19},

		{Task: "run g1 {C} blocking=10 priority=low", Answer: "ok $FAILED", Partner: "Worker", Serves: "work g1 fail 100000",
			Extra: true},
		{Task: "get g1 $FAILED", Answer: "ok error {C} ...", Extra: true, Needs: 22},
		{Task: "run g2 {D} blocking=10 priority=high", Answer: "ok $EMPTY", Partner: "Worker", Serves: "work g2 empty 100000",
			Extra: true},
		{Task: "get g2 $EMPTY", Answer: "ok success {} ...", Extra: true, Needs: 24},
		{Task: "run g3 {A} blocking=0", Answer: "ok $PART", Partner: "Worker", Serves: "work g3 progress 100000",
			Extra: true},
		{Task: "get g3 $PART", Answer: "ok success {A} ...", Extra: true, Needs: 26},
	},
	"Worker": {
		{Task: "work f1 reverse 2", Answer: "ok 2", Again: "work f1 reverse 0", Partner: "Client",
			Others: []Exchange{{"run f1 {A} blocking=8", "ok $1"}, {"get f1 $1", "ok success {A'} ..."},
				{"run f1 {B} blocking=8", "ok $2"}, {"get f1 $2", "ok success {B'} ..."}}},
		{Task: "work f2 fail 1", Answer: "ok 1", Again: "work f2 fail 0", Partner: "Client",
			Others: []Exchange{{"run f2 {A} blocking=8", "ok $3"}, {"get f2 $3", "ok error {A} ..."}}, Extra: true},
		{Task: "work f3 empty 1", Answer: "ok 1", Again: "work f3 empty 0", Partner: "Client",
			Others: []Exchange{{"run f3 {B} blocking=8", "ok $4"}, {"get f3 $4", "ok success {} ..."}}, Extra: true},
		{Task: "work f4 progress 1", Answer: "ok 1", Again: "work f4 progress 0", Partner: "Client",
			Others: []Exchange{{"run f4 {C} blocking=8", "ok $5"}, {"get f4 $5", "ok success {C} ..."}}, Extra: true},
		{Task: "work f5 echo 3", Answer: "ok 3", Again: "work f5 echo 0", Partner: "Client", Extra: true, Others: []Exchange{
			{"run f5 {A} priority=low blocking=8", "ok *"}, {"run f5 {B} priority=high blocking=8", "ok *"},
			{"run f5 {D} priority=scheduled at=1 blocking=8", "ok $6"}, {"get f5 $6", "ok success {D} ..."}}},
		{Task: "work f6,f7 echo 2", Answer: "ok 2", Again: "work f6,f7 echo 0", Partner: "Client", Extra: true,
			Others: []Exchange{
				{"run f7 {A} blocking=8", "ok $7"}, {"get f7 $7", "ok success {A} ..."}, {"run f6 {B} blocking=8", "ok $8"},
				{"get f6 $8", "ok success {B} ..."}}},

		// Three jobs wait: the worker performs two of them, and must not lose the third. The job for 2099 stays.
		{Task: "work f8 echo 1", Answer: "ok 1", Again: "work f8 echo 0", Partner: "Client", Extra: true, Others: []Exchange{
			{"run f9 {A} priority=scheduled at=4102444799", "ok *"}, {"run f9 {A}", "ok *"}, {"run f9 {B}", "ok *"},
			{"run f9 {C}", "ok *"}, {"run f8 {D} blocking=8", "ok *"}}},
		{Task: "work f9 echo 2", Answer: "ok 2", Extra: true, Needs: 7},
		{Task: "work f9 echo 1", Answer: "ok 1", Extra: true, Needs: 8},
		{Task: "work f9 echo 0", Answer: "ok 0", Extra: true, Needs: 9},
	},
}
