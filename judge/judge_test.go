package judge_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"jobwire/codec"
	"jobwire/codec/beanstalk"
	"jobwire/codec/danga"
	"jobwire/codec/gearman"
	"jobwire/codec/gearmonkey"
	"jobwire/codec/transcript"
	"jobwire/judge"
	"jobwire/play"
)

// check checks a transcript and returns the violated rules, each after the number of its message. unseen are the peers
// whose first messages are not captured.
func check(t *testing.T, p *codec.Protocol, script string, unseen ...string) []string {
	t.Helper()
	return checkWith(t, p, script, false, unseen...)
}

// checkWith is check with the given value of Monitor.PeerChecks.
func checkWith(t *testing.T, p *codec.Protocol, script string, peers bool, unseen ...string) []string {
	t.Helper()
	scripts, err := transcript.Parse(p, "test", []byte(script))
	if err != nil {
		t.Fatal(err)
	}
	events, err := play.Encode(scripts[0], time.Unix(1e9, 0), false)
	if err != nil {
		t.Fatal(err)
	}
	j := judge.New(p)
	j.PeerChecks = peers
	ids, sessions := map[string]int{}, map[string]codec.Session{}
	for _, name := range unseen {
		ids[name], sessions[name] = len(ids), p.NewSession(codec.Options{WaiveAll: true})
	}
	var all []string
	now := ""
	j.Snapshot = func() any { return now }
	for i, ev := range events {
		name := ev.Actor.Name
		if sessions[name] == nil {
			ids[name], sessions[name] = len(ids), p.NewSession(codec.Options{WaiveAll: true})
			j.Open(ids[name])
		}
		var found []judge.Violation
		switch now = fmt.Sprint(i + 1); ev.Verb {
		case transcript.Closes, transcript.HalfCloses, transcript.Resets:
			found = j.End(ids[name], ev.From, ev.Verb == transcript.Resets, int64(ev.At))
		default:
			var f codec.Frame
			if _, err := sessions[name].Decode(ev.From, ev.Frame.Raw, &f); err != nil {
				t.Fatalf("%q: %v", ev.Frame.Raw, err)
			}
			found = j.Message(ids[name], &f, int64(ev.At), nil)
		}
		for _, v := range found {
			at := now
			if v.Snapshot != nil {
				at = v.Snapshot.(string)
			}
			if p.Rule(v.Rule) == nil {
				t.Errorf("rule %s is not known", v.Rule)
			}
			all = append(all, at+" "+string(v.Rule))
		}
	}
	return all
}

// verdicts contains conversations, each with the rules that its messages violate.
var verdicts = []struct {
	name     string
	protocol *codec.Protocol
	script   string
	want     string
}{
	{"two workers have a job", gearman.Protocol, `
Worker -> Job Server: CAN_DO f
Worker 2 -> Job Server: CAN_DO f
Worker -> Job Server: GRAB_JOB
Job Server -> Worker: JOB_ASSIGN H:1 f x
Worker 2 -> Job Server: GRAB_JOB
Job Server -> Worker 2: JOB_ASSIGN H:1 f x
Worker 2 -> Job Server: PRE_SLEEP
Worker -> Job Server: WORK_COMPLETE H:1 y
`, "6 gearman.grab.once"},
	{"a lost worker's job", gearman.Protocol, `
Worker -> Job Server: CAN_DO f
Worker 2 -> Job Server: CAN_DO f
Worker -> Job Server: GRAB_JOB
Job Server -> Worker: JOB_ASSIGN H:1 f x
Worker -> Job Server: closes
Worker 2 -> Job Server: GRAB_JOB
Job Server -> Worker 2: JOB_ASSIGN H:1 f x
Worker 2 -> Job Server: WORK_COMPLETE H:1 y
`, ""},
	{"the assignment to a lost worker is heard last", gearman.Protocol, `
Worker -> Job Server: CAN_DO f
Worker 2 -> Job Server: CAN_DO f
Worker -> Job Server: GRAB_JOB
Worker 2 -> Job Server: GRAB_JOB
Worker -> Job Server: half-closes
Job Server -> Worker 2: JOB_ASSIGN H:1 f x
Job Server -> Worker: JOB_ASSIGN H:1 f x
Worker 2 -> Job Server: WORK_COMPLETE H:1 y
`, ""},
	{"a result is heard after what it leads to", gearman.Protocol, `
Client -> Job Server: SUBMIT_JOB f "" x
Worker -> Job Server: CAN_DO f
Worker -> Job Server: GRAB_JOB
Job Server -> Worker: JOB_ASSIGN H:1 f x
Worker -> Job Server: WORK_COMPLETE H:1 y
Job Server -> Client: JOB_CREATED H:1
Job Server -> Client: WORK_COMPLETE H:1 y
`, ""},
	{"results that the worker has not given", gearman.Protocol, `
Client -> Job Server: SUBMIT_JOB f "" x
Job Server -> Client: JOB_CREATED H:1
Worker -> Job Server: CAN_DO f
Worker -> Job Server: GRAB_JOB
Job Server -> Worker: JOB_ASSIGN H:1 f x
Worker -> Job Server: WORK_DATA H:1 a
Job Server -> Client: WORK_DATA H:1 b
Worker -> Job Server: WORK_DATA H:1 c
Job Server -> Client: WORK_DATA H:1 c
Worker -> Job Server: WORK_COMPLETE H:1 y
Job Server -> Client: WORK_COMPLETE H:1 z
Job Server -> Client: WORK_COMPLETE H:1 y
`, "7 gearman.work.data, 11 gearman.work.complete, 12 gearman.work.complete"},
	{"what the client has not asked for", gearman.Protocol, `
Client -> Job Server: SUBMIT_JOB_BG f "" x
Job Server -> Client: JOB_CREATED H:1
Job Server -> Client: JOB_CREATED H:2
Job Server -> Client: WORK_STATUS H:1 1 2
Job Server -> Client: WORK_FAIL H:9
Client -> Job Server: SUBMIT_JOB f "" x
Job Server -> Client: JOB_CREATED H:3
Job Server -> Client: WORK_EXCEPTION H:3 oops
Job Server -> Worker: NOOP
Client -> Job Server: ECHO_REQ a
Job Server -> Client: ECHO_RES b
Client -> Job Server: GET_STATUS H:1
Job Server -> Client: STATUS_RES H:1 0 1 0 0
`, "3 gearman.submit.created, 4 gearman.submit.bg-detached, 5 gearman.submit.created-first, 8 " +
		"gearman.work.exception-unasked, 9 gearman.role.responses, 11 gearman.echo.same-data, 13 gearman.status.unknown"},
	{"a worker's abilities", gearman.Protocol, `
Worker -> Job Server: CAN_DO f
Worker -> Job Server: GRAB_JOB
Worker -> Job Server: CANT_DO f
Job Server -> Worker: JOB_ASSIGN H:1 f x
Worker -> Job Server: GRAB_JOB_UNIQ
Job Server -> Worker: JOB_ASSIGN_UNIQ H:2 f "" x
Worker -> Job Server: GRAB_JOB
Job Server -> Worker: JOB_ASSIGN H:3 g x
Worker -> Job Server: GRAB_JOB
Job Server -> Worker: JOB_ASSIGN_UNIQ H:4 g "" x
Job Server -> Worker: NOOP
Worker -> Job Server: WORK_COMPLETE H:7 y
`, "6 gearman.worker.cant-do, 8 gearman.worker.can-do, 10 gearman.grab.assign, 11 gearman.worker.awake-undisturbed, " +
		"12 gearman.worker.uses-the-handle"},
	{"an error may have answered any of them", gearman.Protocol, `
Worker -> Job Server: CAN_DO f
Worker -> Job Server: GRAB_JOB_ALL
Worker -> Job Server: GRAB_JOB
Job Server -> Worker: ERROR INVALID_COMMAND "none"
Job Server -> Worker: JOB_ASSIGN H:1 f x
`, ""},
	{"jobs that a server may have taken away", gearman.Protocol, `
Worker -> Job Server: CAN_DO f
Worker -> Job Server: GRAB_JOB
Job Server -> Worker: JOB_ASSIGN H:1 f x
Worker -> Job Server: GRAB_JOB
Worker -> Job Server: RESET_ABILITIES
Worker -> Job Server: CAN_DO f
Job Server -> Worker: JOB_ASSIGN H:2 f x
Worker -> Job Server: WORK_COMPLETE H:1 y
Job Server -> Worker: ERROR JOB_NOT_FOUND "none"
Worker 2 -> Job Server: CAN_DO f
Worker 2 -> Job Server: GRAB_JOB
Job Server -> Worker 2: JOB_ASSIGN H:1 f x
Worker 2 -> Job Server: GRAB_JOB
Job Server -> Worker 2: JOB_ASSIGN H:2 f x
Worker 2 -> Job Server: WORK_COMPLETE H:1 y
Worker 2 -> Job Server: WORK_COMPLETE H:2 y
Worker -> Job Server: WORK_COMPLETE H:2 y
Worker -> Job Server: ECHO_REQ a
`, ""},
	{"a job that a worker is given again", gearman.Protocol, `
Worker -> Job Server: CAN_DO f
Worker -> Job Server: GRAB_JOB
Job Server -> Worker: JOB_ASSIGN H:1 f x
Worker -> Job Server: RESET_ABILITIES
Worker -> Job Server: CAN_DO f
Worker -> Job Server: GRAB_JOB
Job Server -> Worker: JOB_ASSIGN H:1 f x
Worker -> Job Server: WORK_COMPLETE H:1 y
Worker -> Job Server: WORK_COMPLETE H:1 y
Worker -> Job Server: WORK_COMPLETE H:1 y
`, "10 gearman.work.final"},
	{"a failure after an exception", gearman.Protocol, `
Worker -> Job Server: CAN_DO f
Worker -> Job Server: GRAB_JOB
Job Server -> Worker: JOB_ASSIGN H:1 f x
Worker -> Job Server: WORK_EXCEPTION H:1 y
Worker -> Job Server: WORK_FAIL H:1
Worker -> Job Server: WORK_DATA H:1 y
`, "5 gearman.work.final, 6 gearman.worker.uses-the-handle"},
	{"a job that is cancelled", gearman.Protocol, `
Client -> Job Server: SUBMIT_JOB f u x
Job Server -> Client: JOB_CREATED H:1
Worker -> Job Server: CAN_DO f
Worker -> Job Server: GRAB_JOB
Job Server -> Worker: JOB_ASSIGN H:1 f x
Admin -> Job Server: cancel-job H:1
Job Server -> Admin: OK
Job Server -> Client: WORK_FAIL H:1
Client -> Job Server: GET_STATUS H:1
Job Server -> Client: STATUS_RES H:1 1 1 0 0
Client -> Job Server: SUBMIT_JOB f u x
Job Server -> Client: JOB_CREATED H:1
Worker -> Job Server: WORK_COMPLETE H:1 y
Job Server -> Client: WORK_COMPLETE H:1 y
`, ""},
	{"a text reply that names a job", gearman.Protocol, `
Admin -> Job Server: show-jobs
Job Server -> Admin: show-jobs-reply H:1 0 0 1
`, ""},
	{"another server, while a peer has not closed", gearman.Protocol, `
Client -> Job Server: SUBMIT_JOB_BG f u x
Job Server -> Client: JOB_CREATED H:1
Worker -> Job Server: CAN_DO f
Worker -> Job Server: GRAB_JOB
Job Server -> Worker: JOB_ASSIGN H:1 f x
Job Server -> Worker: closes
Job Server -> Client: closes
Client 2 -> Job Server: SUBMIT_JOB_BG g v y
Job Server -> Client 2: JOB_CREATED H:1
Worker -> Job Server: WORK_COMPLETE H:1 y
Worker -> Job Server: closes
Client 2 -> Job Server: GET_STATUS H:1
Job Server -> Client 2: STATUS_RES H:1 1 0 0 0
`, ""},

	{"another's job", beanstalk.Protocol, `
Worker -> Server: put 0 0 60 x
Server -> Worker: INSERTED 1
Worker -> Server: reserve
Server -> Worker: RESERVED 1 x
Worker 2 -> Server: delete 1
Server -> Worker 2: DELETED
Worker 2 -> Server: release 1 0 0
Server -> Worker 2: RELEASED
Worker -> Server: touch 1
Server -> Worker: NOT_FOUND
`, "7 beanstalk.client.own-jobs, 8 beanstalk.release.not-found, 6 beanstalk.delete.others-job, 10 " +
		"beanstalk.touch.touched"},
	{"a job that a client has given back", beanstalk.Protocol, `
Worker -> Server: put 0 0 60 x
Server -> Worker: INSERTED 1
Worker -> Server: reserve
Server -> Worker: RESERVED 1 x
Worker -> Server: bury 1 0
Worker -> Server: touch 1
Server -> Worker: BURIED
Server -> Worker: NOT_FOUND
Worker -> Server: release 1 0 0
Server -> Worker: NOT_FOUND
Worker -> Server: delete 1
Server -> Worker: DELETED
Worker -> Server: delete 1
Server -> Worker: NOT_FOUND
`, "6 beanstalk.client.own-jobs, 9 beanstalk.client.own-jobs, 13 beanstalk.client.own-jobs"},
	{"a job that a client still has, because the server refused the release", beanstalk.Protocol, `
Worker -> Server: put 0 0 60 x
Server -> Worker: INSERTED 1
Worker -> Server: reserve
Server -> Worker: RESERVED 1 x
Worker -> Server: release 1 0 0
Server -> Worker: INTERNAL_ERROR
Worker -> Server: release 1 0 0
Worker -> Server: touch 1
Server -> Worker: OUT_OF_MEMORY
Server -> Worker: TOUCHED
Worker -> Server: release 1 0 0
Server -> Worker: RELEASED
`, "8 beanstalk.client.own-jobs"},
	{"a job that a client deletes twice without waiting for the reply", beanstalk.Protocol, `
Worker -> Server: put 0 0 60 x
Server -> Worker: INSERTED 1
Worker -> Server: reserve
Server -> Worker: RESERVED 1 x
Worker -> Server: delete 1
Worker -> Server: delete 1
Server -> Worker: DELETED
Server -> Worker: NOT_FOUND
`, "6 beanstalk.client.own-jobs"},
	{"job IDs with leading zeros", beanstalk.Protocol, `
Worker -> Server: put 0 0 60 x
Server -> Worker: INSERTED 1
Worker -> Server: reserve-job 001
Server -> Worker: RESERVED 1 x
Worker -> Server: touch 01
Server -> Worker: TOUCHED
Worker -> Server: peek 001
Server -> Worker: FOUND 1 x
Worker -> Server: release 01 0 0
Server -> Worker: RELEASED
Worker -> Server: delete 00
Server -> Worker: NOT_FOUND
Worker -> Server: delete 01
Server -> Worker: DELETED
`, ""},
	{"what a client may send about jobs", beanstalk.Protocol, `
Worker -> Server: put 0 0 60 x
Server -> Worker: INSERTED 1
Worker -> Server: delete 9
Server -> Worker: NOT_FOUND
Worker -> Server: reserve-job 1
Worker -> Server: release 1 0 0
Worker -> Server: reserve-job 1
Worker -> Server: touch 1
Server -> Worker: RESERVED 1 x
Server -> Worker: RELEASED
Server -> Worker: RESERVED 1 x
Server -> Worker: TOUCHED
Worker -> Server: release 1 0 0
Server -> Worker: RELEASED
Worker -> Server: delete 1
Server -> Worker: DELETED
`, ""},
	{"a job whose time is over", beanstalk.Protocol, `
Worker -> Server: put 0 0 1 x
Server -> Worker: INSERTED 1
Worker -> Server: reserve
Server -> Worker: RESERVED 1 x
Worker 2 -> Server: reserve
Server -> Worker 2: RESERVED 1 x after 1s
Worker -> Server: delete 1
Server -> Worker: NOT_FOUND
`, ""},
	{"given back while it is given away", beanstalk.Protocol, `
Worker -> Server: put 0 0 60 x
Server -> Worker: INSERTED 1
Worker -> Server: reserve
Server -> Worker: RESERVED 1 x
Worker 2 -> Server: reserve
Worker -> Server: release 1 0 0
Server -> Worker 2: RESERVED 1 x
Server -> Worker: RELEASED
Worker 2 -> Server: delete 1
`, ""},
	{"what else a connection knows", beanstalk.Protocol, `
Worker -> Server: watch a
Server -> Worker: WATCHING 3
Worker -> Server: ignore default
Server -> Worker: WATCHING 1
Worker -> Server: use b
Server -> Worker: USING c
Worker -> Server: reserve-with-timeout 2
Server -> Worker: TIMED_OUT after 1s
Worker -> Server: reserve
Server -> Worker: DEADLINE_SOON
Producer -> Server: put 0 0 9 x
Server -> Producer: INSERTED 5
Producer -> Server: put 0 0 9 x
Server -> Producer: INSERTED 5
Worker -> Server: reserve
Server -> Worker: RESERVED 5 y
`, "2 beanstalk.watch.watching, 6 beanstalk.use.using, 8 beanstalk.reserve.timeout-expires, 10 " +
		"beanstalk.deadline-soon.own-jobs, 14 beanstalk.job.id-unique, 16 beanstalk.body.verbatim, 16 " +
		"beanstalk.ignore.no-more-jobs"},

	{"applications", danga.Protocol, `
Application -> Job Server: job_create_req f "" 0 1 x
Job Server -> Application: job_create_res J:1
Job Server -> Application: job_complete_res 1 0 y
Application 2 -> Job Server: job_create_req f "" 0 1 x
Job Server -> Application 2: job_create_res J:1
`, "3 danga.async.not-streamed, 5 danga.dup.empty-off"},
	{"workers", danga.Protocol, `
Worker -> Job Server: worker_connect f
Worker -> Job Server: job_assign_req
Job Server -> Worker: job_assign_res f x
Worker -> Job Server: job_assign_req
Job Server -> Worker: job_assign_res f y
Worker 2 -> Job Server: worker_connect f
Worker 2 -> Job Server: worker_sleep
Job Server -> Worker 2: noop
Job Server -> Worker 2: noop
Worker 2 -> Job Server: job_complete_announce 0 y
Worker 2 -> Job Server: job_assign_req
Job Server -> Worker 2: job_assign_res g x
`, "5 danga.worker.one-task, 9 danga.sleep.once, 10 danga.complete.no-job, 12 danga.connect.capabilities"},

	{"a worker out of order", gearmonkey.Protocol, `
Worker -> Server: BRPOP_QUEUES f 1
Server -> Worker: POPPED f normal 7
Worker -> Server: HMSET_DONE f 7 success y
Worker -> Server: LPUSH_LOCK f 7 done
Worker -> Server: PUBLISH_FINISH f 7
Worker -> Server: EXPIRE_JOB f 7 90
`, "4 gearmonkey.done.lock, 5 gearmonkey.done.order, 6 gearmonkey.done.expire-job, 6 gearmonkey.done.order"},
	{"an operator may do as it likes", gearmonkey.Protocol, `
Operator -> Server: EXPIRE_JOB f 7 90
Operator -> Server: LPUSH_QUEUE f normal 7
Operator -> Server: LPUSH_QUEUE f normal 7
`, ""},
	{"a client out of order", gearmonkey.Protocol, `
Client -> Server: INCR_UID f
Server -> Client: ID 7
Client -> Server: LPUSH_QUEUE f normal 7
Client -> Server: HMSET_IDLE f 7 x
Client -> Server: LPUSH_QUEUE f normal 7
`, "4 gearmonkey.create.order, 5 gearmonkey.create.once"},
}

// pipelined contains conversations with requests that were sent before the reply that determines whether they are
// allowed. Some of these conversations violate rules, others do not.
var pipelined = []struct {
	name     string
	protocol *codec.Protocol
	script   string
	want     string
}{
	{"to sleep over the answer", gearman.Protocol, `
Worker -> Job Server: CAN_DO f
Worker -> Job Server: GRAB_JOB
Worker -> Job Server: PRE_SLEEP
`, "3 gearman.worker.hears-before-sleep"},
	{"a job without a request, taken for a reply", gearman.Protocol, `
Worker -> Job Server: CAN_DO f
Worker -> Job Server: GRAB_JOB
Job Server -> Worker: JOB_ASSIGN H:1 f x
Job Server -> Worker: JOB_ASSIGN H:2 f x
Worker -> Job Server: WORK_COMPLETE H:1 y
Worker -> Job Server: GRAB_JOB
Worker -> Job Server: WORK_COMPLETE H:2 y
Worker -> Job Server: GRAB_JOB
Job Server -> Worker: NO_JOB
Worker -> Job Server: PRE_SLEEP
Job Server -> Worker: NO_JOB
`, "4 gearman.grab.assign"},
	{"an option and what it is for", gearman.Protocol, `
Client -> Job Server: OPTION_REQ exceptions
Client -> Job Server: SUBMIT_JOB f "" x
Client -> Job Server: SUBMIT_JOB f "" x
Job Server -> Client: OPTION_RES exceptions
Job Server -> Client: JOB_CREATED H:1
Job Server -> Client: JOB_CREATED H:2
`, ""},
	{"to sleep over the answer", danga.Protocol, `
Worker -> Job Server: worker_connect f
Worker -> Job Server: job_assign_req
Worker -> Job Server: worker_sleep
`, "3 danga.sleep.hears-first"},
	{"a noop that may be the answer", danga.Protocol, `
Worker -> Job Server: worker_connect f
Worker -> Job Server: worker_sleep
Worker -> Job Server: job_assign_req
Job Server -> Worker: noop
Worker -> Job Server: worker_sleep
Job Server -> Worker: job_assign_res f x
Worker -> Job Server: job_complete_announce 0 y
Worker -> Job Server: job_assign_req
`, ""},
	{"a noop that came before the question", danga.Protocol, `
Worker -> Job Server: worker_connect f
Worker -> Job Server: job_assign_req
Job Server -> Worker: job_assign_res f x
Job Server -> Worker: noop
Worker -> Job Server: job_complete_announce 0 y
Worker -> Job Server: job_assign_req
Worker -> Job Server: worker_sleep
`, "4 danga.sleep.awake-undisturbed"},
	{"a worker that wakes by itself", danga.Protocol, `
Worker -> Job Server: worker_connect f
Worker -> Job Server: worker_sleep
Worker -> Job Server: job_assign_req
Job Server -> Worker: job_assign_res f x
Worker -> Job Server: job_complete_announce 0 y
`, ""},
	{"a result of what was not given", danga.Protocol, `
Worker -> Job Server: worker_connect f
Worker -> Job Server: job_assign_req
Worker -> Job Server: job_complete_announce 0 y
`, "3 danga.complete.no-job"},
	{"to look on over the answer", gearmonkey.Protocol, `
Worker -> Server: EVALSHA_SCHEDULED 5231827cd49b540660ef44969b38cc858f157824 f 1
Worker -> Server: BRPOP_QUEUES f 1
`, "2 gearmonkey.loop.brpop-on-nil"},
	{"the script and its first run", gearmonkey.Protocol, `
Worker -> Server: SCRIPT_LOAD x
Worker -> Server: EVALSHA_SCHEDULED 5231827cd49b540660ef44969b38cc858f157824 f 1
Worker -> Server: INCR_COUNT f
`, ""},
	{"commands after a body that is refused", beanstalk.Protocol, `
Client -> Server: put 0 0 1 x
Client -> Server: use t
Client -> Server: reserve-with-timeout 0
Client -> Server: delete 1
Server -> Client: JOB_TOO_BIG
Server -> Client: USING t
Server -> Client: TIMED_OUT
Server -> Client: NOT_FOUND
`, ""},
}

// TestPipelined tests that the rules are checked correctly for requests that were sent before the reply that determines
// whether they are allowed.
func TestPipelined(t *testing.T) {
	for _, tt := range pipelined {
		t.Run(tt.protocol.Name+"/"+tt.name, func(t *testing.T) {
			if got := strings.Join(checkWith(t, tt.protocol, tt.script, true), ", "); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// TestVerdicts tests that the checker reports exactly the rules that the messages of each conversation violate.
func TestVerdicts(t *testing.T) {
	for _, tt := range verdicts {
		t.Run(tt.protocol.Name+"/"+tt.name, func(t *testing.T) {
			if got := strings.Join(check(t, tt.protocol, tt.script), ", "); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// TestIncompleteCaptureShowsNoViolation checks that no violations are reported on connections that were not captured
// from their beginning, nor on other connections because of them.
func TestIncompleteCaptureShowsNoViolation(t *testing.T) {
	for _, tt := range verdicts {
		scripts, err := transcript.Parse(tt.protocol, "test", []byte(tt.script))
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, s := range scripts[0].Steps {
			all = append(all, s.Peer.Name)
		}
		if got := check(t, tt.protocol, tt.script, all...); len(got) > 0 {
			t.Errorf("%s: %s", tt.name, got)
		}
	}
	if got := check(t, gearman.Protocol, verdicts[0].script, "Worker"); len(got) > 0 {
		t.Errorf("the first worker's connection was not heard: %s", got)
	}
}

// TestInvalidProgress: after a report without numbers, the messages about the job are still checked, and the server may
// take the job away from the worker.
func TestInvalidProgress(t *testing.T) {
	message := func(magic string, code byte, args ...string) string {
		data := strings.Join(args, "\x00")
		return magic + "\x00\x00\x00" + string(code) + "\x00\x00\x00" + string(byte(len(data))) + data
	}
	const canDo, grab, assign, status, complete = 1, 9, 11, 12, 13
	for _, tt := range []struct {
		last []string
		want codec.RuleID
	}{
		{[]string{message("\x00REQ", complete, "H:1", "y"), message("\x00REQ", complete, "H:1", "y")}, "gearman.work.final"},
		{[]string{message("\x00REQ", complete, "H:1", "y")}, ""},
		{[]string{message("\x00REQ", grab), message("\x00RES", assign, "H:1", "f", "x")}, ""},
	} {
		j := judge.New(gearman.Protocol)
		j.Open(1)
		session := gearman.Protocol.NewSession(codec.Options{})
		got := codec.RuleID("")
		for i, b := range append([]string{message("\x00REQ", canDo, "f"), message("\x00REQ", grab),
			message("\x00RES", assign, "H:1", "f", "x"), message("\x00REQ", status, "H:1", "", "2")}, tt.last...) {
			from := codec.Peer
			if b[:4] == "\x00RES" {
				from = codec.Server
			}
			var f codec.Frame
			_, err := session.Decode(from, []byte(b), &f)
			bad, _ := err.(*codec.Error)
			for _, v := range j.Message(1, &f, int64(i), bad) {
				got = v.Rule
			}
		}
		if got != tt.want {
			t.Errorf("%q: expected %q, got %q", tt.last, tt.want, got)
		}
	}
}
