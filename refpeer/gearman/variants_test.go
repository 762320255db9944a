package gearman_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"testing"
	"time"

	_ "jobwire/catalog" // registers the scenarios
	"jobwire/codec"
	"jobwire/refpeer/internal/drivetest"
	"jobwire/refpeer/internal/peer"
)

// variants are correct clients and workers. Each uses a freedom of the protocol that the reference client or worker does not
// use.
var variants = []drivetest.Variant{
	{Name: "reference", Role: "Client", Edit: func(*peer.Program) {}},
	{Name: "one connection per job", Role: "Client", Edit: func(p *peer.Program) { p.PerTask = true }},
	{Name: "waits for each JOB_CREATED", Role: "Client", Edit: func(p *peer.Program) { p.Waits = true }},
	{Name: "asks for the status while it waits", Role: "Client", Edit: func(p *peer.Program) {
		p.Steps["Created"] = peer.Sequence{{Do: "GET_STATUS {JOB_ID}"}, {Do: "GET_STATUS_UNIQUE {UNIQUE}"}, {Do: "GET_STATUS {JOB_ID}"}}
	}},
	{Name: "asks for the status while it waits, one submission at a time", Role: "Client", Edit: func(p *peer.Program) {
		p.Waits, p.Steps["Created"] = true, peer.Sequence{{Do: "GET_STATUS {JOB_ID}"}, {Do: "GET_STATUS_UNIQUE {UNIQUE}"}}
	}},
	{Name: "ECHO_REQ as keep-alive", Role: "Client", Edit: func(p *peer.Program) {
		p.Steps["Submit"] = append(peer.Sequence{{Do: "ECHO_REQ alive"}}, p.Steps["Submit"]...)
		p.Steps["Created"] = peer.Sequence{{Do: "ECHO_REQ alive"}, {Do: "ECHO_REQ {PAYLOAD}"}}
	}},
	{Name: "text commands between packets", Role: "Client", Edit: func(p *peer.Program) {
		p.Steps["Submit"] = append(peer.Sequence{{Do: "version"}, {Do: "workers"}}, p.Steps["Submit"]...)
		p.Steps["Created"] = peer.Sequence{{Do: "status"}, {Do: "prioritystatus"}, {Do: "show-jobs"}, {Do: "show-unique-jobs"}, {Do: "getpid"}}
	}},
	{Name: "sets the option exceptions before each job", Role: "Client", Edit: func(p *peer.Program) {
		p.Steps["Submit"] = append(peer.Sequence{{Do: "OPTION_REQ exceptions"}}, p.Steps["Submit"]...)
	}},
	{Name: "unique IDs of many lengths", Role: "Client", Edit: func(p *peer.Program) {
		n := 0
		unique(p, func(peer.Task) string { n++; return fmt.Sprintf("%0*d", 4+n*n%252, n) })
	}},
	{Name: "submits each job twice with one unique ID", Role: "Client", Edit: func(p *peer.Program) {
		p.Doubles = true
		unique(p, func(t peer.Task) string { return fmt.Sprint(crc32.ChecksumIEEE([]byte(t["PAYLOAD"]))) })
	}},
	{Name: "submits each job twice, at its own pace, with its workload as the unique ID", Role: "Client", Edit: func(p *peer.Program) {
		p.Doubles, p.Waits = true, true
		unique(p, func(peer.Task) string { return "-" })
	}},
	{Name: "jobs with reducers", Role: "Client", Edit: func(p *peer.Program) {
		reduce := strings.NewReplacer("SUBMIT_JOB_BG {QUEUE} {UNIQUE}", "SUBMIT_REDUCE_JOB_BACKGROUND {QUEUE} {UNIQUE} sum 0", "SUBMIT_JOB {QUEUE} {UNIQUE}", "SUBMIT_REDUCE_JOB {QUEUE} {UNIQUE} sum 0")
		submissions(p, reduce.Replace)
	}},
	{Name: "background jobs with an earliest start in the past", Role: "Client", Edit: func(p *peer.Program) {
		submissions(p, strings.NewReplacer("SUBMIT_JOB_BG {QUEUE} {UNIQUE}", "SUBMIT_JOB_EPOCH {QUEUE} {UNIQUE} 0").Replace)
	}},
	{Name: "all jobs with high or low priority", Role: "Client", Edit: func(p *peer.Program) {
		submissions(p, strings.NewReplacer("SUBMIT_JOB ", "SUBMIT_JOB_HIGH ", "SUBMIT_JOB_BG ", "SUBMIT_JOB_LOW_BG ").Replace)
	}},
	{Name: "writes of 6 bytes", Role: "Client", Edit: func(p *peer.Program) { p.Pieces = 6 }},
	{Name: "writes of one byte", Role: "Client", Edit: func(p *peer.Program) { p.Pieces = 1 }},
	{Name: "connects again after JOB_CREATED", Role: "Client", Edit: func(p *peer.Program) { p.Drops = true }},
	{Name: "connects again after JOB_CREATED, with unique IDs", Role: "Client", Edit: func(p *peer.Program) {
		p.Drops = true
		unique(p, func(t peer.Task) string { return fmt.Sprint(crc32.ChecksumIEEE([]byte(t["PAYLOAD"]))) })
	}},

	{Name: "reference", Role: "Worker", Edit: func(*peer.Program) {}},
	{Name: "polls", Role: "Worker", Edit: func(p *peer.Program) { p.Polls = true }},
	{Name: "GRAB_JOB", Role: "Worker", Edit: func(p *peer.Program) { p.Steps["Ask"] = peer.Sequence{{Do: "GRAB_JOB"}} }},
	{Name: "all requests for jobs in turn", Role: "Worker", Edit: func(p *peer.Program) {
		n := 0
		turn := func(k int) func(peer.Task) bool { return func(peer.Task) bool { return n%3 == k } }
		p.Steps["Ask"] = peer.Sequence{{Do: "GRAB_JOB", If: func(t peer.Task) bool { n++; return turn(0)(t) }}, {Do: "GRAB_JOB_ALL", If: turn(1)}, {Do: "GRAB_JOB_UNIQ", If: turn(2)}}
	}},
	{Name: "RESET_ABILITIES and ALL_YOURS at the start", Role: "Worker", Edit: func(p *peer.Program) {
		p.Steps["Start"] = peer.Sequence{{Do: "RESET_ABILITIES"}, {Do: "ALL_YOURS"}, {Do: "OPTION_REQ exceptions"}}
	}},
	{Name: "registers, removes and registers its functions", Role: "Worker", Edit: func(p *peer.Program) {
		p.Steps["Enter"] = append(append(slices.Clone(p.Steps["Enter"]), peer.Step{Do: "CANT_DO {QUEUE}"}, peer.Step{Do: "CANT_DO never.registered"}), p.Steps["Enter"]...)
	}},
	{Name: "CAN_DO_TIMEOUT 0", Role: "Worker", Edit: func(p *peer.Program) {
		p.Steps["Enter"] = peer.Sequence{{Do: "CAN_DO_TIMEOUT {QUEUE} 60000"}, {Do: "CAN_DO_TIMEOUT {QUEUE} 0"}}
	}},
	{Name: "CAN_DO_TIMEOUT with long limits", Role: "Worker", Edit: func(p *peer.Program) {
		p.Steps["Enter"] = peer.Sequence{{Do: "CAN_DO {QUEUE}"}, {Do: "CAN_DO_TIMEOUT {QUEUE} 600000"}}
	}},
	{Name: "sets its client ID early and again for each job", Role: "Worker", Edit: func(p *peer.Program) {
		p.Steps["Start"] = peer.Sequence{{Do: "SET_CLIENT_ID first"}, {Do: "SET_CLIENT_ID second"}}
		p.Steps["Ask"] = append(p.Steps["Ask"], peer.Step{Do: "SET_CLIENT_ID after.asking"})
		p.Steps["Report"] = append(peer.Sequence{{Do: "SET_CLIENT_ID {JOB_ID}"}}, p.Steps["Report"]...)
	}},
	{Name: "PRE_SLEEP twice", Role: "Worker", Edit: func(p *peer.Program) { p.Steps["Sleep"] = append(p.Steps["Sleep"], p.Steps["Sleep"]...) }},
	{Name: "PRE_SLEEP before it registers and asks", Role: "Worker", Edit: func(p *peer.Program) { p.Steps["Start"] = peer.Sequence{{Do: "PRE_SLEEP"}} },
		Violates: map[codec.RuleID]string{"gearman.worker.asks-before-sleep": "The specification does not order the requests, and the worker asks afterwards."}},
	{Name: "GRAB_JOB and PRE_SLEEP together", Role: "Worker", Edit: func(p *peer.Program) {
		p.Steps["Ask"], p.Steps["Sleep"] = append(p.Steps["Ask"], p.Steps["Sleep"]...), nil
	},
		Violates: map[codec.RuleID]string{"gearman.worker.hears-before-sleep": "The specification does not require to wait for a reply. The server wakes the worker if it has a job."}},
	{Name: "asks again by itself while it sleeps", Role: "Worker", Edit: func(p *peer.Program) { p.SleepLimit = 15 * time.Millisecond }},
	{Name: "polls one connection per function", Role: "Worker", Edit: func(p *peer.Program) { p.PerQueue = true }},
	{Name: "one connection per job", Role: "Worker", Edit: func(p *peer.Program) { p.PerJob = true }},
	{Name: "closes the connection with a job and connects again", Role: "Worker", Edit: func(p *peer.Program) { p.Drops = true }},
	{Name: "closes the connection with a job, one connection per job", Role: "Worker", Edit: func(p *peer.Program) { p.Drops, p.PerJob = true, true }},
	{Name: "takes two jobs and ends the second first", Role: "Worker", Edit: func(p *peer.Program) { p.MaxJobs = 2 }},
	{Name: "takes all jobs before it ends one", Role: "Worker", Edit: func(p *peer.Program) { p.MaxJobs, p.Pipelined = 100, true }},
	{Name: "the end of a job and the next request together", Role: "Worker", Edit: func(p *peer.Program) { p.Pipelined = true }},
	{Name: "ECHO_REQ as keep-alive", Role: "Worker", Edit: func(p *peer.Program) {
		ping := peer.Step{Do: "ECHO_REQ alive"}
		p.Steps["Start"], p.Steps["Ask"], p.Steps["Sleep"] = peer.Sequence{ping}, peer.Sequence{ping, p.Steps["Ask"][0], ping}, peer.Sequence{ping, p.Steps["Sleep"][0], ping}
		p.Steps["Report"], p.Steps["End"] = append(peer.Sequence{ping}, p.Steps["Report"]...), append(append(peer.Sequence{ping}, p.Steps["End"]...), ping)
	}},
	{Name: "text commands between packets", Role: "Worker", Edit: func(p *peer.Program) {
		p.Steps["Start"] = peer.Sequence{{Do: "version"}}
		p.Steps["Ask"] = append(peer.Sequence{{Do: "status"}}, p.Steps["Ask"]...)
		p.Steps["Report"] = append(peer.Sequence{{Do: "workers"}, {Do: "show-jobs"}}, p.Steps["Report"]...)
	}},
	{Name: "many reports in any order", Role: "Worker", Edit: func(p *peer.Program) {
		more := func(t peer.Task) bool {
			return slices.Contains([]string{"reverse", "echo", "empty", "fail", "exception"}, t["HOW"])
		}
		for _, do := range []string{"WORK_STATUS {JOB_ID} 0 0", "WORK_DATA {JOB_ID} part", "WORK_WARNING {JOB_ID} careful", "WORK_STATUS {JOB_ID} 7 3", "WORK_WARNING {JOB_ID} {PAYLOAD}",
			"WORK_DATA {JOB_ID} {PAYLOAD}", "WORK_STATUS {JOB_ID} 18446744073709551615 1", "WORK_STATUS {JOB_ID} 1 3", "WORK_STATUS {JOB_ID} 007 008", "WORK_STATUS {JOB_ID} 100 100"} {
			p.Steps["Report"] = append(p.Steps["Report"], peer.Step{Do: do, If: more})
		}
	}},
	{Name: "reports progress as percentage, and the end of each job", Role: "Worker", Edit: func(p *peer.Program) {
		p.Steps["Report"][len(p.Steps["Report"])-1].Do = "WORK_STATUS {JOB_ID} 50 100"
		p.Steps["Report"] = append(p.Steps["Report"], peer.Step{Do: "WORK_STATUS {JOB_ID} 100 100"})
	}},
	{Name: "fails with WORK_EXCEPTION", Role: "Worker", Edit: func(p *peer.Program) { p.Steps["End"][0].Do = "WORK_EXCEPTION {JOB_ID} broken" }},
	{Name: "removes the function while it does a job", Role: "Worker", Edit: func(p *peer.Program) {
		p.Steps["Report"] = append(peer.Sequence{{Do: "CANT_DO {QUEUE}"}}, p.Steps["Report"]...)
		p.Steps["End"] = append(p.Steps["End"], peer.Step{Do: "CAN_DO {QUEUE}"})
	}},
	{Name: "writes of 6 bytes", Role: "Worker", Edit: func(p *peer.Program) { p.Pieces = 6 }},
	{Name: "writes of one byte", Role: "Worker", Edit: func(p *peer.Program) { p.Pieces, p.Pipelined = 1, true }},
}

// submissions edits all submissions of a program.
func submissions(p *peer.Program, edit func(do string) string) {
	for i := range p.Steps["Submit"] {
		p.Steps["Submit"][i].Do = edit(p.Steps["Submit"][i].Do)
	}
}

// unique sets the unique ID, the second argument, of all submissions that have none.
func unique(p *peer.Program, id func(peer.Task) string) {
	const header, length = 12, 8 // the size of a header, and where it contains the length of the arguments
	for i := range p.Steps["Submit"] {
		if strings.HasPrefix(p.Steps["Submit"][i].Do, "OPTION_REQ") {
			continue
		}
		p.Steps["Submit"][i].Raw = func(t peer.Task, b []byte) []byte {
			args := bytes.SplitN(b[header:], []byte{0}, 3)
			if len(args[1]) == 0 {
				args[1] = []byte(id(t))
			}
			data := bytes.Join(args, []byte{0})
			binary.BigEndian.PutUint32(b[length:], uint32(len(data)))
			return append(b[:header:header], data...)
		}
	}
}

// TestVariants: all correct clients and workers pass under all fault profiles, and violate no rule.
func TestVariants(t *testing.T) { bench.Variants(t, 20, variants) }
