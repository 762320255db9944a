package audit

import (
	"strings"
	"testing"
	"time"

	"jobwire/codec"
	"jobwire/codec/beanstalk"
	"jobwire/codec/danga"
	"jobwire/codec/gearman"
	"jobwire/codec/transcript"
	"jobwire/play"
)

// TestOnlyCheckedRulesCountAsExercised: a rule counts as exercised only if the traffic could be checked against it.
func TestOnlyCheckedRulesCountAsExercised(t *testing.T) {
	tests := []struct {
		name     string
		protocol *codec.Protocol
		wire     string
		done     string // rules that were exercised
		not      string
	}{
		{"one job", gearman.Protocol, `
Client -> Job Server: SUBMIT_JOB f u x
Job Server -> Client: JOB_CREATED H:1
`, "submit.created args.missing handle.not-empty", "submit.handles-distinct submit.coalesce submit.empty-unique " +
			"submit.unique-per-function submit.unique-reusable submit.order worker.can-do number.decimal"},
		{"the same job twice, and elsewhere", gearman.Protocol, `
Client -> Job Server: SUBMIT_JOB f u x
Client -> Job Server: SUBMIT_JOB f u x
Job Server -> Client: JOB_CREATED H:1
Job Server -> Client: JOB_CREATED H:1
Client -> Job Server: SUBMIT_JOB g u x
Job Server -> Client: JOB_CREATED H:2
`, "submit.handles-distinct submit.coalesce submit.unique-per-function", "submit.unique-reusable submit.empty-unique " +
			"submit.coalesce-workload submit.order"},
		{"two jobs at a time, of which one is assigned", gearman.Protocol, `
Client -> Job Server: SUBMIT_JOB f "" x
Client -> Job Server: SUBMIT_JOB f "" y
Job Server -> Client: JOB_CREATED H:1
Job Server -> Client: JOB_CREATED H:2
Worker -> Job Server: CAN_DO f
Worker -> Job Server: GRAB_JOB
Job Server -> Worker: JOB_ASSIGN H:2 f y
`, "submit.handles-distinct submit.empty-unique submit.order worker.can-do grab.assign grab.once",
			"submit.opaque-workload worker.cant-do grab.assign-unique"},
		{"the same job when it is done", gearman.Protocol, `
Client -> Job Server: SUBMIT_JOB f u x
Job Server -> Client: JOB_CREATED H:1
Job Server -> Client: WORK_COMPLETE H:1 y
Client -> Job Server: SUBMIT_JOB f u x
Job Server -> Client: JOB_CREATED H:2
Client -> Job Server: GET_STATUS H:1
Job Server -> Client: STATUS_RES H:1 0 0 0 0
`, "submit.unique-reusable status.finished status.answered", "submit.coalesce submit.unique-per-function " +
			"status.unknown status.running"},
		{"one tube", beanstalk.Protocol, `
Client -> Server: use a
Server -> Client: USING a
Client -> Server: put 0 0 1 x
Server -> Client: INSERTED 1
Client -> Server: watch a
Server -> Client: WATCHING 2
Client -> Server: reserve
Server -> Client: RESERVED 1 x
`, "use.using watch.watching body.verbatim", "tube.separate tube.default-used list.used watch.twice job.id-unique " +
			"job.exclusive ignore.last"},
		{"a job of type 1", danga.Protocol, `
Application -> Job Server: job_create_req f "" 0 1 x
Job Server -> Application: job_create_res J:1
`, "async.handle create.answered handle.not-empty args.trailing-nul", "async.handles-distinct dup.empty-off " +
			"dup.per-name create.answered-first sync.one-at-a-time"},
		{"jobs of type 0 and 1", danga.Protocol, `
Application -> Job Server: job_create_req f k 0 1 x
Job Server -> Application: job_create_res J:1
Application -> Job Server: job_create_req g k 0 1 x
Job Server -> Application: job_create_res J:2
Application -> Job Server: job_create_req g "" 0 0 x
Job Server -> Application: job_create_res
`, "async.handles-distinct dup.per-name create.answered-first sync.one-at-a-time", "dup.empty-off throwaway.silent"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			scripts, err := transcript.Parse(tt.protocol, "test.wire", []byte(tt.wire))
			if err != nil {
				t.Fatal(err)
			}
			events, err := play.Encode(scripts[0], time.Unix(0, 0), false)
			if err != nil {
				t.Fatal(err)
			}
			a := New(Options{Protocol: tt.protocol, Server: true})
			l := a.open()
			for _, ev := range events {
				a.observe(l, ev.From, ev.Frame.Raw)
			}
			times := map[string]int{}
			for _, st := range a.Report().Rules {
				times[strings.TrimPrefix(string(st.Rule.ID), tt.protocol.Name+".")] += st.Applied()
			}
			for id := range strings.FieldsSeq(tt.done) {
				if times[id] == 0 {
					t.Errorf("%s is not exercised", id)
				}
			}
			for id := range strings.FieldsSeq(tt.not) {
				n, listed := times[id]
				if n > 0 || !listed {
					t.Errorf("%s: %d times, listed: %t", id, n, listed)
				}
			}
		})
	}
}
