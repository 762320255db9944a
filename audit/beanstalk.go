package audit

// Beanstalk is what drivers of Beanstalk are asked to do.
var Beanstalk = Scenario{
	"Client": {
		{Task: "put t1 {A} ttr=60", Answer: "ok $ID"},
		{Task: "reserve t1 timeout=3", Answer: "ok * {A}", Again: "reserve t1 timeout=1", Needs: 1},
		{Task: "put t2 {B} pri=1 ttr=60", Answer: "ok *"},
		{Task: "work t2 delete 1", Answer: "ok 1", Again: "work t2 delete 0", Needs: 3},
		{Task: "put t3 {C} delay=100", Answer: "ok $LATE", Extra: true},
		{Task: "peek $LATE", Answer: "ok {C}", Extra: true, Needs: 5},
		{Task: "stats $LATE", Answer: "ok delayed t3", Extra: true, Needs: 5},
		{Task: "kick t3 10", Answer: "ok 1", Extra: true, Needs: 5},
	},
}
