package danga_test

import (
	"fmt"
	"hash/crc32"
	"testing"
	"time"

	_ "jobwire/catalog" // registers the scenarios
	"jobwire/codec"
	"jobwire/refpeer/internal/drivetest"
	"jobwire/refpeer/internal/peer"
)

// variants are correct applications and workers. Each uses a freedom of the draft that the reference application or worker
// does not use.
var variants = []drivetest.Variant{
	{Name: "reference", Role: "Application", Edit: func(*peer.Program) {}},
	{Name: "one connection per job and request", Role: "Application", Edit: func(p *peer.Program) { p.PerTask = true }},
	{Name: "waits for each job_create_res", Role: "Application", Edit: func(p *peer.Program) { p.Waits = true }},
	{Name: "asks for the progress before each result", Role: "Application", Edit: func(p *peer.Program) {
		p.Steps["Result"] = append(peer.Sequence{{Do: "job_status_req {JOB_ID}"}, {Do: "job_status_req {JOB_ID}"}}, p.Steps["Result"]...)
	}},
	{Name: "creates other jobs while it waits", Role: "Application", Edit: func(p *peer.Program) {
		p.Steps["Created"] = peer.Sequence{{Do: "job_create_req {QUEUE} away 0 2 {PAYLOAD}"}, {Do: "job_create_req {QUEUE} {UNIQUE} 0 1 {PAYLOAD}"}, {Do: "job_create_req elsewhere {UNIQUE} 0 2 {PAYLOAD}"}}
	}},
	{Name: "a different duplicate key for each job", Role: "Application", Edit: func(p *peer.Program) {
		n := 0
		key(p, func(peer.Task) string { n++; return fmt.Sprintf("%0*d", 4+n*n%252, n) })
	}},
	{Name: "duplicates of its own jobs", Role: "Application", Edit: func(p *peer.Program) {
		key(p, func(t peer.Task) string { return fmt.Sprint(crc32.ChecksumIEEE([]byte(t["PAYLOAD"]))) })
		p.Steps["Created"] = peer.Sequence{{Do: "job_create_req {QUEUE} {UNIQUE} 0 1 {PAYLOAD}"}}
	}},
	{Name: "does not report progress", Role: "Application", Edit: func(p *peer.Program) { p.Silent = true }},
	{Name: "connects again after job_create_res", Role: "Application", Edit: func(p *peer.Program) { p.Drops = true }},
	{Name: "connects again after job_create_res, with duplicate keys", Role: "Application", Edit: func(p *peer.Program) {
		p.Drops = true
		key(p, func(t peer.Task) string { return fmt.Sprint(crc32.ChecksumIEEE([]byte(t["PAYLOAD"]))) })
	}},
	{Name: "its own magic", Role: "Application", Edit: magic},
	{Name: "writes of 6 bytes", Role: "Application", Edit: func(p *peer.Program) { p.Pieces = 6 }},
	{Name: "writes of one byte", Role: "Application", Edit: func(p *peer.Program) { p.Pieces = 1 }},

	{Name: "reference", Role: "Worker", Edit: func(*peer.Program) {}},
	{Name: "polls", Role: "Worker", Edit: func(p *peer.Program) { p.Polls = true }},
	{Name: "asks again by itself while it sleeps", Role: "Worker", Edit: func(p *peer.Program) { p.SleepLimit = 15 * time.Millisecond }},
	{Name: "worker_sleep twice", Role: "Worker", Edit: func(p *peer.Program) { p.Steps["Sleep"] = append(p.Steps["Sleep"], p.Steps["Sleep"]...) }},
	{Name: "job_assign_req and worker_sleep together", Role: "Worker", Edit: func(p *peer.Program) {
		p.Steps["Ask"], p.Steps["Sleep"] = append(p.Steps["Ask"], p.Steps["Sleep"]...), nil
	},
		Violates: map[codec.RuleID]string{"danga.sleep.hears-first": "The draft does not require to wait for a reply. The server wakes the worker if it has a job."}},
	{Name: "announces no job names, then others, then its own twice", Role: "Worker", Edit: func(p *peer.Program) {
		p.Steps["Start"] = append(peer.Sequence{{Do: "worker_connect"}, {Do: "worker_connect elsewhere"}}, peer.Step{Do: "worker_connect {QUEUES}... {QUEUES}..."})
	}},
	{Name: "announces its job names before each request", Role: "Worker", Edit: func(p *peer.Program) { p.Steps["Ask"] = append(p.Steps["Start"][:1:1], p.Steps["Ask"]...) }},
	{Name: "announces its job names before it sleeps and while it sleeps", Role: "Worker", Edit: func(p *peer.Program) {
		p.Steps["Sleep"] = peer.Sequence{p.Steps["Start"][0], p.Steps["Sleep"][0], p.Steps["Start"][0]}
	}},
	{Name: "closes the connection without worker_disconnect", Role: "Worker", Edit: func(p *peer.Program) { p.Steps["Leave"] = nil }},
	{Name: "worker_disconnect and worker_connect after each job", Role: "Worker", Edit: func(p *peer.Program) {
		p.Steps["End"] = append(append(p.Steps["End"], p.Steps["Leave"]...), p.Steps["Start"]...)
	}},
	{Name: "one connection per job", Role: "Worker", Edit: func(p *peer.Program) { p.PerJob = true }},
	{Name: "polls one connection per job name", Role: "Worker", Edit: func(p *peer.Program) { p.PerQueue = true }},
	{Name: "closes the connection with a job and connects again", Role: "Worker", Edit: func(p *peer.Program) { p.Drops, p.Steps["Leave"] = true, nil }},
	{Name: "worker_disconnect with a job", Role: "Worker", Edit: func(p *peer.Program) { p.Drops, p.PerJob = true, true }},
	{Name: "worker_sleep with a job", Role: "Worker", Edit: func(p *peer.Program) {
		p.Steps["Report"] = append(peer.Sequence{{Do: "worker_sleep"}}, p.Steps["Report"]...)
	}},
	{Name: "many reports", Role: "Worker", Edit: func(p *peer.Program) {
		for _, numbers := range []string{"0 0 4294967295", "7 3 1", "4294967295 1 0", "1 2 4294967295", "2 2 0"} {
			p.Steps["Report"] = append(p.Steps["Report"], peer.Step{Do: "job_status_announce " + numbers})
		}
	}},
	{Name: "its own magic", Role: "Worker", Edit: magic},
	{Name: "writes of 6 bytes", Role: "Worker", Edit: func(p *peer.Program) { p.Pieces = 6 }},
	{Name: "writes of one byte", Role: "Worker", Edit: func(p *peer.Program) { p.Pieces = 1 }},
}

// key sets the duplicate key of all jobs that have none.
func key(p *peer.Program, of func(peer.Task) string) {
	p.Steps["Submit"][0].If = func(t peer.Task) bool {
		if t["UNIQUE"] == "" {
			t["UNIQUE"] = of(t)
		}
		return true
	}
}

// magic makes a program send a different magic than the reference program. This magic contains bytes that are not text.
func magic(p *peer.Program) {
	for _, s := range []peer.Sequence{p.Steps["Submit"], p.Steps["Status"], p.Steps["Result"], p.Steps["Start"], p.Steps["Ask"], p.Steps["Sleep"], p.Steps["Report"], p.Steps["End"], p.Steps["Leave"]} {
		for i := range s {
			s[i].Raw = func(_ peer.Task, b []byte) []byte { return append([]byte("\x00\xff\r\n"), b[4:]...) }
		}
	}
}

// TestVariants: all correct applications and workers pass under all fault profiles, and violate no rule.
func TestVariants(t *testing.T) { bench.Variants(t, 15, variants) }
