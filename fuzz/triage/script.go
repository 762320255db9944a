package triage

import (
	"context"
	"net"
	"slices"
	"time"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/fuzz/exec"
	"jobwire/fuzz/transcribe"
	"jobwire/internal/target"
	"jobwire/internal/watch"
	"jobwire/play"
)

// describe runs a finding again to record its messages, and writes a transcript that fails on the server and passes on
// the reference server. It tries several forms of the transcript.
func (e *examiner) describe(fd *Finding) {
	// On a busy machine, a new server may not be reachable at once.
	for n := 0; n < 3 && (fd.Record == nil || len(fd.Record.Events) == 0); n++ {
		if fd.Fault.Oracle != exec.Memory && fd.Fault.Oracle != exec.Descriptors {
			r, _ := e.replay.execute(fd.Input)
			fd.Record = r.Clone()
		} else if e.replay.ready() == nil {
			e.replay.used = true
			fd.Record = e.replay.x.Execute(fd.Input, "").Clone()
		}
	}
	var right *exec.Record
	var ref *replayer
	if e.cfg.Reference != nil && fd.Record != nil {
		ref = e.reference()
		defer ref.close()
		if r, v := ref.execute(fd.Input); v == nil {
			right = r.Clone()
			fd.LosesJob = losesJob(fd.Fault, right, fd.Record)
		}
	}
	until := time.Now().Add(maxWriting)
	failure := transcribe.Failure{Name: fd.Name, Barrier: e.cfg.Barrier, Input: fd.Input, Fault: fd.Fault, Record: fd.Record,
		Right: right}
	for i, form := range transcribe.Forms {
		script := failure.Script(form)
		if i == 0 {
			fd.Script, fd.Text = script, transcribe.Text(script)
		}
		if script == nil || ref == nil || e.stopped() || i > 0 && time.Now().After(until) {
			return
		}
		if fd.Plays = e.reproduces(script, ref); fd.Plays {
			if len(script.Steps) > shortScript && fd.Input.Waits() < time.Second {
				script = e.pruneScript(script, ref)
			}
			fd.Script, fd.Text = script, transcribe.Text(script)
			return
		}
	}
}

// reproduces reports whether a script passes on the reference server and fails twice on the server under test.
func (e *examiner) reproduces(s *transcript.Script, ref *replayer) bool {
	ok := e.passesOnNew(s, ref)
	for n := 0; ok && n < 2; n++ {
		ok = !e.passesOnNew(s, e.replay)
	}
	return ok
}

// maxWriting limits the time for which forms of a transcript are tried. Each attempt takes as long as the pauses of the
// input.
const maxWriting = 15 * time.Second

// shortScript is the number of steps up to which a script is not shortened.
const shortScript = 7

// pruneScript removes the expectations without which the script still reproduces the failure.
func (e *examiner) pruneScript(s *transcript.Script, ref *replayer) *transcript.Script {
	for i := len(s.Steps) - 2; i >= 0 && !e.stopped(); i-- {
		if s.Steps[i].From != codec.Server {
			continue
		}
		less := *s
		less.Steps = slices.Delete(slices.Clone(s.Steps), i, i+1)
		if _, err := transcript.Parse(s.Protocol, s.File, transcribe.Text(&less)); err != nil || !e.reproduces(&less, ref) {
			continue
		}
		s = &less
	}
	return s
}

// passesOnNew reports whether a script passes on a new server without a fault that an oracle reports.
func (e *examiner) passesOnNew(s *transcript.Script, l *replayer) bool {
	if l.ready() != nil {
		return false
	}
	l.used = true
	dial := func(ctx context.Context, _ transcript.Actor) (net.Conn, error) { return target.Dial(ctx, l.t) }
	options := play.Options{Timeout: max(time.Second, e.cfg.Timeout), Codec: codec.Options{Waive: l.cfg.Known.Waive}}
	execute := func() error {
		r := play.Peers(l.ctx, s, dial, options)
		if r.Failure != nil {
			return r.Failure
		}
		return nil
	}
	checks, err := play.Checks(s)
	if err != nil {
		return false
	}
	if len(checks) == 0 {
		return execute() == nil && exec.Verdict(l.t, nil) == nil
	}
	w, err := watch.New(l.t, checks)
	if err != nil {
		return false
	}
	if options.Watch(w); execute() != nil || exec.Verdict(l.t, nil) != nil {
		return false
	}
	options.Watch(nil)
	amiss, err := w.After(execute)
	return amiss == "" && err == nil
}

// Events returns the messages of the last execution, and the index of the message with which the fault was observed:
// the last message up to the step of the fault, on the connection of the fault if it is known. If there is no such
// message, the index is that of the last message.
func (fd *Finding) Events(p *codec.Protocol) (all []play.Event, at int) {
	if fd.Record == nil {
		return nil, -1
	}
	actors := transcribe.Actors(p, fd.Input)
	at = -1
	events := fd.Record.AsSent()
	for i := range events {
		e := &events[i]
		if e.Conn >= len(actors) || e.Verb == transcript.Nothing {
			continue
		}
		if v := fd.Fault; v != nil && (v.Conn < 0 || v.Conn == e.Conn) && (v.Step < 0 || e.Step >= 0 && e.Step <= v.Step) {
			at = len(all)
		}
		all = append(all, play.Event{At: e.At, Actor: actors[e.Conn], From: e.From, Verb: e.Verb, Err: e.Err, Step: e.Step,
			Frame: codec.Frame{Type: e.Type, From: e.From, Raw: e.Raw}})
	}
	if at < 0 {
		at = len(all) - 1
	}
	return all, at
}
