package audit

// GearMonkey is what drivers of GearMonkey are asked to do.
var GearMonkey = Scenario{
	"Client": {
		{Task: "run f1 {A} blocking=10", Answer: "ok $ID", Partner: "Worker", Serves: "work f1 reverse 100000"},
		{Task: "get f1 $ID", Answer: "ok success {A'} ...", Needs: 1},
		{Task: "run f3 {B} priority=high", Answer: "ok *", Extra: true},
	},
	"Worker": {
		{Task: "work f1 reverse 2", Answer: "ok 2", Again: "work f1 reverse 0", Partner: "Client",
			Others: []Exchange{{"run f1 {A} blocking=8", "ok $1"}, {"get f1 $1", "ok success {A'} ..."}, {"run f1 {B} blocking=8", "ok $2"}, {"get f1 $2", "ok success {B'} ..."}}},
	},
}
