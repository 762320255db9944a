// Package fuzztest has what the tests of the fuzzer's packages share.
package fuzztest

import (
	"context"
	"testing"

	_ "jobwire/catalog" // registers the protocols
	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/fuzz/faults"
	"jobwire/fuzz/input"
	"jobwire/internal/target"
)

// Work is a transcript of Gearman: a worker completes a job.
const Work = `Client -> Job Server: SUBMIT_JOB $fn "" test
Job Server -> Client: JOB_CREATED $handle
Worker -> Job Server: CAN_DO $fn
Worker -> Job Server: GRAB_JOB
Job Server -> Worker: JOB_ASSIGN $handle $fn test
Worker -> Job Server: WORK_COMPLETE $handle tset
Job Server -> Client: WORK_COMPLETE $handle tset
`

// Input returns the input with the messages of a transcript.
func Input(t *testing.T, p *codec.Protocol, src string) *input.Input {
	t.Helper()
	scripts, err := transcript.Parse(p, "test", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	return input.FromScript(scripts[0])
}

// Serve returns a function that starts a server in memory.
func Serve(f faults.Fault) func(context.Context) (target.Target, error) {
	return func(ctx context.Context) (target.Target, error) { return target.InMemory(ctx, f.Name, f.Serve) }
}
