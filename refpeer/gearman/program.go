package gearman

import (
	"context"
	"io"

	"jobwire/codec"
	protocol "jobwire/codec/gearman"
	"jobwire/refpeer/internal/peer"
)

// Drive performs tasks with the program of [Document].
func Drive(ctx context.Context, addr string, tasks io.Reader, answers io.Writer) error {
	return Document().Drive(ctx, addr, tasks, answers)
}

// Document returns a program that follows the specification, without options.
func Document() *peer.Program {
	submit := peer.Sequence{{Do: "OPTION_REQ exceptions", If: peer.Has("EXCEPTIONS")}}
	for _, level := range [][2]string{{"normal", ""}, {"high", "_HIGH"}, {"low", "_LOW"}} {
		for _, bg := range []string{"", "_BG"} {
			step := peer.Step{Do: "SUBMIT_JOB" + level[1] + bg + " {QUEUE} {UNIQUE} {PAYLOAD}", If: func(t peer.Task) bool {
				return t["AT"]+t["SCHEDULE"] == "" && t["PRIORITY"] == level[0] && (t["BACKGROUND"] != "") == (bg != "")
			}}
			submit = append(submit, step)
		}
	}
	return &peer.Program{
		Protocol: protocol.Protocol,
		Steps: map[string]peer.Sequence{
			"Submit": append(submit,
				peer.Step{Do: "SUBMIT_JOB_EPOCH {QUEUE} {UNIQUE} {AT} {PAYLOAD}", If: peer.Has("AT")},
				peer.Step{Do: "SUBMIT_JOB_SCHED {QUEUE} {UNIQUE} {SCHEDULE}... {PAYLOAD}", If: peer.Has("SCHEDULE")}),
			"Status": {{Do: "GET_STATUS {JOB_ID}"}},
			"Echo":   {{Do: "ECHO_REQ {PAYLOAD}"}},
			"Enter": {
				{Do: "SET_CLIENT_ID {ID}", If: peer.Has("ID")},
				{Do: "CAN_DO {QUEUE}", If: peer.Not(peer.Has("LIMIT"))},
				{Do: "CAN_DO_TIMEOUT {QUEUE} {LIMIT}", If: peer.Has("LIMIT")},
			},
			"Ask":   {{Do: "GRAB_JOB_UNIQ"}},
			"Sleep": {{Do: "PRE_SLEEP"}},
			"Report": {
				{Do: "WORK_DATA {JOB_ID} {PAYLOAD}", If: peer.Is("HOW", "data")},
				{Do: "WORK_WARNING {JOB_ID} {PAYLOAD}", If: peer.Is("HOW", "warning")},
				{Do: "WORK_STATUS {JOB_ID} 1 2", If: peer.Is("HOW", "status")},
			},
			"End": {
				{Do: "WORK_FAIL {JOB_ID}", If: peer.Is("HOW", "fail")},
				{Do: "WORK_EXCEPTION {JOB_ID} {RESULT}", If: peer.Is("HOW", "exception")},
				{Do: "WORK_COMPLETE {JOB_ID} {RESULT}", If: peer.Not(peer.Is("HOW", "fail exception"))},
			},
		},
		Defaults: peer.Task{"PRIORITY": "normal"},
		Tasks: map[string]peer.Verb{
			"submit": {Form: "QUEUE PAYLOAD [unique=UNIQUE] [priority=PRIORITY:low|normal|high] [at=AT] [schedule=SCHEDULE] " +
				"[background] [exceptions] [timeout=LIMIT:number] [nil]", Do: peer.Submit},
			"batch":  {Form: "QUEUE ...", Do: batch},
			"status": {Form: "JOB_ID", Do: peer.Ask("Status", "STATUS_RES", 1)},
			"echo":   {Form: "PAYLOAD", Do: peer.Ask("Echo", "ECHO_RES", 0)},
			"work": {Form: "QUEUES HOW:echo|reverse|empty|fail|exception|data|warning|status JOBS:number " +
				"[timeout=LIMIT] [id=ID]", Do: peer.Work},
		},
		Refusal: func(m *codec.Message) peer.Failure {
			return peer.Failure{Code: m.Type.Name, Words: append([]string{"server"}, peer.Texts(m)...)}
		},
	}
}

// batch performs the task of submitting several jobs at once, and returns their results in the order of the payloads.
func batch(ctx context.Context, d *peer.Driver, t peer.Task, payloads []string) (answer []string, err error) {
	calls := peer.Calls(t, payloads)
	if err := d.Submit(ctx, calls...); err != nil {
		return nil, err
	}
	for _, job := range calls {
		answer = append(answer, job.Task["RESULT"])
	}
	return answer, nil
}
