package conform

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/internal/mutant"
	"jobwire/internal/transport"
	"jobwire/play"
)

// Program is a client or worker under test.
type Program = mutant.Program

// driverScript contains the tasks that a case gives to a program, and the expected answers.
type driverScript struct {
	tasks   [][]transcript.Arg
	answers [][]transcript.Arg // by index of the task; a task without an entry accepts any answer
}

// maxAnswer is the maximum length of an answer, in bytes.
const maxAnswer = 64 << 20

// startupTimeout is how long a program may take to start and connect. Some programs need a virtual machine that starts
// slowly, and several programs start at the same time.
const startupTimeout = 10 * time.Second

// endTime is added to the timeout of an expectation to limit how long a program may take to exit after its last task.
const endTime = 2 * time.Second

// errUnsupported is the error if a program does not support a task. This is not a failure of the program.
var errUnsupported = errors.New("the program under test does not support the task")

// check returns an error if the tasks and answers are inconsistent.
func (e *driverScript) check(p *codec.Protocol, role string) error {
	switch {
	case role == "" && len(e.tasks)+len(e.answers) > 0:
		return errors.New("@task and @answer need a line @program, which names the role of the program")
	case role == "":
		return nil
	case p.RoleNamed(role) == 0:
		return fmt.Errorf("@program %s: expected %s", role, strings.Join(p.Roles, ", "))
	case len(e.tasks) == 0:
		return errors.New("@program needs at least one line @task")
	case len(e.answers) > len(e.tasks):
		return fmt.Errorf("there are more @answer lines (%d) than @task lines (%d)", len(e.answers), len(e.tasks))
	}
	for _, a := range slices.Concat(e.tasks...) {
		if a.Kind != transcript.Literal && a.Kind != transcript.Name {
			return errors.New("@task: got * or ..., expected words and $names")
		}
	}
	return nil
}

// uniqueNames returns unique values for the names in the tasks, except for names to which an earlier answer gives a value.
func (e *driverScript) uniqueNames() map[string]string {
	names, inAnswers := map[string]string{}, map[string]bool{}
	for i, task := range e.tasks {
		for _, a := range task {
			if a.Kind == transcript.Name && names[a.Name] == "" && !inAnswers[a.Name] {
				names[a.Name] = play.UniqueName(a.Name)
			}
		}
		if i < len(e.answers) {
			for _, a := range e.answers[i] {
				inAnswers[a.Name] = true
			}
		}
	}
	return names
}

// run sends the tasks to a program and compares the answers with the expected ones. known contains the values of names.
// run adds the values that answers give to names.
func (e *driverScript) run(known map[string]string, tasks io.WriteCloser, answers io.Reader) error {
	defer tasks.Close()
	lines := bufio.NewScanner(answers)
	lines.Buffer(nil, maxAnswer)
	for i, task := range e.tasks {
		line, err := taskText(task, known)
		if err != nil {
			return err
		}
		if _, err := io.WriteString(tasks, line+"\n"); err != nil {
			return fmt.Errorf("the program under test exited before it read the task %q", line)
		}
		if !lines.Scan() {
			return fmt.Errorf("the program under test exited before it answered the task %q", line)
		}
		words, err := transcript.ParseWords(lines.Text())
		if len(words) >= 2 && words[0] == "error" && words[1] == "unsupported" {
			return fmt.Errorf("%w %q", errUnsupported, line)
		}
		if i >= len(e.answers) {
			continue
		}
		if err != nil || !answered(e.answers[i], words, known) {
			return fmt.Errorf("task %q: expected the answer %q, got %q", line, written(e.answers[i]), shortened(lines.Text()))
		}
	}
	return nil
}

// taskText returns a task as the line that the program reads.
func taskText(task []transcript.Arg, known map[string]string) (string, error) {
	var words []string
	for _, a := range task {
		v := string(a.Value)
		if a.Kind == transcript.Name {
			var ok bool
			if v, ok = known[a.Name]; !ok {
				return "", fmt.Errorf("the variable $%s has no value yet", a.Name)
			}
		}
		words = append(words, transcript.Quote(v))
	}
	return strings.Join(words, " "), nil
}

// answered reports whether an answer is as expected. For each $name in want, it stores the value in the answer in the
// map known.
func answered(want []transcript.Arg, words []string, known map[string]string) bool {
	for i, a := range want {
		if a.Kind == transcript.Rest {
			return true
		}
		if i >= len(words) {
			return false
		}
		switch v, ok := known[a.Name]; {
		case a.Kind == transcript.Any:
		case a.Kind == transcript.Name && !ok:
			known[a.Name] = words[i]
		case a.Kind == transcript.Name && v != words[i], a.Kind == transcript.Literal && string(a.Value) != words[i]:
			return false
		}
	}
	return len(words) == len(want)
}

// written returns an expected answer in the notation of cases.
func written(answer []transcript.Arg) string {
	var words []string
	for _, a := range answer {
		switch a.Kind {
		case transcript.Any:
			words = append(words, "*")
		case transcript.Version:
			words = append(words, "*version")
		case transcript.Rest:
			words = append(words, "...")
		case transcript.Name:
			words = append(words, "$"+a.Name)
		default:
			words = append(words, transcript.Quote(string(a.Value)))
		}
	}
	return strings.Join(words, " ")
}

func shortened(s string) string {
	if len(s) > 200 {
		return s[:200] + "..."
	}
	return s
}

// performProgram runs a case that tests a program, with a relay between the program and the server at addr. note is the reason
// for a failure, or "". able is false if the program does not support a task; the result is then meaningless.
func (r *Runner) performProgram(ctx context.Context, c *Case, script *transcript.Script, addr string, dial play.Dialer, o play.Options) (p *play.Result, note string, able bool) {
	ln, err := transport.Listen(transport.Local(addr), nil)
	if err != nil {
		return &play.Result{}, err.Error(), true
	}
	defer ln.Close()
	ctx, cancel := context.WithCancel(ctx)
	o.Names = c.driver.uniqueNames()
	known := maps.Clone(o.Names)
	taskR, taskW := io.Pipe()
	answerR, answerW := io.Pipe()
	var wg sync.WaitGroup
	var failed, unmet, unable error
	ended, left := make(chan struct{}), make(chan struct{})
	o.StartupTimeout, o.Exited = startupTimeout, left
	wg.Go(func() {
		defer close(left)
		failed = r.Programs[c.Program](ctx, transport.Name(ln), taskR, answerW)
		taskR.Close()
		answerW.Close()
	})
	wg.Go(func() {
		defer close(ended)
		if unmet = c.driver.run(known, taskW, answerR); errors.Is(unmet, errUnsupported) {
			unable = unmet
			cancel()
		}
		io.Copy(io.Discard, answerR)
	})
	p = play.Proxy(ctx, script, dial, c.Program, ln, o)
	if p.Failure == nil {
		t := time.NewTimer(cmp.Or(o.Timeout, play.DefaultTimeout) + endTime)
		select {
		case <-ended:
		case <-t.C:
			note = "the program under test did not exit after its last task"
		}
		t.Stop()
	}
	select {
	case <-ended:
	default:
		cancel()
		taskW.Close()
		answerR.Close()
		wg.Wait()
		failed, unmet = nil, nil // errors of stopping the program, not of the case
	}
	wg.Wait()
	cancel()
	switch {
	case unable != nil:
		return p, unable.Error(), false
	case note != "":
	case p.Failure != nil && unmet != nil:
		note = p.Failure.Error() + "; " + unmet.Error()
	case p.Failure != nil:
		note = p.Failure.Error()
	case unmet != nil:
		note = unmet.Error()
	default:
		for _, name := range slices.Sorted(maps.Keys(known)) {
			if v, ok := p.Names[name]; ok && v != known[name] {
				note = fmt.Sprintf("the program under test answered %[2]s for $%[1]s, but the value on the connection was %[3]s", name, transcript.Quote(known[name]), transcript.Quote(v))
			}
		}
		return p, note, true
	}
	if failed != nil {
		note += "; the program under test: " + failed.Error()
	}
	return p, note, true
}
