package triage

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/fuzz/exec"
	"jobwire/fuzz/input"
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
		defer ref.discard()
		if r, v := ref.execute(fd.Input); v == nil {
			right = r.Clone()
			if fd.Jobs = extraJobs(fd.Fault, right, fd.Record); fd.Jobs == 0 && e.losesJobs(fd, ref) {
				fd.Jobs = -1
			}
		}
	}
	fd.Fault = withoutProbes(e.cfg.Barrier, fd.Input, fd.Fault)
	until := time.Now().Add(maxWriting)
	failure := transcribe.Failure{Name: fd.Name, Barrier: e.cfg.Barrier, Input: fd.Input, Fault: fd.Fault,
		Record: fd.Record,
		Right:  right}
	for i, form := range transcribe.Forms {
		script := failure.Script(form)
		if i == 0 {
			fd.Script, fd.Text = script, transcribe.Text(script)
		}
		if script == nil || ref == nil || e.stopped() || i > 0 && time.Now().After(until) {
			return
		}
		if fd.FailsAt, fd.Plays = e.reproduces(script, fd.Fault, ref, failure.Sent); fd.Plays {
			if len(script.Steps) > shortScript && fd.Input.Waits() < time.Second {
				script, fd.FailsAt = e.pruneScript(script, fd.Fault, ref, failure.Sent, fd.FailsAt)
			}
			fd.Script, fd.Text = script, transcribe.Text(script)
			return
		}
	}
}

// losesJobs reports whether workers can get fewer of the jobs that the server has accepted than those of the reference
// server ref: it runs the input of a wrong reply to its end, and then a worker that requests the jobs.
func (e *examiner) losesJobs(fd *Finding, ref *replayer) bool {
	in := input.TraitsOf(e.cfg.Protocol).Collect(fd.Input)
	if in == nil || FaultSeverity(fd.Fault) != WrongAnswer {
		return false
	}
	accepted, assigned := e.replay.jobs(in)
	all, right := ref.jobs(in)
	return accepted == all && assigned >= 0 && assigned < right
}

// jobs runs an input, past wrong replies, on a new server. It returns how often the server has accepted and assigned a
// job. The numbers are -1 if another fault ends the input.
func (l *replayer) jobs(in *input.Input) (accepted, assigned int) {
	if l.used = true; l.ready() != nil {
		return -1, -1
	}
	l.used, l.x.Crashes = true, true
	r := l.x.Execute(in, l.prefix())
	l.x.Crashes = false
	if exec.Verdict(l.t, r.Fault) != nil {
		return -1, -1
	}
	for i := range r.Events {
		switch e := &r.Events[i]; {
		case e.From != codec.Server || e.Type == nil:
		case e.Type.Does == codec.Accept:
			accepted++
		case e.Type.Does == codec.Assign:
			assigned++
		}
	}
	return accepted, assigned
}

// reproduces reports whether a script passes on the reference server and fails twice on the server under test, because
// of the fault and at the same step, which it returns: -1 if the process of the server shows the fault. sent is the
// number of messages of the peers up to the one that leads to the fault: a script that fails before fails for another
// reason. reproduces returns false if no server can be started, such as after the end of the run.
func (e *examiner) reproduces(s *transcript.Script, fault *exec.Fault, ref *replayer, sent int) (step int, ok bool) {
	if passes, _, err := e.playOnNew(s, ref); err != nil || !passes {
		return 0, false
	}
	for n := range 2 {
		passes, r, err := e.playOnNew(s, e.replay)
		if err != nil || passes || e.stopped() {
			return 0, false
		}
		at := -1
		if r.Failure != nil {
			if at = r.Failure.Index; transcribe.Sent(s.Steps[:at]) < sent || !e.shows(fault, r) {
				return 0, false
			}
		}
		if n > 0 && at != step {
			return 0, false
		}
		step = at
	}
	return step, true
}

// shows reports whether a script has failed because of a fault: after the last message of the peers, the server has
// sent the wrong message of the fault or, if the fault is that it sends nothing, at most the reply to a barrier.
func (e *examiner) shows(fault *exec.Fault, r *play.Result) bool {
	if fault.Ends() || fault.Oracle == exec.Framing || fault.Oracle == exec.Disclosure {
		return true
	}
	if ev := r.Failure.Event; fault.Got == "" {
		return ev == nil || ev.Verb != transcript.Send || ev.Frame.Type == e.cfg.Barrier.Reply
	}
	for i := len(r.Events) - 1; i >= 0 && r.Events[i].From == codec.Server; i-- {
		if ev := &r.Events[i]; ev.Verb == transcript.Raw || // the message is incomplete or malformed
			ev.Verb == transcript.Send && ev.Frame.Type.Does.String() == fault.Got {
			return true
		}
	}
	return false
}

// maxWriting limits the time for which forms of a transcript are tried. Each attempt takes as long as the pauses of the
// input.
const maxWriting = 15 * time.Second

// shortScript is the number of steps up to which a script is not shortened.
const shortScript = 7

// pruneScript removes the expectations without which the script still reproduces the failure. It returns the shorter
// script and the step that fails.
func (e *examiner) pruneScript(s *transcript.Script, fault *exec.Fault, ref *replayer,
	sent, failing int) (*transcript.Script, int) {
	for i := len(s.Steps) - 2; i >= 0 && !e.stopped(); i-- {
		if s.Steps[i].From != codec.Server {
			continue
		}
		less := *s
		less.Steps = slices.Delete(slices.Clone(s.Steps), i, i+1)
		if _, err := transcript.Parse(s.Protocol, s.File, transcribe.Text(&less)); err != nil {
			continue
		}
		if at, ok := e.reproduces(&less, fault, ref, sent); ok {
			s, failing = &less, at
		}
	}
	return s, failing
}

// playOnNew plays a script on a new server. It reports whether the script passes and no oracle reports a fault, and
// returns its result. The error is not nil if the script was not played.
func (e *examiner) playOnNew(s *transcript.Script, l *replayer) (passes bool, r *play.Result, err error) {
	checks, err := play.Checks(s)
	if err != nil {
		return false, nil, err
	}
	if err := l.ready(); err != nil {
		return false, nil, err
	}
	l.used = true
	dial := func(ctx context.Context, _ transcript.Actor) (net.Conn, error) { return target.Dial(ctx, l.t) }
	options := play.Options{Timeout: max(time.Second, e.cfg.Timeout), Codec: codec.Options{Waive: l.cfg.Known.Waive}}
	var w *watch.Watcher
	if len(checks) > 0 {
		if w, err = watch.New(l.t, checks); err != nil {
			return false, nil, err
		}
		options.Watch(w)
	}
	r = play.Peers(l.ctx, s, dial, options)
	if passes = r.Failure == nil && exec.Verdict(l.t, nil) == nil; !passes || w == nil {
		return passes, r, nil
	}
	options.Watch(nil)
	amiss, err := w.After(func() error { return play.Peers(l.ctx, s, dial, options).Err() })
	return amiss == "" && err == nil, r, nil
}

// Conversation returns what the peers and the server sent in the last execution, one message or action a line, and
// where the fault was observed. It leaves out the barriers, which are not needed for the fault. If the finding was not
// executed again, or needs several inputs, it returns a sentence for each of the last inputs before the fault.
func (fd *Finding) Conversation(p *codec.Protocol) string {
	if fd.Record == nil || len(fd.Record.Events) == 0 || fd.Inputs > 1 {
		return fd.sentences(p)
	}
	var b strings.Builder
	actors, v, marked := transcribe.Actors(p, fd.Input), fd.Fault, false
	mark := func() {
		if marked = true; v.Oracle == exec.Law || v.Oracle == exec.Framing || v.Oracle == exec.Disclosure || v.Ends() ||
			v.Oracle == exec.HangConn || v.Oracle == exec.HangAll {
			fmt.Fprintf(&b, "# here: %s\n", short(v.Text, maxMark))
		}
	}
	acted, left := map[int]bool{}, map[int]bool{} // connections on which a peer has acted, or that it has ended
	for _, e := range fd.Record.AsSent() {
		if e.Conn >= len(actors) || e.Barrier && !strings.Contains(v.Text, " "+probeName(e)+" ") ||
			e.Verb == transcript.Opens && !acted[e.Conn] ||
			e.From == codec.Server && e.Verb == transcript.Closes && left[e.Conn] {
			continue
		}
		if v.Step >= 0 && e.Step > v.Step && !marked {
			mark()
		}
		if e.From == codec.Peer {
			acted[e.Conn], left[e.Conn] = true, slices.Contains(input.Leaves, e.Verb)
		}
		if e.Verb == transcript.Nothing {
			if at := e.Step; at >= 0 && at < len(fd.Input.Steps) {
				fmt.Fprintf(&b, "# %v later\n", fd.Input.Steps[at].For)
			}
			continue
		}
		st := transcript.Step{Peer: actors[e.Conn], From: e.From, Choices: []transcript.Choice{fd.choice(p, &e)}}
		line, err := transcript.AppendStep(nil, p, &st)
		if err != nil {
			line = fmt.Appendf(nil, "%q\n", e.Raw)
		}
		b.Write(line)
	}
	if !marked {
		mark()
	}
	return b.String()
}

// maxMark is the maximum length of the text about a fault in a conversation, in characters.
const maxMark = 140

// probeName returns the name of the message type of a barrier or of its reply.
func probeName(e exec.Event) string {
	if e.Type == nil {
		return ""
	}
	return e.Type.Name
}

// choice returns an event of the last execution as a step of a transcript. A message that breaks a rule is shown with
// its arguments, as far as the input has them.
func (fd *Finding) choice(p *codec.Protocol, e *exec.Event) transcript.Choice {
	c := transcript.Choice{Verb: e.Verb, Type: e.Type, Bytes: e.Raw}
	if e.Verb > transcript.Raw {
		return c
	}
	values := e.Args
	if e.From == codec.Peer {
		var f codec.Frame
		var m codec.Message
		_, err := p.NewSession(codec.Options{WaiveAll: true}).Decode(codec.Peer, e.Raw, &f)
		switch {
		case e.Step >= 0 && e.Step < len(fd.Input.Steps) && fd.Input.Steps[e.Step].Type != nil &&
			(err != nil || e.Err != nil):
			m = fd.Input.Steps[e.Step].Message()
		case err == nil && e.Verb == transcript.Send:
			f.Message(&m)
		default:
			return transcript.Choice{Verb: transcript.Raw, Bytes: e.Raw}
		}
		c.Verb, c.Type, c.CRLF, values = transcript.Send, m.Type, m.CRLF, m.Args
	}
	if c.Verb == transcript.Send {
		c.Bytes = nil
		for _, v := range values {
			c.Args = append(c.Args, transcript.Arg{Value: v})
		}
	}
	return c
}

// sentences returns a line for each of the last inputs before the fault.
func (fd *Finding) sentences(p *codec.Protocol) string {
	var b strings.Builder
	entries := fd.logged()
	if fd.Inputs <= 1 && fd.Input != nil {
		entries = []input.Entry{{Input: fd.Input}}
	}
	from := max(0, len(entries)-max(fd.Inputs, 1))
	for i := range entries[from:] {
		fmt.Fprintf(&b, "%d. %s\n", i+1, sentence(p, &entries[from+i]))
	}
	return b.String()
}

// sentence says what the peers of an input do, each message with its arguments.
func sentence(p *codec.Protocol, e *input.Entry) string {
	var b strings.Builder
	actors, conn := transcribe.Actors(p, e.Input), -1
	for i := range e.Input.Steps {
		s := &e.Input.Steps[i]
		if s.Verb == transcript.Opens {
			continue
		}
		switch {
		case s.Verb == transcript.Nothing:
		case s.Conn != conn && conn >= 0:
			fmt.Fprintf(&b, "; %s ", actors[s.Conn].Name)
		case s.Conn != conn:
			b.WriteString(actors[s.Conn].Name + " ")
		default:
			b.WriteString(", ")
		}
		switch {
		case slices.Contains(input.Leaves, s.Verb):
			b.WriteString(s.Verb.String())
		case s.Verb == transcript.Nothing:
			fmt.Fprintf(&b, "; nothing for %v", s.For)
			continue
		default:
			if s.Conn != conn {
				b.WriteString("sends ")
			}
			b.WriteString(short(said(p, s, e.Prefix), maxSaid))
		}
		conn = s.Conn
	}
	return strings.TrimPrefix(b.String(), "; ")
}

// maxSaid is the maximum length of a message in a sentence, in characters.
const maxSaid = 70

// said returns the message of a step in the notation of transcripts.
func said(p *codec.Protocol, s *input.Step, prefix string) string {
	c := transcript.Choice{Verb: s.Verb, Type: s.Type,
		Bytes: bytes.ReplaceAll(s.Bytes, []byte(input.Placeholder), []byte(prefix))}
	for _, a := range s.Args {
		c.Args = append(c.Args, transcript.Arg{Value: bytes.ReplaceAll(a.Value, []byte(input.Placeholder), []byte(prefix))})
	}
	line, err := transcript.AppendStep(nil, p, &transcript.Step{Choices: []transcript.Choice{c}})
	if err != nil {
		return s.Verb.String()
	}
	_, text, _ := strings.Cut(string(line), ": ")
	return strings.TrimSpace(text)
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
