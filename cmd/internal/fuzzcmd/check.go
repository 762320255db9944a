package fuzzcmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"jobwire/cmd/internal/cli"
	"jobwire/codec/transcript"
	"jobwire/fuzz/input"
	"jobwire/fuzz/triage"
)

// checker runs the printed commands of findings while the run goes on, one after the other, to find out which command
// repeats a finding best, and how often. The zero value checks nothing.
type checker struct {
	try func(context.Context, *triage.Finding) check
	end func() // ends the last command and waits for it

	mu      sync.Mutex // protects the fields below
	waiting []*triage.Finding
	more    chan struct{} // receives a value when a finding waits; nil: nothing is checked
	results map[*triage.Finding]check
}

// check is the result for one finding.
type check struct {
	way            string     // the command
	runs, repeated int        // of the command
	log            *input.Log // the part of the log that the command needs; nil: all of it
}

// start begins to check the commands of the findings that are added.
func (c *checker) start(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	c.more, c.results = make(chan struct{}, 1), map[*triage.Finding]check{}
	c.end = func() {
		cancel()
		<-ended
	}
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			fd := c.next()
			if fd == nil {
				select {
				case <-c.more:
				case <-ctx.Done():
				}
				continue
			}
			if result := c.try(ctx, fd); ctx.Err() == nil {
				c.mu.Lock()
				c.results[fd] = result
				c.mu.Unlock()
			}
		}
	}()
}

// next removes and returns a finding whose command is not checked yet, or nil. Reproduced findings come first, because
// triage may still reproduce the others.
func (c *checker) next() *triage.Finding {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiting) == 0 {
		return nil
	}
	at := max(0, slices.IndexFunc(c.waiting, func(fd *triage.Finding) bool { return fd.Reproduced }))
	fd := c.waiting[at]
	c.waiting = slices.Delete(c.waiting, at, at+1)
	return fd
}

// add adds a finding.
func (c *checker) add(fd *triage.Finding) {
	if c.more == nil {
		return
	}
	c.mu.Lock()
	c.waiting = append(c.waiting, fd)
	c.mu.Unlock()
	select {
	case c.more <- struct{}{}:
	default:
	}
}

// drop removes a finding.
func (c *checker) drop(fd *triage.Finding) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = slices.DeleteFunc(c.waiting, func(o *triage.Finding) bool { return o == fd })
}

// of returns the result for a finding, or the zero value if it is not checked.
func (c *checker) of(fd *triage.Finding) check {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.results[fd]
}

// stop ends the checks. Findings that wait are not checked.
func (c *checker) stop() {
	if c.end != nil {
		c.end()
	}
}

const (
	checkRuns  = 3           // runs of a command
	checkLimit = time.Minute // of a run of a command
)

// check runs the command that plays a finding and, if it does not repeat the finding each time, the command that sends
// its log. If fuzz has not reproduced the finding, check tries the log first. It returns the better of the two.
func (out *fuzzOutput) check(ctx context.Context, fd *triage.Finding) check {
	dir, err := os.MkdirTemp("", "jobwire-fuzz")
	if err != nil {
		return check{}
	}
	defer os.RemoveAll(dir)
	ways := []func(context.Context, *triage.Finding, string) check{out.played, out.replayed}
	if !fd.Reproduced {
		slices.Reverse(ways)
	}
	var best check
	for _, try := range ways {
		if c := try(ctx, fd, dir); c.repeated > best.repeated || best.runs == 0 {
			best = c
		}
		if best.repeated == checkRuns {
			break
		}
	}
	return best
}

// played plays the transcript of a finding checkRuns times.
func (out *fuzzOutput) played(ctx context.Context, fd *triage.Finding, dir string) check {
	file, err := out.save(fd, dir)
	if err != nil || len(fd.Text) == 0 {
		return check{}
	}
	return check{way: playing, runs: checkRuns, repeated: out.repeated(ctx, fd, out.command(fd, file, playing))}
}

// replayed sends the last 1, 2, 4 and so on inputs in the log of a finding, and then the whole log, each checkRuns
// times. It returns the shortest end of the log that repeats the finding each time, or else most often.
func (out *fuzzOutput) replayed(ctx context.Context, fd *triage.Finding, dir string) (best check) {
	if fd.Log == nil || fd.Inputs == 0 {
		return best
	}
	part, all := *fd, len(fd.Log.Entries)
	for n := 1; n < 2*all && best.repeated < checkRuns && ctx.Err() == nil; n *= 2 {
		part.Log = fd.Log.Last(min(n, all))
		file, err := out.save(&part, dir)
		if err != nil {
			return best
		}
		c := check{way: replaying, runs: checkRuns, repeated: out.repeated(ctx, fd, out.command(fd, file, replaying)),
			log: part.Log}
		if c.repeated > best.repeated || best.runs == 0 {
			best = c
		}
	}
	if best.repeated == 0 {
		best.log = nil
	}
	return best
}

// repeated runs a command line checkRuns times, at the same time, and returns how often it has repeated a finding.
func (out *fuzzOutput) repeated(ctx context.Context, fd *triage.Finding, words []string) int {
	var all sync.WaitGroup
	var n atomic.Int64
	for range checkRuns {
		all.Go(func() {
			if out.repeats(ctx, fd, words) {
				n.Add(1)
			}
		})
	}
	all.Wait()
	return int(n.Load())
}

// repeats runs a command line of this program and reports whether it has repeated a finding: its exit status says that
// something failed, and it has printed what shows the same failure.
func (out *fuzzOutput) repeats(ctx context.Context, fd *triage.Finding, words []string) bool {
	self, err := os.Executable()
	if err != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, checkLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, self, words[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // the command stops its server
	cmd.WaitDelay = time.Second
	printed, err := cmd.CombinedOutput()
	status, exited := errors.AsType[*exec.ExitError](err)
	return ctx.Err() == nil && exited && status.ExitCode() == cli.StatusFailed && shows(printed, fd, words)
}

// shows reports whether a command has printed what shows a finding: 'jobwire play' fails at the step at which the
// transcript failed before, and 'jobwire fuzz replay' reports a fault with the severity of the finding. If the server
// ended, any step may be the first without a reply.
func shows(printed []byte, fd *triage.Finding, words []string) bool {
	switch {
	case words[1] != "play":
		return bytes.Contains(printed, []byte(triage.FaultSeverity(fd.Fault).String()+": "))
	case !fd.Plays || fd.FailsAt < 0 || fd.Fault.Ends():
		return true
	}
	text, err := os.ReadFile(words[2])
	if err != nil {
		return false
	}
	scripts, err := transcript.Parse(fd.Script.Protocol, words[2], text)
	return err == nil && len(scripts) == 1 && fd.FailsAt < len(scripts[0].Steps) &&
		bytes.Contains(printed, fmt.Appendf(nil, ": failed at line %d, ", scripts[0].Steps[fd.FailsAt].Line))
}
