package jobs_test

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"jobwire/codec"
	"jobwire/codec/beanstalk"
	"jobwire/codec/danga"
	"jobwire/codec/gearman"
	"jobwire/codec/gearmonkey"
	"jobwire/pcap"
	"jobwire/pcap/internal/pcaptest"
	"jobwire/pcap/jobs"
)

// stories are conversations with the expected report about their jobs.
var stories = []struct {
	name     string
	protocol *codec.Protocol
	script   string
	want     []string // complete lines or parts of lines
	never    string
}{
	{"a job", gearman.Protocol, `
Client -> Job Server: SUBMIT_JOB reverse "" test
Job Server -> Client: JOB_CREATED H:1
Worker -> Job Server: CAN_DO reverse
Worker -> Job Server: GRAB_JOB after 2s
Job Server -> Worker: JOB_ASSIGN H:1 reverse test
Worker -> Job Server: WORK_COMPLETE H:1 tset after 1s
Job Server -> Client: WORK_COMPLETE H:1 tset
`, []string{"reverse", "1 submitted, 1 assigned, 0 redelivered, 1 completed, 0 failed, 0 not ended", "wait    p50 2.00", "run     p50 1s ", "return  p50 1ms "}, "H:1"},
	{"jobs that are joined", gearman.Protocol, `
Client -> Job Server: SUBMIT_JOB reverse u test
Job Server -> Client: JOB_CREATED H:1
Client 2 -> Job Server: SUBMIT_JOB_BG reverse u test
Job Server -> Client 2: JOB_CREATED H:1
`, []string{"2 submitted, 1 combined with an earlier equal job, 0 assigned", "H:1 at 127.0.0.1:4730: never assigned"}, ""},
	{"a refused one", gearman.Protocol, `
Client -> Job Server: SUBMIT_JOB reverse "" test
Job Server -> Client: ERROR QUEUE_FULL "no room"
`, []string{"1 submitted, 1 refused, 0 assigned"}, ""},
	{"an error that answers another request", gearman.Protocol, `
Client -> Job Server: OPTION_REQ nonsense
Client -> Job Server: SUBMIT_JOB_BG reverse "" test
Job Server -> Client: ERROR UNKNOWN_OPTION "no such option"
Job Server -> Client: JOB_CREATED H:1
`, []string{"1 submitted, 0 assigned", "H:1 at 127.0.0.1:4730: never assigned"}, "refused"},
	{"a worker that is lost", gearman.Protocol, `
Client -> Job Server: SUBMIT_JOB_BG reverse "" test
Job Server -> Client: JOB_CREATED H:1
Worker -> Job Server: GRAB_JOB
Job Server -> Worker: JOB_ASSIGN H:1 reverse test
Worker -> Job Server: closes
Worker 2 -> Job Server: GRAB_JOB
Job Server -> Worker 2: JOB_ASSIGN H:1 reverse test
Worker 2 -> Job Server: WORK_COMPLETE H:1 tset
Worker 2 -> Job Server: WORK_COMPLETE H:1 tset
`, []string{"1 assigned, 1 redelivered, 1 completed", "1 redelivered: the worker's connection ended", "ended more than once", "H:1 at 127.0.0.1:4730: ended 2 times"}, "nobody"},
	{"an end that its worker did not wait to be read", gearman.Protocol, `
Client -> Job Server: SUBMIT_JOB_BG reverse "" test
Job Server -> Client: JOB_CREATED H:1
Worker -> Job Server: GRAB_JOB
Job Server -> Worker: JOB_ASSIGN H:1 reverse test
Worker -> Job Server: WORK_COMPLETE H:1 tset
Worker -> Job Server: resets
Worker 2 -> Job Server: GRAB_JOB
Job Server -> Worker 2: JOB_ASSIGN H:1 reverse test
Worker 2 -> Job Server: WORK_COMPLETE H:1 tset
`, []string{"1 assigned, 1 redelivered, 1 completed", "1 redelivered: the worker's connection ended"}, "ended 2"},
	{"a job that had ended", gearman.Protocol, `
Client -> Job Server: SUBMIT_JOB_BG reverse "" test
Job Server -> Client: JOB_CREATED H:1
Worker -> Job Server: GRAB_JOB
Job Server -> Worker: JOB_ASSIGN H:1 reverse test
Worker -> Job Server: WORK_COMPLETE H:1 tset
Worker -> Job Server: closes
Worker 2 -> Job Server: GRAB_JOB
Job Server -> Worker 2: JOB_ASSIGN H:1 reverse test
`, []string{"1 assigned, 1 redelivered, 1 completed", "assigned again to connection 3: the job had already ended"}, ""},
	{"a worker that is too slow", gearman.Protocol, `
Client -> Job Server: SUBMIT_JOB reverse "" test
Job Server -> Client: JOB_CREATED H:1
Worker -> Job Server: CAN_DO_TIMEOUT reverse 500
Worker -> Job Server: GRAB_JOB
Job Server -> Worker: JOB_ASSIGN H:1 reverse test
Worker 2 -> Job Server: GRAB_JOB after 600ms
Job Server -> Worker 2: JOB_ASSIGN H:1 reverse test
Worker -> Job Server: WORK_COMPLETE H:1 tset
`, []string{"1 redelivered: the time limit of the job had passed", "ended by connection 2, although the server had not assigned it to that connection"}, ""},
	{"a worker that gives its functions up", gearman.Protocol, `
Client -> Job Server: SUBMIT_JOB_BG reverse "" test
Job Server -> Client: JOB_CREATED H:1
Worker -> Job Server: GRAB_JOB
Job Server -> Worker: JOB_ASSIGN H:1 reverse test
Worker -> Job Server: RESET_ABILITIES
Worker -> Job Server: WORK_FAIL H:1
Job Server -> Worker: ERROR JOB_NOT_FOUND "none"
Worker 2 -> Job Server: GRAB_JOB
Job Server -> Worker 2: JOB_ASSIGN H:1 reverse test
Worker 2 -> Job Server: WORK_COMPLETE H:1 tset
`, []string{"1 submitted, 1 assigned, 1 redelivered, 1 completed, 0 failed, 0 not ended", "1 redelivered: the worker had removed the function from its list"}, "ended 2"},
	{"two workers for no reason", gearman.Protocol, `
Worker -> Job Server: GRAB_JOB
Job Server -> Worker: JOB_ASSIGN H:1 reverse test
Worker 2 -> Job Server: GRAB_JOB
Job Server -> Worker 2: JOB_ASSIGN H:1 reverse test
`, []string{"0 submitted, 1 assigned, 1 redelivered", "assigned again to connection 2: unknown reason", "assigned 2 times, never ended; last assigned to connection 2"}, ""},
	{"a client that has gone", gearman.Protocol, `
Client -> Job Server: SUBMIT_JOB reverse "" test
Job Server -> Client: JOB_CREATED H:1
Worker -> Job Server: GRAB_JOB
Job Server -> Worker: JOB_ASSIGN H:1 reverse test
Client -> Job Server: closes
Worker -> Job Server: WORK_EXCEPTION H:1 oops
Worker -> Job Server: WORK_FAIL H:1
`, []string{"0 completed, 1 failed, 1 ended after the client disconnected", "ended after the client that waited for its result had disconnected"}, "ended 2 times"},
	{"a client that is not told", gearman.Protocol, `
Client -> Job Server: SUBMIT_JOB reverse "" test
Job Server -> Client: JOB_CREATED H:1
Worker -> Job Server: GRAB_JOB
Job Server -> Worker: JOB_ASSIGN H:1 reverse test
Worker -> Job Server: WORK_COMPLETE H:1 tset
`, []string{"H:1 at 127.0.0.1:4730: ended, but the server did not send the result to the client that waits for it"}, ""},

	{"tubes and delays", beanstalk.Protocol, `
Producer -> Server: use mail
Producer -> Server: put 0 1 60 hello
Server -> Producer: USING mail
Server -> Producer: INSERTED 1
Worker -> Server: reserve after 3s
Server -> Worker: RESERVED 1 hello
Worker -> Server: release 1 0 1
Server -> Worker: RELEASED
Worker -> Server: reserve after 1s
Server -> Worker: RESERVED 1 hello
Worker -> Server: delete 1
Server -> Worker: DELETED
`, []string{"mail", "1 submitted, 1 assigned, 1 redelivered, 1 released, 1 completed", "1 redelivered: the worker released it", "wait    p50 2.00"}, ""},
	{"a time to run that is over", beanstalk.Protocol, `
Worker -> Server: put 0 0 1 hello
Server -> Worker: INSERTED 1
Worker -> Server: reserve
Server -> Worker: RESERVED 1 hello
Worker -> Server: touch 1 after 700ms
Server -> Worker: TOUCHED
Worker 2 -> Server: reserve
Server -> Worker 2: RESERVED 1 hello after 1100ms
Worker 2 -> Server: delete 2
Server -> Worker 2: NOT_FOUND
`, []string{"default", "1 redelivered: the time limit of the job had passed", "never ended; last assigned to connection 2"}, "delete"},
	{"what was said to a worker that had left", beanstalk.Protocol, `
Worker -> Server: put 0 0 60 hello
Server -> Worker: INSERTED 1
Worker -> Server: reserve
Worker -> Server: half-closes
Worker 2 -> Server: reserve
Server -> Worker 2: RESERVED 1 hello
Worker 2 -> Server: delete 1
Server -> Worker 2: DELETED
Worker 2 -> Server: half-closes
Server -> Worker: RESERVED 1 hello
`, []string{"1 assigned, 1 redelivered, 1 completed", "1 redelivered: the worker's connection ended"}, "though"},
	{"buried and kicked", beanstalk.Protocol, `
Worker -> Server: put 0 0 1 hello
Server -> Worker: INSERTED 1
Worker -> Server: put 0 0 1 hello
Server -> Worker: INSERTED 2
Worker -> Server: put 0 0 1 hello
Server -> Worker: INSERTED 3
Worker -> Server: reserve-job 1
Server -> Worker: RESERVED 1 hello
Worker -> Server: bury 1 0
Server -> Worker: BURIED
Worker -> Server: reserve-job 2
Server -> Worker: RESERVED 2 hello
Worker -> Server: bury 2 0
Server -> Worker: BURIED
Worker -> Server: kick-job 1
Server -> Worker: KICKED_JOB
Worker -> Server: reserve
Server -> Worker: RESERVED 1 hello
Producer -> Server: delete 3
Server -> Producer: DELETED
`, []string{"3 submitted, 2 assigned, 1 redelivered, 2 buried, 1 deleted from the queue", "1 redelivered: the job was kicked", "2 at 127.0.0.1:11300: buried by a worker, and never kicked"}, ""},
	{"a release for which there is no memory", beanstalk.Protocol, `
Worker -> Server: put 0 0 60 hello
Server -> Worker: INSERTED 1
Worker -> Server: reserve
Server -> Worker: RESERVED 1 hello
Worker -> Server: release 1 0 0
Server -> Worker: BURIED
`, []string{"1 assigned, 0 redelivered, 1 buried", "1 at 127.0.0.1:11300: buried by a worker, and never kicked"}, "released"},
	{"a refused body", beanstalk.Protocol, `
Producer -> Server: put 0 0 1 hello
Server -> Producer: DRAINING
`, []string{"1 submitted, 1 refused"}, ""},

	{"a queue in Redis", gearmonkey.Protocol, `
Client -> Server: INCR_UID reverse
Server -> Client: ID 7
Client -> Server: HMSET_IDLE reverse 7 test
Server -> Client: simple OK
Client -> Server: LPUSH_QUEUE reverse normal 7
Server -> Client: integer 1
Client -> Server: BRPOP_LOCK reverse 7 10
Worker -> Server: BRPOP_QUEUES reverse 1
Server -> Worker: POPPED reverse normal 7
Worker -> Server: HMSET_DONE reverse 7 error oops after 2s
Server -> Client: UNLOCKED reverse 7 OK
`, []string{"reverse", "1 submitted, 1 assigned, 0 redelivered, 0 completed, 1 failed", "run     p50 2s ", "return "}, ":7"},
	{"a lost one", gearmonkey.Protocol, `
Client -> Server: LPUSH_QUEUE reverse normal 7
Server -> Client: integer 1
Worker -> Server: BRPOP_QUEUES reverse 1
Server -> Worker: POPPED reverse normal 7
Worker -> Server: closes
`, []string{"reverse:7 at 127.0.0.1:6379: assigned 1 times, never ended"}, ""},

	{"queues and locks of other commands", gearmonkey.Protocol, `
Client -> Server: LPUSH_QUEUE reverse normal 7
Server -> Client: integer 1
Client -> Server: command BRPOP lock:reverse:7 lock:reverse:8 0
Worker -> Server: command BLPOP queue:reverse:urgent queue:reverse:normal 0
Server -> Worker: list queue:reverse:urgent 7
Worker -> Server: HMSET_DONE reverse 7 success ok
Server -> Client: list lock:reverse:7 OK
`, []string{"1 submitted, 1 assigned, 0 redelivered, 1 completed", "return "}, ":7"},
	{"a job whose record is removed", gearmonkey.Protocol, `
Client -> Server: LPUSH_QUEUE reverse normal 7
Server -> Client: integer 1
Worker -> Server: BRPOP_QUEUES reverse 1
Server -> Worker: POPPED reverse normal 7
Worker -> Server: HMSET_DONE reverse 7 success ok
Operator -> Server: DEL_JOB reverse 7
Server -> Operator: integer 1
`, []string{"1 assigned, 0 redelivered, 1 completed, 0 failed, 0 not ended"}, "deleted"},
	{"jobs without handles", danga.Protocol, `
Application -> Job Server: job_create_req reverse "" 0 0 test
Job Server -> Application: job_create_res
Worker -> Job Server: worker_connect reverse
Worker -> Job Server: job_assign_req
Job Server -> Worker: job_assign_res reverse test
Worker -> Job Server: closes
Worker 2 -> Job Server: job_assign_req
Job Server -> Worker 2: job_assign_res reverse test
Worker 2 -> Job Server: job_complete_announce 0 tset
Job Server -> Application: job_complete_res 1 0 tset
`, []string{"1 submitted, 1 assigned, 1 redelivered, 1 completed", "the worker's connection ended", "return "}, "#"},
	{"one that is asked for", danga.Protocol, `
Application -> Job Server: job_create_req reverse "" 0 1 test
Job Server -> Application: job_create_res J:1
Worker -> Job Server: job_assign_req
Job Server -> Worker: job_assign_res reverse test
Worker -> Job Server: job_complete_announce 3 ""
Application -> Job Server: job_complete_req J:1
Job Server -> Application: job_complete_res 1 3 ""
`, []string{"1 assigned, 0 redelivered, 0 completed, 1 failed", "return "}, "#"},
}

// TestJobs tests that the report about the jobs in a capture has the expected lines for each conversation.
func TestJobs(t *testing.T) {
	for _, tt := range stories {
		t.Run(tt.protocol.Name+"/"+tt.name, func(t *testing.T) {
			tracker := jobs.New()
			pcaptest.Decode(t, pcaptest.Capture(t, tt.protocol, tt.script), tracker.Add)
			var out bytes.Buffer
			if err := tracker.Report().WriteText(&out, math.MaxInt); err != nil {
				t.Fatal(err)
			}
			for _, want := range tt.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("%q is missing in\n%s", want, out.String())
				}
			}
			if tt.never != "" && strings.Contains(out.String(), tt.never) {
				t.Errorf("%q is in\n%s", tt.never, out.String())
			}
		})
	}
}

// TestJobsOfHalfACapture checks that events before the beginning of a capture are not reported as missing.
func TestJobsOfHalfACapture(t *testing.T) {
	capture := pcaptest.Capture(t, gearman.Protocol, `
Client -> Job Server: SUBMIT_JOB reverse "" test
Job Server -> Client: JOB_CREATED H:1
Worker -> Job Server: CAN_DO reverse
Worker -> Job Server: GRAB_JOB after 2s
Job Server -> Worker: JOB_ASSIGN H:1 reverse test
Worker -> Job Server: WORK_COMPLETE H:1 tset after 1s
Job Server -> Client: WORK_COMPLETE H:1 tset
`)
	f, err := pcap.NewFile("test", bytes.NewReader(capture))
	if err != nil {
		t.Fatal(err)
	}
	tracker := jobs.New()
	// The requests of the client are not captured, so only the port shows which end of its connection is the server.
	d := pcap.NewDecoder(pcap.Options{Protocol: gearman.Protocol, Ports: []uint16{4730}}, tracker.Add)
	var p pcap.Packet
	for captured := false; f.Next(&p) == nil; {
		if captured = captured || bytes.Contains(p.Data, []byte("reverse\x00test")); captured { // from JOB_ASSIGN on
			d.Packet(&p)
		}
	}
	d.Close()
	r := tracker.Report()
	s := r.Functions["reverse"]
	if s == nil || s.Submitted != 0 || s.Assigned != 1 || s.Completed != 1 {
		t.Fatalf("expected a job that was not submitted, assigned once and completed, got %+v", s)
	}
	if s.Wait.Count() != 0 {
		t.Error("the time until the assignment is measured, although SUBMIT_JOB was not captured")
	}
	if s.Return.Count() != 1 {
		t.Error("the time until the client received the result is not measured")
	}
}

// TestTrace checks that all messages of a job are shown, including those before its handle was known.
func TestTrace(t *testing.T) {
	for _, tt := range []struct {
		protocol *codec.Protocol
		script   string
		job      string
		want     string // types
	}{
		{gearman.Protocol, `
Client -> Job Server: SUBMIT_JOB reverse "" one
Client -> Job Server: SUBMIT_JOB reverse "" two
Job Server -> Client: JOB_CREATED H:1
Job Server -> Client: JOB_CREATED H:2
Worker -> Job Server: GRAB_JOB
Job Server -> Worker: JOB_ASSIGN H:1 reverse one
Client 2 -> Job Server: GET_STATUS H:1
Job Server -> Client 2: STATUS_RES H:1 1 1 0 0
Client 2 -> Job Server: GET_STATUS H:2
Worker -> Job Server: WORK_COMPLETE H:1 eno
Job Server -> Client: WORK_COMPLETE H:1 eno
`, "H:1", "SUBMIT_JOB JOB_CREATED JOB_ASSIGN GET_STATUS STATUS_RES WORK_COMPLETE WORK_COMPLETE"},
		{beanstalk.Protocol, `
Producer -> Server: put 0 0 60 x
Server -> Producer: INSERTED 1
Worker -> Server: reserve
Server -> Worker: RESERVED 1 x
Worker -> Server: delete 2
Server -> Worker: NOT_FOUND
Worker -> Server: delete 1
Server -> Worker: DELETED
`, "1", "put INSERTED RESERVED delete DELETED"},
		{gearmonkey.Protocol, `
Client -> Server: HMSET_IDLE reverse 7 test
Server -> Client: simple OK
Client -> Server: LPUSH_QUEUE reverse normal 7
Server -> Client: integer 1
Client -> Server: LPUSH_QUEUE reverse normal 17
Worker -> Server: BRPOP_QUEUES reverse 1
Server -> Worker: POPPED reverse normal 7
Worker -> Server: EXPIRE_JOB reverse 7 90000
`, "7", "HMSET_IDLE LPUSH_QUEUE POPPED EXPIRE_JOB"},
		{danga.Protocol, `
Application -> Job Server: job_create_req reverse "" 0 1 test
Job Server -> Application: job_create_res J:1
Worker -> Job Server: job_assign_req
Job Server -> Worker: job_assign_res reverse test
Worker -> Job Server: job_complete_announce 0 tset
Application -> Job Server: job_status_req J:1
`, "J:1", "job_create_req job_create_res job_assign_res job_complete_announce job_status_req"},
	} {
		var types []string
		tracker := jobs.New()
		tracker.Trace(tt.job, func(it *pcap.Item) { types = append(types, it.Frame.Type.Name) })
		pcaptest.Decode(t, pcaptest.Capture(t, tt.protocol, tt.script), tracker.Add)
		if got := strings.Join(types, " "); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.protocol.Name, got, tt.want)
		}
	}
}

// TestTimelines checks that the events of the first jobs are returned in order.
func TestTimelines(t *testing.T) {
	tracker := jobs.New()
	tracker.KeepTimelines(1)
	pcaptest.Decode(t, pcaptest.Capture(t, gearman.Protocol, stories[0].script+`
Client -> Job Server: SUBMIT_JOB reverse "" test
Job Server -> Client: JOB_CREATED H:2
`), tracker.Add)
	lives, more := tracker.Timelines()
	if len(lives) != 1 || more != 1 {
		t.Fatalf("%d lives, and %d more", len(lives), more)
	}
	var what []string
	for _, s := range lives[0].Stages {
		what = append(what, s.What)
	}
	if got := strings.Join(what, ", "); got != "submitted, created, assigned, completed, result delivered" || lives[0].Handle != "H:1" || lives[0].Function != "reverse" {
		t.Errorf("%+v", lives[0])
	}
}
