package danga_test

import (
	"context"
	"fmt"
	"hash/crc32"
	"io"
	"testing"
	"time"

	_ "jobwire/catalog" // registers the scenarios
	"jobwire/codec"
	"jobwire/refpeer/danga"
	"jobwire/refpeer/internal/drivetest"
)

type (
	program  = danga.Program
	sequence = danga.Sequence
)

// variants are correct applications and workers. Each uses a freedom of the draft that the reference application or worker
// does not use.
var variants = []drivetest.Variant[program]{
	{Name: "reference", Role: "Application", Edit: func(*program) {}},
	{Name: "one connection per job and request", Role: "Application", Edit: func(p *program) { p.PerTask = true }},
	{Name: "waits for each job_create_res", Role: "Application", Edit: func(p *program) { p.Waits = true }},
	{Name: "asks for the progress before each result", Role: "Application", Edit: func(p *program) {
		p.Result = append(sequence{{Do: "job_status_req {HANDLE}"}, {Do: "job_status_req {HANDLE}"}}, p.Result...)
	}},
	{Name: "creates other jobs while it waits", Role: "Application", Edit: func(p *program) {
		p.Meanwhile = sequence{{Do: "job_create_req {NAME} away {FLAGS} \x02 {ARGS}"}, {Do: "job_create_req {NAME} {KEY} {FLAGS} \x01 {ARGS}"}, {Do: "job_create_req elsewhere {KEY} {FLAGS} \x02 {ARGS}"}}
	}},
	{Name: "a different duplicate key for each job", Role: "Application", Edit: func(p *program) {
		n := 0
		key(p, func(*danga.Task) string { n++; return fmt.Sprintf("%0*d", 4+n*n%252, n) })
	}},
	{Name: "duplicates of its own jobs", Role: "Application", Edit: func(p *program) {
		key(p, func(t *danga.Task) string { return fmt.Sprint(crc32.ChecksumIEEE(t.Args)) })
		p.Meanwhile = sequence{{Do: "job_create_req {NAME} {KEY} {FLAGS} \x01 {ARGS}"}}
	}},
	{Name: "does not report progress", Role: "Application", Edit: func(p *program) { p.Silent = true }},
	{Name: "connects again after job_create_res", Role: "Application", Edit: func(p *program) { p.Drops = true }},
	{Name: "connects again after job_create_res, with duplicate keys", Role: "Application", Edit: func(p *program) {
		p.Drops = true
		key(p, func(t *danga.Task) string { return fmt.Sprint(crc32.ChecksumIEEE(t.Args)) })
	}},
	{Name: "its own magic", Role: "Application", Edit: magic},
	{Name: "writes of 6 bytes", Role: "Application", Edit: func(p *program) { p.Pieces = 6 }},
	{Name: "writes of one byte", Role: "Application", Edit: func(p *program) { p.Pieces = 1 }},

	{Name: "reference", Role: "Worker", Edit: func(*program) {}},
	{Name: "polls", Role: "Worker", Edit: func(p *program) { p.Polls = true }},
	{Name: "asks again by itself while it sleeps", Role: "Worker", Edit: func(p *program) { p.SleepLimit = 15 * time.Millisecond }},
	{Name: "worker_sleep twice", Role: "Worker", Edit: func(p *program) { p.Sleep = append(p.Sleep, p.Sleep...) }},
	{Name: "job_assign_req and worker_sleep together", Role: "Worker", Edit: func(p *program) { p.Ask, p.Sleep = append(p.Ask, p.Sleep...), nil },
		Violates: map[codec.RuleID]string{"danga.sleep.hears-first": "The draft does not require to wait for a reply. The server wakes the worker if it has a job."}},
	{Name: "announces no job names, then others, then its own twice", Role: "Worker", Edit: func(p *program) {
		p.Enter = append(sequence{{Do: "worker_connect"}, {Do: "worker_connect elsewhere"}}, danga.Step{Do: "worker_connect {NAMES}... {NAMES}..."})
	}},
	{Name: "announces its job names before each request", Role: "Worker", Edit: func(p *program) { p.Ask = append(p.Enter[:1:1], p.Ask...) }},
	{Name: "announces its job names before it sleeps and while it sleeps", Role: "Worker", Edit: func(p *program) {
		p.Sleep = sequence{p.Enter[0], p.Sleep[0], p.Enter[0]}
	}},
	{Name: "closes the connection without worker_disconnect", Role: "Worker", Edit: func(p *program) { p.Leave = nil }},
	{Name: "worker_disconnect and worker_connect after each job", Role: "Worker", Edit: func(p *program) {
		p.End = append(append(p.End, p.Leave...), p.Enter...)
	}},
	{Name: "one connection per job", Role: "Worker", Edit: func(p *program) { p.PerJob = true }},
	{Name: "polls one connection per job name", Role: "Worker", Edit: func(p *program) { p.PerName = true }},
	{Name: "closes the connection with a job and connects again", Role: "Worker", Edit: func(p *program) { p.Drops, p.Leave = true, nil }},
	{Name: "worker_disconnect with a job", Role: "Worker", Edit: func(p *program) { p.Drops, p.PerJob = true, true }},
	{Name: "worker_sleep with a job", Role: "Worker", Edit: func(p *program) { p.Report = append(sequence{{Do: "worker_sleep"}}, p.Report...) }},
	{Name: "many reports", Role: "Worker", Edit: func(p *program) {
		for _, numbers := range []string{"\x00\x00\x00\x00 \x00\x00\x00\x00 {LEFT}", "\x00\x00\x00\x07 \x00\x00\x00\x03 \x00\x00\x00\x01", "\xff\xff\xff\xff \x00\x00\x00\x01 \x00\x00\x00\x00", "{DONE} {OF} {LEFT}", "{OF} {OF} \x00\x00\x00\x00"} {
			p.Report = append(p.Report, danga.Step{Do: "job_status_announce " + numbers})
		}
	}},
	{Name: "its own magic", Role: "Worker", Edit: magic},
	{Name: "writes of 6 bytes", Role: "Worker", Edit: func(p *program) { p.Pieces = 6 }},
	{Name: "writes of one byte", Role: "Worker", Edit: func(p *program) { p.Pieces = 1 }},
}

// key sets the duplicate key of all jobs that have none.
func key(p *program, of func(*danga.Task) string) {
	p.Create[0].If = func(t *danga.Task) bool {
		if len(t.Key) == 0 {
			t.Key = []byte(of(t))
		}
		return true
	}
}

// magic makes a program send a different magic than the reference program. This magic contains bytes that are not text.
func magic(p *program) {
	for _, s := range []sequence{p.Create, p.Status, p.Result, p.Enter, p.Ask, p.Sleep, p.Report, p.End, p.Leave} {
		for i := range s {
			s[i].Raw = func(_ *danga.Task, b []byte) []byte { return append([]byte("\x00\xff\r\n"), b[4:]...) }
		}
	}
}

// edited returns a driver with an edited program.
func edited(edit func(*program)) drivetest.Driver {
	return func(ctx context.Context, addr string, tasks io.Reader, answers io.Writer) error {
		p := danga.Document()
		edit(p)
		return (&danga.Driver{Program: p}).Drive(ctx, addr, tasks, answers)
	}
}

// TestVariants: all correct applications and workers pass under all fault profiles, and violate no rule.
func TestVariants(t *testing.T) { drivetest.Variants(t, bench, 15, edited, variants) }
