package gearmonkey

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"jobwire/codec"
	protocol "jobwire/codec/gearmonkey"
)

const sha = "0123456789abcdef0123456789abcdef01234567"

// Parts of a worker's conversation; the functions below return more of them.
const (
	loaded         = "Worker -> Server: SCRIPT_LOAD *\nServer -> Worker: SHA1 " + sha + "\n"
	registration   = "Worker -> Server: INCR_COUNT reverse\nServer -> Worker: integer 1\n"
	started        = loaded + registration
	deregistration = "Worker -> Server: DECR_COUNT reverse\nServer -> Worker: integer 0\n"
	noScheduled    = "Worker -> Server: EVALSHA_SCHEDULED " + sha + " reverse $now\nServer -> Worker: nil\n"
	idle           = noScheduled + "Worker -> Server: BRPOP_QUEUES reverse 1\nServer -> Worker: nil-array after 1s\n"
)

// popped is a round that returns a job.
func popped(id string) string {
	return noScheduled + "Worker -> Server: BRPOP_QUEUES reverse 1\nServer -> Worker: POPPED reverse high " + id + "\n"
}

// begun contains the commands before the work, and done those after it.
func begun(id, input string) string {
	return lines(
		"Worker -> Server: PUBLISH_START reverse "+id, "Server -> Worker: integer 0",
		"Worker -> Server: HMSET_BUSY reverse "+id, "Server -> Worker: simple OK",
		"Worker -> Server: HGET_INPUT reverse "+id, "Server -> Worker: "+input)
}

func done(id, status, output string) string {
	return lines(
		"Worker -> Server: HMSET_DONE reverse "+id+" "+status+" "+output, "Server -> Worker: simple OK",
		"Worker -> Server: EXPIRE_JOB reverse "+id+" 90000", "Server -> Worker: integer 1",
		"Worker -> Server: PUBLISH_FINISH reverse "+id, "Server -> Worker: integer 2",
		"Worker -> Server: LPUSH_LOCK reverse "+id+" OK", "Server -> Worker: integer 1",
		"Worker -> Server: EXPIRE_LOCK reverse "+id+" 10", "Server -> Worker: integer 0")
}

// of replaces the function of a script.
func of(function, script string) string { return strings.ReplaceAll(script, "reverse", function) }

// TestWorkEndsAtAnError: an error of the server ends the worker at any step. The worker decrements each count that it has
// incremented, once.
func TestWorkEndsAtAnError(t *testing.T) {
	work := popped("7") + begun("7", "bulk test") + done("7", "success", "test")
	whole := strings.Split(started+work, "\n")
	for i, step := range []string{"SCRIPT_LOAD", "INCR_COUNT", "EVALSHA_SCHEDULED", "BRPOP_QUEUES", "PUBLISH_START", "HMSET_BUSY",
		"HGET_INPUT", "HMSET_DONE", "EXPIRE_JOB", "PUBLISH_FINISH", "LPUSH_LOCK", "EXPIRE_LOCK"} {
		for reply, want := range map[string]string{"error OOM": "error redis OOM", "list a b c": `error redis "list`} {
			t.Run(step+" "+reply, func(t *testing.T) {
				script := lines(append(append([]string{}, whole[:2*i+1]...), "Server -> Worker: "+reply)...)
				if i >= 2 {
					script += deregistration
				}
				answering(t, script, "work reverse echo 1", want)
			})
		}
	}
}

// TestScriptIsLoadedAgainOnce tests that a worker loads its script again after NOSCRIPT, and gives up after the second
// NOSCRIPT.
func TestScriptIsLoadedAgainOnce(t *testing.T) {
	const no = "Worker -> Server: EVALSHA_SCHEDULED " + sha + " reverse $now\nServer -> Worker: error NOSCRIPT\n"
	answering(t, started+no+loaded+no+deregistration, "work reverse echo 1", "error redis NOSCRIPT")
}

// TestJobOfAnotherFunction: a job from a queue that the worker did not request is an error.
func TestJobOfAnotherFunction(t *testing.T) {
	answering(t, started+noScheduled+"Worker -> Server: BRPOP_QUEUES reverse 1\nServer -> Worker: POPPED other high 7\n"+deregistration,
		"work reverse echo 1", `error redis "POPPED`)
}

// TestUpdate: if the server does not store the progress of a job, the job fails, and the worker continues.
func TestUpdate(t *testing.T) {
	const update = "Worker -> Server: HMSET_PROGRESS reverse 7 1 2\nServer -> Worker: "
	answering(t, started+popped("7")+begun("7", "bulk test")+update+"simple OK\n"+done("7", "success", "test")+
		popped("7")+begun("7", "bulk test")+update+"error OOM\n"+done("7", "error", `"redis OOM"`)+deregistration, "work reverse progress 2", "ok 2")
}

// TestFunctionsInTurn: the worker polls its functions in turn, also after a round that returned a job. A function that its
// task names twice counts once.
func TestFunctionsInTurn(t *testing.T) {
	work := begun("1", "bulk x") + done("1", "success", "x")
	script := loaded + of("a", registration) + of("b", registration) + of("c", registration) +
		of("a", popped("1")+work) + of("b", idle) + of("c", popped("1")+work) + // a and c have a job
		of("a", idle) + of("b", idle) + of("c", idle) +
		of("a", deregistration) + of("b", deregistration) + of("c", deregistration)
	answering(t, script, "work a,b,a,c echo 0", "ok 2")
}

// TestWorkerDeregistersOnlyRegisteredFunctions tests that a worker whose registration fails decrements only the counts
// that it has incremented.
func TestWorkerDeregistersOnlyRegisteredFunctions(t *testing.T) {
	script := started + "Worker -> Server: INCR_COUNT b\nServer -> Worker: error WRONGTYPE\n" + deregistration
	answering(t, script, "work reverse,b,c echo 1", "error redis WRONGTYPE")
}

// TestWorkEndsBetweenJobs: if the driver ends while the worker waits for a job, the worker finishes the round and performs a
// job that arrives.
func TestWorkEndsBetweenJobs(t *testing.T) {
	script := started + noScheduled + "Worker -> Server: BRPOP_QUEUES reverse 1\nServer -> Worker: POPPED reverse low 7 after 900ms\n" +
		begun("7", "bulk test") + done("7", "success", "test") + deregistration
	against(t, script, func(t *testing.T, addr string) {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		var answer strings.Builder
		err := Drive(ctx, addr, strings.NewReader("work reverse echo 5\n"), &answer)
		if !errors.Is(err, context.DeadlineExceeded) || answer.String() != "ok 1\n" {
			t.Errorf("expected the answer ok 1, got %q; %v", &answer, err)
		}
	})
}

// TestProgramsUseTheirOwnTypes: every message type that a step names may be sent by the role of the sequence.
func TestProgramsUseTheirOwnTypes(t *testing.T) {
	for name, s := range Document().Steps {
		role := codec.Role(protocol.Worker)
		if name == "Run" || name == "Get" {
			role = protocol.Client
		}
		for _, step := range s {
			name, _, _ := strings.Cut(step.Do, " ")
			if step.Local == nil && protocol.Protocol.MustTypeNamed(name).Req&role == 0 {
				t.Errorf("%s is not for this role", name)
			}
		}
	}
}
