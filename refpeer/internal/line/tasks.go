package line

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"jobwire/codec/transcript"
)

// maxTask is the maximum length of a task's line in bytes. taskBuffer is the size of the buffers for tasks and answers.
const (
	maxTask    = 64 << 20
	taskBuffer = 32 << 10
)

// errEndedByFault is returned if an injected fault has ended the driver.
var errEndedByFault = errors.New("fallen over the end of a connection")

// Verb is a kind of task with at least Least arguments.
type Verb struct {
	Least int
	Do    func(ctx context.Context, words []string) ([]string, error)
}

// Serve reads tasks, one per line, and answers each with one line, until the end of tasks. explain returns the answer for
// errors that are specific to a protocol, and nil for any other error.
func Serve(ctx context.Context, tasks io.Reader, answers io.Writer, h *Quirks, verbs map[string]Verb, explain func(error) []string) error {
	lines, out := bufio.NewReaderSize(tasks, taskBuffer), bufio.NewWriterSize(answers, taskBuffer)
	for ctx.Err() == nil {
		task, err := transcript.ReadLine(lines, maxTask)
		if err == io.EOF {
			break
		}
		if err != nil {
			return cmp.Or(ctx.Err(), err)
		}
		words, err := runVerb(ctx, task, verbs)
		if h.ExitsOnEOF && IsDisconnect(err) {
			return errEndedByFault
		}
		answer := append([]string{"ok"}, words...)
		if err != nil {
			if answer = explain(err); answer == nil {
				answer = failure(err)
			}
		}
		for i, w := range answer {
			if i > 0 {
				out.WriteByte(' ')
			}
			out.WriteString(transcript.Quote(w))
		}
		out.WriteByte('\n')
		if err := out.Flush(); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// failure returns the answer to a task that failed for a reason that all protocols share.
func failure(err error) []string {
	for _, f := range []struct {
		err  error
		word string
	}{{ErrTimedOut, "timed-out"}, {ErrUsage, "usage"}, {ErrProtocol, "protocol"}} {
		if errors.Is(err, f.err) {
			return []string{"error", f.word, err.Error()}
		}
	}
	return []string{"error", "connection", err.Error()}
}

func runVerb(ctx context.Context, line string, verbs map[string]Verb) ([]string, error) {
	words, err := transcript.ParseWords(line)
	if err != nil || len(words) == 0 {
		return nil, fmt.Errorf("%w: %q", ErrUsage, line)
	}
	v, ok := verbs[words[0]]
	if !ok || len(words) <= v.Least {
		return nil, fmt.Errorf("%w: %s", ErrUsage, words[0])
	}
	return v.Do(ctx, words[1:])
}

// Results return the result of a job for its workload. The key is the word for what the worker does.
var Results = map[string]func(workload []byte) []byte{
	"echo": same, "data": same, "warning": same, "status": same, "exception": same,
	"fail":  func([]byte) []byte { return nil },
	"empty": func([]byte) []byte { return nil },
	"reverse": func(b []byte) []byte {
		b = slices.Clone(b)
		slices.Reverse(b)
		return b
	},
}

func same(b []byte) []byte { return b }

// Number parses a count in a task's line.
func Number(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 31)
	return int(n), err
}
