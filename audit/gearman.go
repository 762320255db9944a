package audit

// Gearman is what drivers of Gearman are asked to do.
var Gearman = Scenario{
	"Client": {
		{Task: "submit f1 {A}", Answer: "ok {A'} ...", Partner: "Worker", Serves: "work f1 reverse 100000"},
		{Task: "batch f2 {A} {B} {C}", Answer: "ok {A'} {B'} {C'}", Partner: "Worker", Serves: "work f2 reverse 100000", Batch: true},
		{Task: "submit f3 {D} unique=u1", Answer: "ok {D} ...", Partner: "Worker", Serves: "work f3 echo 100000", Extra: true},
		{Task: "submit f4 {B} exceptions", Answer: "error exception ...", Partner: "Worker", Serves: "work f4 exception 100000", Extra: true},
		{Task: "submit f5 {C} background", Answer: "ok $H"},
		{Task: "status $H", Answer: "ok * * * *", Needs: 5},
		{Task: "submit f7 {C} at=1", Answer: "ok *", Extra: true},
		{Task: "echo {D}", Answer: "ok {D}", Extra: true},
	},
	"Worker": {
		{Task: "work f1 reverse 3", Answer: "ok 3", Again: "work f1 reverse 0", Partner: "Client",
			Others: []Exchange{{"submit f1 {A}", "ok {A'} ..."}, {"submit f1 {B}", "ok {B'} ..."}, {"submit f1 {C}", "ok {C'} ..."}}},
		{Task: "work f2 echo 3", Answer: "ok 3", Again: "work f2 echo 0", Partner: "Client", Batch: true,
			Others: []Exchange{{"batch f2 {C} {B} {A}", "ok {C} {B} {A}"}}},
		{Task: "work f3 status 1", Answer: "ok 1", Again: "work f3 status 0", Partner: "Client", Others: []Exchange{{"submit f3 {D}", "ok {D} status 1/2"}}, Extra: true},
		{Task: "work f4 data 1", Answer: "ok 1", Again: "work f4 data 0", Partner: "Client", Others: []Exchange{{"submit f4 {D}", "ok {D} data {D}"}}, Extra: true},
		{Task: "work f5 fail 1", Answer: "ok 1", Again: "work f5 fail 0", Partner: "Client", Others: []Exchange{{"submit f5 {A}", "error failed ..."}}, Extra: true},
		{Task: "work f6 echo 1 timeout=60000", Answer: "ok 1", Again: "work f6 echo 0", Partner: "Client", Others: []Exchange{{"submit f6 {B}", "ok {B} ..."}}, Extra: true},
	},
}
