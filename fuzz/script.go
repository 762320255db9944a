package fuzz

import (
	"bytes"
	"context"
	"net"
	"slices"
	"time"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/internal/target"
	"jobwire/internal/watch"
	"jobwire/play"
)

// describe performs a finding once more, for its record, and writes it as a transcript that a
// server without the fault plays through.
func (f *Fuzzer) describe(fd *Finding) {
	// On a busy machine a fresh server may be out of reach for once.
	for n := 0; n < 3 && (fd.Record == nil || len(fd.Record.Events) == 0); n++ {
		if fd.Fault.Oracle != Memory && fd.Fault.Oracle != Descriptors {
			r, _ := f.lab.perform(fd.Conv)
			fd.Record = r.clone()
		} else if f.lab.ready() == nil {
			f.lab.used = true
			fd.Record = f.lab.x.perform(fd.Conv, "").clone()
		}
	}
	var right *Record
	var ref *lab
	if f.cfg.Reference != nil && fd.Record != nil {
		ref = f.reference()
		defer ref.close()
		if r, v := ref.perform(fd.Conv); v == nil {
			right = r.clone()
		}
	}
	for i, w := range []scripter{{short: true}, {short: true, exact: true}, {}, {past: true}, {past: true, exact: true}, {met: true, short: true, exact: true}, {leaves: true}, {thorough: true}, {full: true}, {full: true, short: true, exact: true}} {
		w.p, w.d, w.fd, w.right = f.cfg.Protocol, dialectOf(f.cfg.Protocol), fd, right
		script := w.write()
		if i == 0 {
			fd.Script, fd.Text = script, text(script)
		}
		if script == nil || ref == nil || f.stopped() {
			return
		}
		if fd.Plays = f.tells(script, ref); fd.Plays {
			if len(script.Steps) > atAGlance {
				script = f.prune(script, ref)
			}
			fd.Script, fd.Text = script, text(script)
			return
		}
	}
}

// tells reports whether a script tells the server with the fault from the one without.
func (f *Fuzzer) tells(s *transcript.Script, ref *lab) bool {
	ok := f.plays(s, ref)
	for n := 0; ok && n < 2; n++ {
		ok = !f.plays(s, f.lab)
	}
	return ok
}

// atAGlance is how many steps of a script are no trouble to read.
const atAGlance = 7

// prune leaves out what the server says where it need not be waited for.
func (f *Fuzzer) prune(s *transcript.Script, ref *lab) *transcript.Script {
	for i := len(s.Steps) - 2; i >= 0 && !f.stopped(); i-- {
		if s.Steps[i].From != codec.Server {
			continue
		}
		less := *s
		less.Steps = slices.Delete(slices.Clone(s.Steps), i, i+1)
		if _, err := transcript.Parse(s.Protocol, s.File, text(&less)); err != nil || !f.tells(&less, ref) {
			continue
		}
		s = &less
	}
	return s
}

// plays reports whether a fresh server plays a script through, and nothing is amiss with it then.
func (f *Fuzzer) plays(s *transcript.Script, l *lab) bool {
	if l.ready() != nil {
		return false
	}
	l.used = true
	dial := func(ctx context.Context, _ transcript.Actor) (net.Conn, error) { return target.Dial(ctx, l.t) }
	perform := func() error {
		r := play.Peers(l.ctx, s, dial, play.Options{Timeout: max(time.Second, f.cfg.Patience), Codec: codec.Options{Waive: l.cfg.Known.Waive}})
		if r.Failure != nil {
			return r.Failure
		}
		return nil
	}
	if perform() != nil || verdict(l.t, nil) != nil {
		return false
	}
	what := s.Value("watch")
	if what == "" {
		return true
	}
	amiss, err := watch.After(what, l.t, perform)
	return amiss == "" && err == nil
}

// text writes a script in line form, or byte by byte if that could not be read back.
func text(s *transcript.Script) []byte {
	if s == nil {
		return nil
	}
	var b bytes.Buffer
	if transcript.Lines(&b, s) != nil {
		return nil
	}
	return b.Bytes()
}

// Events returns the conversation as it went, every byte of it.
func (fd *Finding) Events(p *codec.Protocol) []play.Event {
	w := scripter{p: p, d: dialectOf(p), fd: fd}
	w.cast()
	var all []play.Event
	if fd.Record == nil {
		return nil
	}
	events := fd.Record.asSent()
	for i := range events {
		e := &events[i]
		if e.Conn >= len(w.roles) || e.Verb == transcript.Nothing {
			continue
		}
		all = append(all, play.Event{At: e.At, Actor: w.actor(e.Conn), From: e.From, Verb: e.Verb, Err: e.Err, Step: e.Step,
			Frame: codec.Frame{Type: e.Type, From: e.From, Raw: e.Raw}})
	}
	return all
}
