package fuzzcmd

import (
	"bytes"
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"jobwire/cmd/internal/cli"
	"jobwire/fuzz/report"
	"jobwire/fuzz/triage"
	"jobwire/internal/target"
)

// evidence describes how often a finding was observed and reproduced, and how often its command repeats it.
func (out *fuzzOutput) evidence(fd *triage.Finding, c check) string {
	fixed := out.o.target.Addr != ""
	observed := "Observed once in the run"
	if fd.Count > 1 {
		observed = fmt.Sprintf("Observed %d times in the run", fd.Count)
	}
	switch {
	case fd.Tried == 0:
		return "Candidate: observed once. The run ended before fuzz could try to reproduce it."
	case fd.Reproduced && fixed:
		return fmt.Sprintf("Reproduced in %d of %d attempts on the same server.", fd.Shown, fd.Tried)
	case fd.Reproduced:
		text := fmt.Sprintf("Reproduced in %d of %d attempts, each on a newly started server.", fd.Shown, fd.Tried)
		if c.repeated < c.runs {
			text += fmt.Sprintf(" The command repeated it in %d of %s.", c.repeated, cli.Counted(c.runs, "attempt"))
		} else if c.runs == 0 && out.checks.more != nil {
			text += " The run ended before fuzz could run the command."
		}
		return text
	case fixed:
		return observed + ". To try again, fuzz would have to restart the server, which it cannot do with --addr."
	case fd.Inputs == 0:
		return observed + ", before fuzz had sent anything to the server."
	case c.runs == 0:
		return observed + "; the run ended before fuzz could try to repeat it on a new server."
	case c.repeated == 0:
		return fmt.Sprintf("%s; new servers did not repeat it in %s.", observed, cli.Counted(c.runs, "attempt"))
	}
	return fmt.Sprintf("%s; the command repeated it in %d of %s, each on a newly started server.", observed, c.repeated,
		cli.Counted(c.runs, "attempt"))
}

// commandWays are the commands that may repeat a finding.
const (
	playing   = "play"    // the transcript
	replaying = "replay"  // the log
	fuzzing   = "mutants" // of the messages
)

// way returns the command for a finding: the one that repeats it best, or else the one that most likely does.
func way(fd *triage.Finding, c check) string {
	switch {
	case c.repeated > 0:
		return c.way
	case fd.Reproduced && fd.Plays:
		return playing
	case fd.Tried > 0 && fd.Inputs > 0 && fd.Log != nil && len(fd.Log.Entries) > 0:
		return replaying
	case fd.Reproduced || len(fd.Text) == 0:
		return fuzzing
	}
	return playing
}

// command returns the command line that repeats a finding in one of the ways. path is the file of the transcript, or ""
// if it is not saved.
func (out *fuzzOutput) command(fd *triage.Finding, path, way string) []string {
	if path == "" {
		way = fuzzing
	}
	words := []string{"jobwire", "fuzz", out.sys.Protocol.Name}
	switch way {
	case playing:
		words = []string{"jobwire", "play", path, "--timeout", max(time.Second, out.o.timeout).String()}
		for _, rule := range out.waive {
			words = append(words, "--waive", string(rule))
		}
	case replaying:
		words = []string{"jobwire", "fuzz", "replay", out.sys.Protocol.Name, strings.TrimSuffix(path, ".wire") + ".log"}
	default:
		if len(fd.Text) > 0 && path != "" {
			words = append(words, "--seed-file", path)
		}
		words = append(words, "--seed", strconv.FormatUint(out.o.seed, 10))
		if out.o.profile != "" {
			words = append(words, "--profile", out.o.profile)
		}
	}
	switch t := &out.o.target; {
	case t.Addr != "":
		words = append(words, "--addr", t.Addr)
		if way != playing && out.o.remote {
			words = append(words, "--allow-remote")
		}
	case t.Exec != "":
		words = append(words, "--exec", t.Exec)
	}
	return words
}

// describe converts a finding for the reports. file is the name of its transcript.
func (out *fuzzOutput) describe(fd *triage.Finding, file string) *report.Finding {
	p, v, c := out.sys.Protocol, fd.Fault, out.checks.of(fd)
	shown := *fd
	if shown.Reproduced = fd.Reproduced || c.repeated > 0; c.log != nil {
		shown.Log, shown.Inputs = c.log, len(c.log.Entries)
	}
	f := &report.Finding{
		Name: fd.Name, Severity: fd.Severity(p).String(), Level: fd.Severity(p).Level(), Title: fd.Title(p),
		Impact: shown.Impact(p),
		Oracle: v.Oracle, Signal: v.Signal, Stack: v.Stack, Text: v.Text, Output: v.Output,
		Reproduced: shown.Reproduced, Observed: fd.Count, Shown: fd.Shown, Tried: fd.Tried, Evidence: out.evidence(fd, c),
		Plays: fd.Plays, Inputs: shown.Inputs, Runs: c.runs, Repeated: c.repeated,
		Command: target.Join(out.command(fd, file, way(fd, c))), File: file,
		Transcript: cmp.Or(shown.Conversation(p), string(body(fd))),
	}
	if r := p.Rule(v.Rule); r != nil {
		f.Rule, f.RuleLevel, f.RuleSection, f.RuleText = string(r.ID), string(r.Level), r.Section, r.Text
	}
	return f
}

// body returns the transcript of a finding without the header above its steps.
func body(fd *triage.Finding) []byte {
	if _, steps, ok := bytes.Cut(fd.Text, []byte("\n\n")); ok {
		return steps
	}
	return fd.Text
}
