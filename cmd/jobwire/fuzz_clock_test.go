package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"jobwire/cmd/internal/cli"
	"jobwire/internal/peers"
)

// TestFastClock replays a log with a server whose clock runs ten times as fast, so that pauses are a tenth as long:
// gearmand does not report a job that exceeds its time limit, and queues a job with a start time when the clock of the
// server reaches this time.
func TestFastClock(t *testing.T) {
	peers.Need(t, "faketime")
	gearmand := peers.Need(t, "gearmand")
	const log = `{"jobwire":"test","protocol":"gearman","server":"gearmand","seed":1,"worker":4,"life":0,"clock":10}
{"steps":[{"id":1,"conn":1,"verb":0,"args":[{"v":"WlpaWlpaWmE="},{"v":"MQ=="}],"type":"CAN_DO_TIMEOUT"},{"id":2,"conn":0,"verb":0,"args":[{"v":"WlpaWlpaWmE="},{"v":""},{"v":"eF7J"}],"type":"SUBMIT_JOB"},{"id":3,"conn":1,"verb":0,"type":"GRAB_JOB"},{"id":5,"conn":1,"verb":2,"for":2200000000},{"id":6,"conn":0,"verb":0,"args":[{"v":"MQ==","of":2}],"type":"GET_STATUS"}]}
{"steps":[{"id":1,"conn":0,"verb":0,"args":[{"v":"WlpaWlpaWmI="},{"v":""},{"v":"Mg==","now":true},{"v":"Y21q"}],"type":"SUBMIT_JOB_EPOCH"},{"id":2,"conn":1,"verb":2,"for":8000000000},{"id":3,"conn":1,"verb":0,"args":[{"v":"WlpaWlpaWmI="}],"type":"CAN_DO"},{"id":4,"conn":1,"verb":0,"type":"GRAB_JOB_UNIQ"}]}
`
	name := filepath.Join(t.TempDir(), "pauses.log")
	if err := os.WriteFile(name, []byte(log), 0o666); err != nil {
		t.Fatal(err)
	}
	args := []string{"fuzz", "replay", "gearman", name, "--exec", gearmand + " -L 127.0.0.1 -p {port} -t 1 -l none"}
	var out, errs bytes.Buffer
	if status := run(t.Context(), args, nil, &out, &errs); status == cli.StatusOK || !strings.Contains(errs.String(), "add --fast-clock=10") {
		t.Errorf("without --fast-clock: status %d\n%s%s", status, out.String(), errs.String())
	}
	out.Reset()
	errs.Reset()
	status := run(t.Context(), append(args, "--fast-clock"), nil, &out, &errs)
	if got := out.String(); status != cli.StatusFailed || !strings.Contains(got, "message sequence 1 of 2: ") || !strings.Contains(got, "expected WORK_FAIL H:") || !strings.Contains(got, "1 failure in 2") {
		t.Errorf("status %d\n%s%s", status, got, errs.String())
	}
}
