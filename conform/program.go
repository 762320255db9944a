package conform

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
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

// uniqueNames returns the values of unique for the names in the tasks, except for names to which an earlier answer gives a
// value.
func (e *driverScript) uniqueNames(unique func(string) string) map[string]string {
	names, inAnswers := map[string]string{}, map[string]bool{}
	for i, task := range e.tasks {
		for _, a := range task {
			if a.Kind == transcript.Name && names[a.Name] == "" && !inAnswers[a.Name] {
				names[a.Name] = unique(a.Name)
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
func (e *driverScript) run(known map[string]string, d *play.Driver) error {
	defer d.Tasks.Close()
	for i, task := range e.tasks {
		line, err := taskText(task, known)
		if err != nil {
			return err
		}
		if d.Send(line) != nil {
			return fmt.Errorf("the program under test exited before it read the task %q", line)
		}
		answer, ok := <-d.Answers
		if !ok {
			return fmt.Errorf("the program under test exited before it answered the task %q", line)
		}
		words, err := transcript.ParseWords(answer)
		if len(words) >= 2 && words[0] == "error" && words[1] == "unsupported" {
			return fmt.Errorf("%w %q", errUnsupported, line)
		}
		if i < len(e.answers) && (err != nil || !transcript.MatchWords(e.answers[i], words, known, nil)) {
			return fmt.Errorf("task %q: expected the answer %q, got %q", line, transcript.FormatArgs(e.answers[i]),
				shortened(answer))
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

func shortened(s string) string {
	if len(s) > 200 {
		return s[:200] + "..."
	}
	return s
}

// performProgram runs a case that tests a program, with a relay between the program and the server at addr. note is the
// reason for a failure, or "". able is false if the program does not support a task; the result is then meaningless.
func (r *Runner) performProgram(ctx context.Context, c *Case, script *transcript.Script, addr string, dial play.Dialer,
	o play.Options) (p *play.Result, note string, able bool) {
	ln, err := transport.Listen(transport.Local(addr), nil)
	if err != nil {
		return &play.Result{}, err.Error(), true
	}
	defer ln.Close()
	ctx, cancel := context.WithCancel(ctx)
	o.Names = c.driver.uniqueNames(o.Unique)
	known := maps.Clone(o.Names)
	d := play.Drive(ctx, r.Programs[c.Program], transport.Name(ln))
	var failed, unmet, unable error
	ended := make(chan struct{})
	o.StartupTimeout, o.Exited = startupTimeout, d.Exited
	go func() {
		defer close(ended)
		if unmet = c.driver.run(known, d); errors.Is(unmet, errUnsupported) {
			unable = unmet
			cancel()
		}
		for range d.Answers { // until the program exits
		}
	}()
	p = play.Proxy(ctx, script, dial, c.Program, ln, o)
	wait := time.Duration(0)
	switch {
	case p.Failure == nil:
		wait = cmp.Or(o.Timeout, play.DefaultTimeout) + endTime
	case p.Failure.Reason == play.Ended: // perhaps because the program has exited
		wait = endTime
	}
	if wait > 0 {
		t := time.NewTimer(wait)
		select {
		case <-ended:
		case <-t.C:
			if p.Failure == nil {
				note = "the program under test did not exit after its last task"
			}
		}
		t.Stop()
	}
	exited := false
	select {
	case <-ended:
		exited = true
	default:
	}
	cancel()
	d.Tasks.Close()
	<-ended
	// After a wrong message, the relay closes its connections. What the program does then is not a further failure.
	if f := p.Failure; exited && (f == nil || f.Event == nil || f.Reason == play.Ended) {
		failed = d.Err
	} else {
		unmet = nil
	}
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
				note = fmt.Sprintf("the program under test answered %[2]s for $%[1]s, but the value on the connection was %[3]s",
					name, transcript.Quote(known[name]), transcript.Quote(v))
			}
		}
		return p, note, true
	}
	if failed != nil {
		note += "; the program under test: " + failed.Error()
	}
	return p, note, true
}
