package line

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"jobwire/codec/transcript"
)

// maxTask is the maximum length of a task's line in bytes.
const maxTask = 64 << 20

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
	lines := bufio.NewScanner(tasks)
	lines.Buffer(nil, maxTask)
	for ctx.Err() == nil && lines.Scan() {
		words, err := runVerb(ctx, lines.Text(), verbs)
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
			answer[i] = transcript.Quote(w)
		}
		if _, err := io.WriteString(answers, strings.Join(answer, " ")+"\n"); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return lines.Err()
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
