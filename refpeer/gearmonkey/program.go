package gearmonkey

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	protocol "jobwire/codec/gearmonkey"
	"jobwire/refpeer/internal/peer"
)

// grace is how long a worker may take to exit cleanly after the context of Drive has ended.
const grace = 3 * time.Second

// Drive performs tasks with the program of [Document].
func Drive(ctx context.Context, addr string, tasks io.Reader, answers io.Writer) error {
	return Document().Drive(ctx, addr, tasks, answers)
}

// Document returns a program that follows the specification.
func Document() *peer.Program {
	load := peer.Sequence{{Do: "SCRIPT_LOAD {SCRIPT}", Then: takeSHA1}}
	return &peer.Program{
		Protocol:   protocol.Protocol,
		Sequential: true,
		Grace:      grace,
		Steps: map[string]peer.Sequence{
			"Run": {
				{Do: "GET_COUNT {QUEUE}", If: peer.Has("ROLLCALL"), Then: registered},
				{Do: "INCR_UID {QUEUE}", Then: takeNewID},
				{Do: "HMSET_IDLE {QUEUE} {JOB_ID} {PAYLOAD}", Then: saysOK},
				{Do: "PUBLISH_CREATE {QUEUE} {JOB_ID}", Then: counts},
				{Do: "ZADD_SCHEDULED {QUEUE} {SCHEDULED} {JOB_ID}", If: peer.Is("PRIO", protocol.Scheduled), Then: counts},
				{Do: "LPUSH_QUEUE {QUEUE} {PRIO} {JOB_ID}", If: peer.Not(peer.Is("PRIO", protocol.Scheduled)), Then: counts},
				{Do: "BRPOP_LOCK {QUEUE} {JOB_ID} {TIMEOUT}", If: peer.Has("TIMEOUT"), Then: unlocked},
			},
			"Get":   {{Do: "HGETALL_JOB {QUEUE} {JOB_ID}", Then: takeJob}},
			"Start": load,
			"Enter": {{Do: "INCR_COUNT {QUEUE}", Then: counts}},
			"Ask": {
				{Do: "begin", Local: begin},
				{Do: "EVALSHA_SCHEDULED {SHA1} {QUEUE} {DATE}", Then: taken("DUE"), For: "NOSCRIPT", Cure: load},
				{Do: "BRPOP_QUEUES {QUEUE} 1", If: peer.Not(peer.Has("JOB_ID")), Then: taken("POPPED")},
			},
			"End": {
				{Do: "PUBLISH_START {QUEUE} {JOB_ID}", Then: counts},
				{Do: "HMSET_BUSY {QUEUE} {JOB_ID}", Then: saysOK},
				// The specification does not say how a worker reads the input.
				{Do: "HGET_INPUT {QUEUE} {JOB_ID}", Then: takeInput},
				{Do: "HMSET_PROGRESS {QUEUE} {JOB_ID} 1 2", If: reports, Then: updated},
				{Do: "work", Local: work},
				{Do: "HMSET_DONE {QUEUE} {JOB_ID} {STATUS} {RESULT}", Then: saysOK},
				{Do: "EXPIRE_JOB {QUEUE} {JOB_ID} 90000", Then: counts},
				{Do: "PUBLISH_FINISH {QUEUE} {JOB_ID}", Then: counts},
				{Do: "LPUSH_LOCK {QUEUE} {JOB_ID} OK", Then: counts},
				{Do: "EXPIRE_LOCK {QUEUE} {JOB_ID} 10", Then: counts},
			},
			"Exit": {{Do: "DECR_COUNT {QUEUE}", Then: counts}},
		},
		Defaults: peer.Task{"PRIO": protocol.Normal, "SCHEDULED": "0", "SCRIPT": protocol.Script},
		Tasks: map[string]peer.Verb{
			"run": {Form: "QUEUE PAYLOAD [priority=PRIO:low|normal|high|scheduled] [at=SCHEDULED:number] " +
				"[blocking=TIMEOUT:number] [rollcall]", Do: run},
			"get":  {Form: "QUEUE JOB_ID:number", Do: get},
			"work": {Form: "QUEUES HOW:echo|fail|progress|empty|reverse JOBS:number", Do: peer.Work},
		},
		Refusal: refusal,
	}
}

func run(ctx context.Context, d *peer.Driver, t peer.Task, _ []string) ([]string, error) {
	if t["SCHEDULED"] != "0" && t["PRIO"] != protocol.Scheduled {
		return nil, fmt.Errorf("%w: a time was given, but the priority is %s, not scheduled", peer.ErrUsage, t["PRIO"])
	}
	answer, err := peer.Ask("Run", "", 0)(ctx, d, t, nil)
	return append(answer, t["JOB_ID"]), err
}

// get performs the task of reading a job. It returns the status, the output, and then the name and value of each other
// field of FIELDS that the job has.
func get(ctx context.Context, d *peer.Driver, t peer.Task, _ []string) ([]string, error) {
	_, err := peer.Ask("Get", "", 0)(ctx, d, t, nil)
	answer := []string{t["job.status"], t["job.output"]}
	for _, name := range strings.Split(t["FIELDS"], "\x00") {
		if value, has := t["job."+name]; has && name != "status" && name != "output" {
			answer = append(answer, name, value)
		}
	}
	return answer, err
}

// begin prepares a task for the next job.
func begin(_ *peer.Conn, t peer.Task) error {
	t["PAYLOAD"], t["LOST"], t["FAILED"], t["DATE"] = "", "", "", strconv.FormatInt(time.Now().Unix(), 10)
	return nil
}

// reports is the condition that the worker reports progress.
func reports(t peer.Task) bool { return t["HOW"] == "progress" && t["LOST"] == "" }

// work sets the status and the output of a job.
func work(_ *peer.Conn, t peer.Task) error {
	t["STATUS"], t["RESULT"] = protocol.StatusSuccess, peer.Results[t["HOW"]](t["PAYLOAD"])
	switch {
	case t["LOST"] != "":
		t["STATUS"], t["RESULT"] = protocol.StatusError, "the job has no input"
	case t["FAILED"] != "":
		t["STATUS"], t["RESULT"] = protocol.StatusError, t["FAILED"]
	case t["HOW"] == "fail":
		t["STATUS"], t["RESULT"] = protocol.StatusError, t["PAYLOAD"]
	}
	return nil
}
