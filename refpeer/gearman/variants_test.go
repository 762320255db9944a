package gearman_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	_ "jobwire/catalog" // registers the scenarios
	"jobwire/codec"
	"jobwire/refpeer/gearman"
	"jobwire/refpeer/internal/drivetest"
)

type (
	program  = gearman.Program
	sequence = gearman.Sequence
)

// variants are correct clients and workers. Each uses a freedom of the protocol that the reference client or worker does not
// use.
var variants = []drivetest.Variant[program]{
	{Name: "reference", Role: "Client", Edit: func(*program) {}},
	{Name: "one connection per job", Role: "Client", Edit: func(p *program) { p.PerTask = true }},
	{Name: "waits for each JOB_CREATED", Role: "Client", Edit: func(p *program) { p.Waits = true }},
	{Name: "asks for the status while it waits", Role: "Client", Edit: func(p *program) {
		p.Created = sequence{{Do: "GET_STATUS {HANDLE}"}, {Do: "GET_STATUS_UNIQUE {UNIQUE}"}, {Do: "GET_STATUS {HANDLE}"}}
	}},
	{Name: "asks for the status while it waits, one submission at a time", Role: "Client", Edit: func(p *program) {
		p.Waits, p.Created = true, sequence{{Do: "GET_STATUS {HANDLE}"}, {Do: "GET_STATUS_UNIQUE {UNIQUE}"}}
	}},
	{Name: "ECHO_REQ as keep-alive", Role: "Client", Edit: func(p *program) {
		p.Submit = append(sequence{{Do: "ECHO_REQ alive"}}, p.Submit...)
		p.Created = sequence{{Do: "ECHO_REQ alive"}, {Do: "ECHO_REQ {WORKLOAD}"}}
	}},
	{Name: "text commands between packets", Role: "Client", Edit: func(p *program) {
		p.Submit = append(sequence{{Do: "version"}, {Do: "workers"}}, p.Submit...)
		p.Created = sequence{{Do: "status"}, {Do: "prioritystatus"}, {Do: "show-jobs"}, {Do: "show-unique-jobs"}, {Do: "getpid"}}
	}},
	{Name: "sets the option exceptions before each job", Role: "Client", Edit: func(p *program) {
		p.Submit = append(sequence{{Do: "OPTION_REQ exceptions"}}, p.Submit...)
	}},
	{Name: "unique IDs of many lengths", Role: "Client", Edit: func(p *program) {
		n := 0
		unique(p, func(*gearman.Task) string { n++; return fmt.Sprintf("%0*d", 4+n*n%252, n) })
	}},
	{Name: "submits each job twice with one unique ID", Role: "Client", Edit: func(p *program) {
		p.Doubles = true
		unique(p, func(t *gearman.Task) string { return fmt.Sprint(crc32.ChecksumIEEE(t.Workload)) })
	}},
	{Name: "submits each job twice, at its own pace, with its workload as the unique ID", Role: "Client", Edit: func(p *program) {
		p.Doubles, p.Waits = true, true
		unique(p, func(*gearman.Task) string { return "-" })
	}},
	{Name: "jobs with reducers", Role: "Client", Edit: func(p *program) {
		reduce := strings.NewReplacer("SUBMIT_JOB_BG {FN} {UNIQUE}", "SUBMIT_REDUCE_JOB_BACKGROUND {FN} {UNIQUE} sum 0", "SUBMIT_JOB {FN} {UNIQUE}", "SUBMIT_REDUCE_JOB {FN} {UNIQUE} sum 0")
		submissions(p, reduce.Replace)
	}},
	{Name: "background jobs with an earliest start in the past", Role: "Client", Edit: func(p *program) {
		submissions(p, strings.NewReplacer("SUBMIT_JOB_BG {FN} {UNIQUE}", "SUBMIT_JOB_EPOCH {FN} {UNIQUE} 0").Replace)
	}},
	{Name: "all jobs with high or low priority", Role: "Client", Edit: func(p *program) {
		submissions(p, strings.NewReplacer("SUBMIT_JOB ", "SUBMIT_JOB_HIGH ", "SUBMIT_JOB_BG ", "SUBMIT_JOB_LOW_BG ").Replace)
	}},
	{Name: "writes of 6 bytes", Role: "Client", Edit: func(p *program) { p.Pieces = 6 }},
	{Name: "writes of one byte", Role: "Client", Edit: func(p *program) { p.Pieces = 1 }},
	{Name: "connects again after JOB_CREATED", Role: "Client", Edit: func(p *program) { p.Drops = true }},
	{Name: "connects again after JOB_CREATED, with unique IDs", Role: "Client", Edit: func(p *program) {
		p.Drops = true
		unique(p, func(t *gearman.Task) string { return fmt.Sprint(crc32.ChecksumIEEE(t.Workload)) })
	}},

	{Name: "reference", Role: "Worker", Edit: func(*program) {}},
	{Name: "polls", Role: "Worker", Edit: func(p *program) { p.Polls = true }},
	{Name: "GRAB_JOB", Role: "Worker", Edit: func(p *program) { p.Ask = sequence{{Do: "GRAB_JOB"}} }},
	{Name: "all requests for jobs in turn", Role: "Worker", Edit: func(p *program) {
		n := 0
		turn := func(k int) func(*gearman.Task) bool { return func(*gearman.Task) bool { return n%3 == k } }
		p.Ask = sequence{{Do: "GRAB_JOB", If: func(t *gearman.Task) bool { n++; return turn(0)(t) }}, {Do: "GRAB_JOB_ALL", If: turn(1)}, {Do: "GRAB_JOB_UNIQ", If: turn(2)}}
	}},
	{Name: "RESET_ABILITIES and ALL_YOURS at the start", Role: "Worker", Edit: func(p *program) {
		p.Start = sequence{{Do: "RESET_ABILITIES"}, {Do: "ALL_YOURS"}, {Do: "OPTION_REQ exceptions"}}
	}},
	{Name: "registers, removes and registers its functions", Role: "Worker", Edit: func(p *program) {
		p.Enter = append(append(slices.Clone(p.Enter), gearman.Step{Do: "CANT_DO {FN}"}, gearman.Step{Do: "CANT_DO never.registered"}), p.Enter...)
	}},
	{Name: "CAN_DO_TIMEOUT 0", Role: "Worker", Edit: func(p *program) {
		p.Enter = sequence{{Do: "CAN_DO_TIMEOUT {FN} 60000"}, {Do: "CAN_DO_TIMEOUT {FN} 0"}}
	}},
	{Name: "CAN_DO_TIMEOUT with long limits", Role: "Worker", Edit: func(p *program) {
		p.Enter = sequence{{Do: "CAN_DO {FN}"}, {Do: "CAN_DO_TIMEOUT {FN} 600000"}}
	}},
	{Name: "sets its client ID early and again for each job", Role: "Worker", Edit: func(p *program) {
		p.Start = sequence{{Do: "SET_CLIENT_ID first"}, {Do: "SET_CLIENT_ID second"}}
		p.Ask = append(p.Ask, gearman.Step{Do: "SET_CLIENT_ID after.asking"})
		p.Report = append(sequence{{Do: "SET_CLIENT_ID {HANDLE}"}}, p.Report...)
	}},
	{Name: "PRE_SLEEP twice", Role: "Worker", Edit: func(p *program) { p.Sleep = append(p.Sleep, p.Sleep...) }},
	{Name: "PRE_SLEEP before it registers and asks", Role: "Worker", Edit: func(p *program) { p.Start = sequence{{Do: "PRE_SLEEP"}} },
		Violates: map[codec.RuleID]string{"gearman.worker.asks-before-sleep": "The specification does not order the requests, and the worker asks afterwards."}},
	{Name: "GRAB_JOB and PRE_SLEEP together", Role: "Worker", Edit: func(p *program) { p.Ask, p.Sleep = append(p.Ask, p.Sleep...), nil },
		Violates: map[codec.RuleID]string{"gearman.worker.hears-before-sleep": "The specification does not require to wait for a reply. The server wakes the worker if it has a job."}},
	{Name: "asks again by itself while it sleeps", Role: "Worker", Edit: func(p *program) { p.SleepLimit = 15 * time.Millisecond }},
	{Name: "polls one connection per function", Role: "Worker", Edit: func(p *program) { p.PerFunction = true }},
	{Name: "one connection per job", Role: "Worker", Edit: func(p *program) { p.PerJob = true }},
	{Name: "closes the connection with a job and connects again", Role: "Worker", Edit: func(p *program) { p.Drops = true }},
	{Name: "closes the connection with a job, one connection per job", Role: "Worker", Edit: func(p *program) { p.Drops, p.PerJob = true, true }},
	{Name: "takes two jobs and ends the second first", Role: "Worker", Edit: func(p *program) { p.MaxJobs = 2 }},
	{Name: "takes all jobs before it ends one", Role: "Worker", Edit: func(p *program) { p.MaxJobs, p.Pipelined = 100, true }},
	{Name: "the end of a job and the next request together", Role: "Worker", Edit: func(p *program) { p.Pipelined = true }},
	{Name: "ECHO_REQ as keep-alive", Role: "Worker", Edit: func(p *program) {
		ping := gearman.Step{Do: "ECHO_REQ alive"}
		p.Start, p.Ask, p.Sleep = sequence{ping}, sequence{ping, p.Ask[0], ping}, sequence{ping, p.Sleep[0], ping}
		p.Report, p.End = append(sequence{ping}, p.Report...), append(append(sequence{ping}, p.End...), ping)
	}},
	{Name: "text commands between packets", Role: "Worker", Edit: func(p *program) {
		p.Start = sequence{{Do: "version"}}
		p.Ask = append(sequence{{Do: "status"}}, p.Ask...)
		p.Report = append(sequence{{Do: "workers"}, {Do: "show-jobs"}}, p.Report...)
	}},
	{Name: "many reports in any order", Role: "Worker", Edit: func(p *program) {
		more := func(t *gearman.Task) bool {
			return slices.Contains([]string{"reverse", "echo", "empty", "fail", "exception"}, t.How)
		}
		for _, do := range []string{"WORK_STATUS {HANDLE} 0 0", "WORK_DATA {HANDLE} part", "WORK_WARNING {HANDLE} careful", "WORK_STATUS {HANDLE} 7 3", "WORK_WARNING {HANDLE} {WORKLOAD}",
			"WORK_DATA {HANDLE} {WORKLOAD}", "WORK_STATUS {HANDLE} 18446744073709551615 1", "WORK_STATUS {HANDLE} 1 3", "WORK_STATUS {HANDLE} 007 008", "WORK_STATUS {HANDLE} 100 100"} {
			p.Report = append(p.Report, gearman.Step{Do: do, If: more})
		}
	}},
	{Name: "reports progress as percentage, and the end of each job", Role: "Worker", Edit: func(p *program) {
		p.Report[len(p.Report)-1].Do = "WORK_STATUS {HANDLE} 50 100"
		p.Report = append(p.Report, gearman.Step{Do: "WORK_STATUS {HANDLE} 100 100"})
	}},
	{Name: "fails with WORK_EXCEPTION", Role: "Worker", Edit: func(p *program) { p.End[0].Do = "WORK_EXCEPTION {HANDLE} broken" }},
	{Name: "removes the function while it does a job", Role: "Worker", Edit: func(p *program) {
		p.Report = append(sequence{{Do: "CANT_DO {FN}"}}, p.Report...)
		p.End = append(p.End, gearman.Step{Do: "CAN_DO {FN}"})
	}},
	{Name: "writes of 6 bytes", Role: "Worker", Edit: func(p *program) { p.Pieces = 6 }},
	{Name: "writes of one byte", Role: "Worker", Edit: func(p *program) { p.Pieces, p.Pipelined = 1, true }},
}

// submissions edits all submissions of a program.
func submissions(p *program, edit func(do string) string) {
	for i := range p.Submit {
		p.Submit[i].Do = edit(p.Submit[i].Do)
	}
}

// unique sets the unique ID, the second argument, of all submissions that have none.
func unique(p *program, id func(*gearman.Task) string) {
	const header, length = 12, 8 // the size of a header, and where it contains the length of the arguments
	for i := range p.Submit {
		p.Submit[i].Raw = func(t *gearman.Task, b []byte) []byte {
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

// edited returns a driver with an edited program.
func edited(edit func(*program)) drivetest.Driver {
	return func(ctx context.Context, addr string, tasks io.Reader, answers io.Writer) error {
		p := gearman.Document()
		edit(p)
		return (&gearman.Driver{Program: p}).Drive(ctx, addr, tasks, answers)
	}
}

// TestVariants: all correct clients and workers pass under all fault profiles, and violate no rule.
func TestVariants(t *testing.T) { drivetest.Variants(t, bench, 20, edited, variants) }
