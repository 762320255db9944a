package audit

import (
	"strings"

	"jobwire/codec"
	"jobwire/codec/beanstalk"
	"jobwire/codec/danga"
	"jobwire/codec/gearman"
	"jobwire/codec/gearmonkey"
	"jobwire/codec/transcript"
)

// act is what a driver is asked to do at one time, and what somebody else does meanwhile. In its
// lines {A} to {D} are payloads, {A'} one of them reversed, {} is an empty one; $NAME is what an answer tells, * is any
// word and ... are any that follow.
type act struct {
	does    exchange
	again   string     // the task by which it is tried again behind a failure; "" is the same
	partner string     // role of the other one
	serves  string     // what that does all the while
	others  []exchange // what that does, one behind the other
	batch   bool       // several jobs are done at once
	extra   bool       // left out under conditions that have many runs
	needs   int        // the act of the scenario, counted from 1, without which it cannot be; 0 is none
}

// exchange is a task and the answer that is due.
type exchange struct{ task, answer string }

// scenarios are what is asked of the drivers of each role.
var scenarios = map[*codec.Protocol]map[string][]act{
	gearman.Protocol: {
		"Client": {
			{does: exchange{"submit f1 {A}", "ok {A'} ..."}, partner: "Worker", serves: "work f1 reverse 100000"},
			{does: exchange{"batch f2 {A} {B} {C}", "ok {A'} {B'} {C'}"}, partner: "Worker", serves: "work f2 reverse 100000", batch: true},
			{does: exchange{"submit f3 {D} unique=u1", "ok {D} ..."}, partner: "Worker", serves: "work f3 echo 100000", extra: true},
			{does: exchange{"submit f4 {B} exceptions", "error exception ..."}, partner: "Worker", serves: "work f4 exception 100000", extra: true},
			{does: exchange{"submit f5 {C} background", "ok $H"}},
			{does: exchange{"status $H", "ok * * * *"}, needs: 5},
			{does: exchange{"submit f7 {C} at=1", "ok *"}, extra: true},
			{does: exchange{"echo {D}", "ok {D}"}, extra: true},
		},
		"Worker": {
			{does: exchange{"work f1 reverse 3", "ok 3"}, again: "work f1 reverse 0", partner: "Client",
				others: []exchange{{"submit f1 {A}", "ok {A'} ..."}, {"submit f1 {B}", "ok {B'} ..."}, {"submit f1 {C}", "ok {C'} ..."}}},
			{does: exchange{"work f2 echo 3", "ok 3"}, again: "work f2 echo 0", partner: "Client", batch: true,
				others: []exchange{{"batch f2 {C} {B} {A}", "ok {C} {B} {A}"}}},
			{does: exchange{"work f3 status 1", "ok 1"}, again: "work f3 status 0", partner: "Client", others: []exchange{{"submit f3 {D}", "ok {D} status 1/2"}}, extra: true},
			{does: exchange{"work f4 data 1", "ok 1"}, again: "work f4 data 0", partner: "Client", others: []exchange{{"submit f4 {D}", "ok {D} data {D}"}}, extra: true},
			{does: exchange{"work f5 fail 1", "ok 1"}, again: "work f5 fail 0", partner: "Client", others: []exchange{{"submit f5 {A}", "error failed ..."}}, extra: true},
			{does: exchange{"work f6 echo 1 timeout=60000", "ok 1"}, again: "work f6 echo 0", partner: "Client", others: []exchange{{"submit f6 {B}", "ok {B} ..."}}, extra: true},
		},
	},
	beanstalk.Protocol: {
		"Client": {
			{does: exchange{"put t1 {A} ttr=60", "ok $ID"}},
			{does: exchange{"reserve t1 timeout=3", "ok * {A}"}, again: "reserve t1 timeout=1", needs: 1},
			{does: exchange{"put t2 {B} pri=1 ttr=60", "ok *"}},
			{does: exchange{"work t2 delete 1", "ok 1"}, again: "work t2 delete 0", needs: 3},
			{does: exchange{"put t3 {C} delay=100", "ok $LATE"}, extra: true},
			{does: exchange{"peek $LATE", "ok {C}"}, extra: true, needs: 5},
			{does: exchange{"stats $LATE", "ok delayed t3"}, extra: true, needs: 5},
			{does: exchange{"kick t3 10", "ok 1"}, extra: true, needs: 5},
		},
	},
	danga.Protocol: {
		"Application": {
			{does: exchange{"create f1 {A}", "ok {A'} ..."}, partner: "Worker", serves: "work f1 reverse 100000"},
			{does: exchange{"batch f2 {A} {B} {C}", "ok {A'} {B'} {C'}"}, partner: "Worker", serves: "work f2 reverse 100000", batch: true},
			{does: exchange{"create f3 {D} key=k1", "ok {D} status 1/2"}, partner: "Worker", serves: "work f3 status 100000", extra: true},
			{does: exchange{"create f4 {B}", "error failed 1 ..."}, partner: "Worker", serves: "work f4 fail 100000", extra: true},
			{does: exchange{"create f5 {C} handle", "ok $H"}},
			{does: exchange{"status $H", "ok 0 * *"}, needs: 5},
			{does: exchange{"result $H", "ok 0 * *"}, needs: 5, extra: true},
			{does: exchange{"create f8 {C} away", "ok"}, extra: true},
		},
		"Worker": {
			{does: exchange{"work f1 reverse 3", "ok 3"}, again: "work f1 reverse 0", partner: "Application",
				others: []exchange{{"create f1 {A}", "ok {A'} ..."}, {"create f1 {B}", "ok {B'} ..."}, {"create f1 {C}", "ok {C'} ..."}}},
			{does: exchange{"work f2 echo 3", "ok 3"}, again: "work f2 echo 0", partner: "Application", batch: true,
				others: []exchange{{"batch f2 {C} {B} {A}", "ok {C} {B} {A}"}}},
			{does: exchange{"work e3,f3 status 1", "ok 1"}, again: "work f3 status 0", partner: "Application", others: []exchange{{"create f3 {D}", "ok {D} status 1/2"}}, extra: true},
			{does: exchange{"work f4 fail 1", "ok 1"}, again: "work f4 fail 0", partner: "Application", others: []exchange{{"create f4 {A}", "error failed 1 ..."}}, extra: true},
			{does: exchange{"work f5 empty 1", "ok 1"}, again: "work f5 empty 0", partner: "Application", others: []exchange{{"create f5 {B}", "ok {}"}}, extra: true},
		},
	},
	gearmonkey.Protocol: {
		"Client": {
			{does: exchange{"run f1 {A} blocking=10", "ok $ID"}, partner: "Worker", serves: "work f1 reverse 100000"},
			{does: exchange{"get f1 $ID", "ok success {A'} ..."}, needs: 1},
			{does: exchange{"run f3 {B} priority=high", "ok *"}, extra: true},
		},
		"Worker": {
			{does: exchange{"work f1 reverse 2", "ok 2"}, again: "work f1 reverse 0", partner: "Client",
				others: []exchange{{"run f1 {A} blocking=8", "ok $1"}, {"get f1 $1", "ok success {A'} ..."}, {"run f1 {B} blocking=8", "ok $2"}, {"get f1 $2", "ok success {B'} ..."}}},
		},
	},
}

// Roles are those that stress has work for.
func Roles(p *codec.Protocol) []string {
	var all []string
	for _, name := range p.Roles {
		if scenarios[p][name] != nil {
			all = append(all, name)
		}
	}
	return all
}

// names are what the words of a scenario stand for.
type names map[string]string

// expand replaces the words of a line that stand for something.
func (n names) expand(line string) []string {
	words := strings.Fields(line)
	for i, w := range words {
		if v, ok := n[w]; ok {
			words[i] = v
		}
	}
	return words
}

// task is a line as a driver reads it.
func (n names) task(line string) string {
	words := n.expand(line)
	for i, w := range words {
		words[i] = transcript.Quote(w)
	}
	return strings.Join(words, " ")
}

// fits reports whether an answer is the one that is due, and notes what it tells.
func (n names) fits(due, line string) bool {
	got, err := transcript.ParseWords(line)
	if err != nil {
		return false
	}
	want := strings.Fields(due)
	for i, w := range want {
		if w == "..." {
			return true
		}
		if i >= len(got) {
			return false
		}
		known, ok := n[w]
		switch {
		case w == "*":
		case strings.HasPrefix(w, "$") && !ok:
			n[w] = got[i]
		case ok && known != got[i], !ok && w != got[i]:
			return false
		}
	}
	return len(got) == len(want)
}
