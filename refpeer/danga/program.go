package danga

import (
	"context"
	"io"
	"strconv"

	protocol "jobwire/codec/danga"
	"jobwire/refpeer/internal/peer"
)

// Drive performs tasks with the program of [Document].
func Drive(ctx context.Context, addr string, tasks io.Reader, answers io.Writer) error {
	return Document().Drive(ctx, addr, tasks, answers)
}

// Document returns a program that behaves as the draft describes. All options have their zero values.
func Document() *peer.Program {
	return &peer.Program{
		Protocol: protocol.Protocol,
		Steps: map[string]peer.Sequence{
			"Submit": {{Do: "job_create_req {QUEUE} {UNIQUE} 0 {TYPE} {PAYLOAD}"}},
			"Status": {{Do: "job_status_req {JOB_ID}"}},
			"Result": {{Do: "job_complete_req {JOB_ID}"}},

			"Start":  {{Do: "worker_connect {QUEUES}..."}},
			"Ask":    {{Do: "job_assign_req"}},
			"Sleep":  {{Do: "worker_sleep"}},
			"Report": {{Do: "job_status_announce 1 2 " + unknownTime, If: peer.Is("HOW", "status")}},
			"End": {
				{Do: "job_complete_announce 0 {RESULT}", If: peer.Not(peer.Is("HOW", "fail"))},
				{Do: "job_complete_announce 1 {RESULT}", If: peer.Is("HOW", "fail")},
			},
			"Leave": {{Do: "worker_disconnect"}},
		},
		Options:  peer.Options{Pipelined: true},
		Defaults: peer.Task{"TYPE": strconv.Itoa(protocol.SyncWait)},
		Tasks: map[string]peer.Verb{
			"create": {Form: "QUEUE PAYLOAD [key=UNIQUE] [handle] [away]", Do: create},
			"batch":  {Form: "QUEUE ...", Do: batch},
			"status": {Form: "JOB_ID", Do: peer.Ask("Status", "job_status_res", 0)},
			"result": {Form: "JOB_ID", Do: peer.Ask("Result", result, 0)},
			"work":   {Form: "QUEUES HOW:echo|reverse|empty|fail|status JOBS:number", Do: peer.Work},
		},
	}
}

var unknownTime = strconv.FormatUint(protocol.UnknownTime, 10)

// result is the type of the reply to a request for a result: the seconds that the job took, or 0, its code, and data.
const result = "job_complete_res"

// unknownJob is the result code for a handle that the server does not know (danga.complete.unknown-handle). For such a
// job, errLost is returned: the server may have been restarted.
const unknownJob = "255"

var errLost = peer.Failure{Words: []string{"other", "the server does not know the job"}}

// create performs the task of submitting a job, and returns its result. With the option "handle" the job is submitted
// as asynchronous; with "away" the server returns no handle, so there is no result.
func create(ctx context.Context, d *peer.Driver, t peer.Task, _ []string) ([]string, error) {
	switch {
	case t["HANDLE"] != "":
		t["TYPE"] = strconv.Itoa(protocol.Async)
	case t["AWAY"] != "":
		t["TYPE"] = strconv.Itoa(protocol.AsyncThrow)
	}
	answer, err := peer.Submit(ctx, d, t, nil)
	if t["AWAY"] != "" {
		return nil, err // there is no handle
	}
	return answer, err
}

// batch performs the task of submitting several jobs at once. It then collects the results by handle, in the order of
// the payloads.
func batch(ctx context.Context, d *peer.Driver, t peer.Task, payloads []string) (answer []string, err error) {
	t["TYPE"] = strconv.Itoa(protocol.Async)
	calls := peer.Calls(t, payloads)
	if err := d.Submit(ctx, calls...); err != nil {
		return nil, err
	}
	for _, job := range calls {
		err := d.With(ctx, job.Task, func(c *peer.Conn) error {
			data, err := collect(ctx, c, job.Task)
			answer = append(answer, data)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return answer, nil
}

// collect asks for the result of a job until it has ended.
func collect(ctx context.Context, c *peer.Conn, t peer.Task) (data string, err error) {
	for ctx.Err() == nil {
		call, err := c.Request("Result", t)
		if err != nil {
			return "", err
		}
		reply := call.Replies[result]
		switch {
		case reply[0] != "0" && reply[1] != "0":
			return "", peer.Failure{Words: append([]string{"failed"}, reply[1:]...)}
		case reply[0] != "0":
			return reply[2], nil
		case reply[1] == unknownJob:
			return "", errLost
		}
		c.Pause(peer.PollTime)
	}
	return "", ctx.Err()
}
