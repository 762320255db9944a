package gearmonkey

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"jobwire/codec"
	protocol "jobwire/codec/gearmonkey"
)

const sha = "0123456789abcdef0123456789abcdef01234567"

// Parts of a worker's conversation; the functions below return more of them.
const (
	loaded      = "Worker -> Server: SCRIPT_LOAD *\nServer -> Worker: SHA1 " + sha + "\n"
	joined      = loaded + "Worker -> Server: INCR_COUNT reverse\nServer -> Worker: integer 1\n"
	left        = "Worker -> Server: DECR_COUNT reverse\nServer -> Worker: integer 0\n"
	noScheduled = "Worker -> Server: EVALSHA_SCHEDULED " + sha + " reverse $now\nServer -> Worker: nil\n"
	idle        = noScheduled + "Worker -> Server: BRPOP_QUEUES reverse 1\nServer -> Worker: nil-array after 1s\n"
)

// popped is a round that returns a job.
func popped(id string) string {
	return noScheduled + "Worker -> Server: BRPOP_QUEUES reverse 1\nServer -> Worker: POPPED reverse high " + id + "\n"
}

// begun contains the commands before the handler is called, and done those after it.
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

func TestPanicIsAnError(t *testing.T) {
	working(t, joined+popped("7")+begun("7", "bulk test")+done("7", "error", `"panic: oh dear"`)+left, func(t *testing.T, w *Worker) {
		w.Limit = 1
		if err := w.Work(t.Context(), func(context.Context, *Task) ([]byte, error) { panic("oh dear") }); err != nil {
			t.Error(err)
		}
	})
}

// TestWorkEndsAtAnError: an error of the server ends the loop at any step. The worker decrements each count that it has
// incremented, once.
func TestWorkEndsAtAnError(t *testing.T) {
	work := popped("7") + begun("7", "bulk test") + done("7", "success", "test")
	whole := strings.Split(joined+work, "\n")
	for i, step := range []string{"SCRIPT_LOAD", "INCR_COUNT", "EVALSHA_SCHEDULED", "BRPOP_QUEUES", "PUBLISH_START", "HMSET_BUSY",
		"HGET_INPUT", "HMSET_DONE", "EXPIRE_JOB", "PUBLISH_FINISH", "LPUSH_LOCK", "EXPIRE_LOCK"} {
		for _, reply := range []string{"error OOM", "list a b c"} {
			t.Run(step+" "+reply, func(t *testing.T) {
				script := lines(append(append([]string{}, whole[:2*i+1]...), "Server -> Worker: "+reply)...)
				if i >= 2 {
					script += left
				}
				working(t, script, func(t *testing.T, w *Worker) {
					err := w.Work(t.Context(), echo)
					var at *StepError
					var refused *RedisError
					if !errors.As(err, &at) || at.Step != step || !errors.As(err, &refused) || (refused.Code == "OOM") != (reply == "error OOM") {
						t.Errorf("Work: %v; want an error of %s", err, step)
					}
				})
			})
		}
	}
}

func TestScriptIsLoadedAgainOnce(t *testing.T) {
	const no = "Worker -> Server: EVALSHA_SCHEDULED " + sha + " reverse $now\nServer -> Worker: error NOSCRIPT\n"
	working(t, joined+no+loaded+no+left, func(t *testing.T, w *Worker) {
		var refused *RedisError
		if err := w.Work(t.Context(), echo); !errors.As(err, &refused) || refused.Code != "NOSCRIPT" {
			t.Errorf("Work: %v", err)
		}
	})
}

// TestJobOfAnotherFunction: a job from a queue that the worker did not request is an error.
func TestJobOfAnotherFunction(t *testing.T) {
	working(t, joined+noScheduled+"Worker -> Server: BRPOP_QUEUES reverse 1\nServer -> Worker: POPPED other high 7\n"+left, func(t *testing.T, w *Worker) {
		if err := w.Work(t.Context(), echo); err == nil || !strings.Contains(err.Error(), "BRPOP_QUEUES") {
			t.Errorf("Work: %v", err)
		}
	})
}

func TestUpdate(t *testing.T) {
	script := joined + popped("7") + begun("7", "bulk test") +
		"Worker -> Server: HMSET_PROGRESS reverse 7 1 3\nServer -> Worker: simple OK\n" +
		"Worker -> Server: HMSET_PROGRESS reverse 7 2 3\nServer -> Worker: error OOM\n" +
		done("7", "error", `"HMSET_PROGRESS: the server answered OOM"`) + left
	working(t, script, func(t *testing.T, w *Worker) {
		w.Limit = 1
		err := w.Work(t.Context(), func(ctx context.Context, t *Task) ([]byte, error) {
			if err := w.Update(ctx, 1, 3); err != nil {
				return nil, err
			}
			return nil, w.Update(ctx, 2, 3)
		})
		if err != nil {
			t.Errorf("Work: %v", err)
		}
	})
}

// TestFunctionsInTurn: the worker polls its functions in turn, also after a round that returned a job.
func TestFunctionsInTurn(t *testing.T) {
	enter := func(fn string) string { return of(fn, strings.TrimPrefix(joined, loaded)) }
	work := begun("1", "bulk x") + done("1", "success", "x")
	script := loaded + enter("a") + enter("b") + enter("c") +
		of("a", popped("1")+work) + of("b", idle) + of("c", popped("1")+work) +
		of("a", idle) + of("b", idle) + of("c", idle) +
		of("a", left) + of("b", left) + of("c", left)
	against(t, script, func(t *testing.T, conn *Conn) {
		w := NewWorker(conn, nil)
		for _, fn := range []string{"a", "b", "a", "c"} {
			w.Accept(fn)
		}
		w.Idle = true
		if err := w.Work(t.Context(), echo); err != nil || w.Done != 2 {
			t.Errorf("Work: %v, %d jobs", err, w.Done)
		}
	})
}

func TestWorkerDeregistersOnlyRegisteredFunctions(t *testing.T) {
	script := joined + "Worker -> Server: INCR_COUNT b\nServer -> Worker: error WRONGTYPE\n" + left
	working(t, script, func(t *testing.T, w *Worker) {
		w.Accept("b")
		w.Accept("c")
		if err := w.Work(t.Context(), echo); err == nil {
			t.Error("Work returns no error")
		}
		if err := w.Exit(t.Context()); err != nil { // no function is registered any more
			t.Error(err)
		}
	})
}

// TestWorkEndsBetweenJobs: if the context ends while the worker waits for a job, the worker finishes the round and performs
// a job that arrives.
func TestWorkEndsBetweenJobs(t *testing.T) {
	script := joined + noScheduled + "Worker -> Server: BRPOP_QUEUES reverse 1\nServer -> Worker: POPPED reverse low 7 after 900ms\n" +
		begun("7", "bulk test") + done("7", "success", "test") + left
	working(t, script, func(t *testing.T, w *Worker) {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		err := w.Work(ctx, func(inner context.Context, t *Task) ([]byte, error) {
			if ctx.Err() == nil || inner.Err() != nil {
				return nil, errors.New("the job is told to end")
			}
			return t.Input, nil
		})
		if err != nil || w.Done != 1 {
			t.Errorf("Work: %v, %d jobs", err, w.Done)
		}
	})
}

func TestWorkerWithoutFunctions(t *testing.T) {
	if err := NewWorker(nil, nil).Work(t.Context(), echo); !errors.Is(err, ErrUsage) {
		t.Errorf("Work: %v", err)
	}
}

// TestProgramsUseTheirOwnTypes: every message type that a step names may be sent by the role of the sequence.
func TestProgramsUseTheirOwnTypes(t *testing.T) {
	p := Document()
	for role, sequences := range map[codec.Role][]Sequence{
		protocol.Client: {p.Run, p.Get},
		protocol.Worker: {p.Load, p.Enter, p.Look, p.Work, p.Update, p.Leave},
	} {
		for _, s := range slices.Concat(sequences...) {
			if s.Local == nil && reply(s.name()).Req&role == 0 {
				t.Errorf("%s is not for this role", s.name())
			}
		}
	}
}
