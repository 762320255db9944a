package audit

// Danga is what drivers of Danga are asked to do.
var Danga = Scenario{
	"Application": {
		{Task: "create f1 {A}", Answer: "ok {A'} ...", Partner: "Worker", Serves: "work f1 reverse 100000"},
		{Task: "batch f2 {A} {B} {C}", Answer: "ok {A'} {B'} {C'}", Partner: "Worker", Serves: "work f2 reverse 100000", Batch: true},
		{Task: "create f3 {D} key=k1", Answer: "ok {D} status 1/2", Partner: "Worker", Serves: "work f3 status 100000", Extra: true},
		{Task: "create f4 {B}", Answer: "error failed 1 ...", Partner: "Worker", Serves: "work f4 fail 100000", Extra: true},
		{Task: "create f5 {C} handle", Answer: "ok $H"},
		{Task: "status $H", Answer: "ok 0 * *", Needs: 5},
		{Task: "result $H", Answer: "ok 0 * *", Needs: 5, Extra: true},
		{Task: "create f8 {C} away", Answer: "ok", Extra: true},
	},
	"Worker": {
		{Task: "work f1 reverse 3", Answer: "ok 3", Again: "work f1 reverse 0", Partner: "Application",
			Others: []Exchange{{"create f1 {A}", "ok {A'} ..."}, {"create f1 {B}", "ok {B'} ..."}, {"create f1 {C}", "ok {C'} ..."}}},
		{Task: "work f2 echo 3", Answer: "ok 3", Again: "work f2 echo 0", Partner: "Application", Batch: true,
			Others: []Exchange{{"batch f2 {C} {B} {A}", "ok {C} {B} {A}"}}},
		{Task: "work e3,f3 status 1", Answer: "ok 1", Again: "work f3 status 0", Partner: "Application", Others: []Exchange{{"create f3 {D}", "ok {D} status 1/2"}}, Extra: true},
		{Task: "work f4 fail 1", Answer: "ok 1", Again: "work f4 fail 0", Partner: "Application", Others: []Exchange{{"create f4 {A}", "error failed 1 ..."}}, Extra: true},
		{Task: "work f5 empty 1", Answer: "ok 1", Again: "work f5 empty 0", Partner: "Application", Others: []Exchange{{"create f5 {B}", "ok {}"}}, Extra: true},
	},
}
