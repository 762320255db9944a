package conform

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/internal/verdict"
	"jobwire/play"
)

// symptom is a possible cause of a failed case. Cases with the same kind and key have the symptom in common.
type symptom struct {
	kind    CauseKind
	key     string
	text    string
	rule    codec.RuleID
	precise bool // cases that only test the same rule have other causes
}

// symptomKey identifies a symptom.
type symptomKey struct {
	kind CauseKind
	key  string
}

func (s *symptom) id() symptomKey { return symptomKey{s.kind, s.key} }

// one returns a single symptom.
func one(kind CauseKind, key, text string) []symptom {
	return []symptom{{kind: kind, key: key, text: text}}
}

// symptoms returns the possible causes of a result, or nil if the case passed, was skipped or did not run.
func (r *Result) symptoms() []symptom {
	switch {
	case r.Crash != nil && (r.Verdict == verdict.Crashed || r.ExcusedCrash()):
		key := r.Crash.key()
		if key == "" { // cases about different rules probably reveal different faults
			key = r.Crash.Exit + string(r.Rule())
		}
		return one(CauseCrash, key, r.Crash.title())
	case r.Verdict == verdict.Crashed:
		return one(CauseCrash, "", "the target crashed")
	case r.Verdict == verdict.Hung:
		text := "the target answers no request on a new connection" + lastRequest(r.Case, r.Play).after()
		return one(CauseHang, text, text)
	case r.lacking != nil:
		return one(CauseMissing, r.lacking.Name, r.lacks)
	case r.Verdict == verdict.Inconsistent:
		return append(failureSymptoms(r.Case, r.Play), one(CauseInconsistent, "", r.Note)...)
	case r.Verdict == verdict.Unexpected:
		return one(CauseUnexpectedPass, "", "the profile lists cases as failing that passed")
	case r.Verdict == verdict.Inconclusive && r.setup != nil:
		_, p := r.Conversation()
		return append(one(CauseSetup, r.setup.name, r.Note), failureSymptoms(r.Case, p)...)
	case r.Verdict == verdict.Inconclusive && r.Play != nil && r.Play.Failure != nil &&
		r.Play.Failure.Reason == play.TooLate:
		return one(CauseInconclusive, "late", "the target replies too late for the time limits of the cases")
	case r.Verdict == verdict.Inconclusive && r.Play != nil && r.Play.Failure != nil && r.Play.Failure.Waited > 0:
		return one(CauseInconclusive, "slow", "the machine that runs jobwire was too slow for the time limits of the cases")
	case r.Verdict == verdict.Inconclusive:
		return one(CauseInconclusive, "", r.Note)
	case r.Verdict == verdict.Failed:
		all := failureSymptoms(r.Case, r.Play)
		if len(all) > 0 && (all[0].kind == CauseDisconnect || all[0].kind == CauseInvalidMessage || all[0].precise) {
			return all
		}
		return append(all, brokenRule(CauseRule, r.Case, r.Rule(), r.Note))
	}
	return nil
}

// Conversation returns the run in which the case or its setup failed, and its transcript, or nil. If the target does
// something wrong in the setup, that run shows why the case is inconclusive.
func (r *Result) Conversation() (*transcript.Script, *play.Result) {
	if s := r.setup; s != nil && s.failed != nil && (r.Play == nil || r.Play.Failure == nil || len(s.breaks) > 0) {
		return s.failed.script, s.failed.Result
	}
	return r.Performed(), r.Play
}

// brokenRule returns the symptom for a broken rule.
func brokenRule(kind CauseKind, c *Case, id codec.RuleID, note string) symptom {
	level := ""
	if rule := c.Script.Protocol.Rule(id); rule != nil {
		level = fmt.Sprintf(" (%s)", rule.Level)
	}
	return symptom{kind: kind, key: string(id), text: fmt.Sprintf("rule %s%s: %s", id, level, note), rule: id}
}

// failureSymptoms returns the behavior of the target that made the case fail, if the failure shows it.
func failureSymptoms(c *Case, p *play.Result) []symptom {
	if p == nil || p.Failure == nil {
		return nil
	}
	f := p.Failure
	last := lastRequest(c, p)
	sent, after := last.String(), last.after()
	accepted := accepts(c, f, last)
	switch {
	case accepted != nil && f.Event != nil && isAnswer(c.Script.Protocol, f.Event.Frame.Type):
		return []symptom{*accepted}
	case f.Rule() != "":
		invalid := brokenRule(CauseInvalidMessage, c, f.Rule(), f.Text)
		if accepted != nil { // the codec accepts no reply to what the target read in the message
			return []symptom{*accepted, invalid}
		}
		return []symptom{invalid}
	case f.Reason == play.Ended, f.Reason == play.CannotSend &&
		(errors.Is(f.Err, syscall.ECONNRESET) || errors.Is(f.Err, syscall.EPIPE)):
		return one(CauseDisconnect, sent, "the target closed the connection"+after)
	case f.Reason == play.CannotSend && f.Waited > 0:
		return one(CauseNoReply, "unread", "the target does not read what it is sent")
	case nothingSent(f):
		var all []symptom
		if answers(last.legal(), f.Step) {
			all = one(CauseNoReply, sent, fmt.Sprintf("no reply to %s within %v", sent, f.Waited))
		}
		text := fmt.Sprintf("expected %s, got nothing within %v", f.Wanted(), f.Waited)
		all = append(all, one(CauseNoReply, unsent+f.Wanted(), text)...)
		if accepted != nil { // the target may have read a command that waits
			all = append(all, *accepted)
		}
		return all
	case f.Diff != nil && f.Diff.Field == "arguments" && absent(f) != "":
		name := messageName(&f.Event.Frame)
		text := fmt.Sprintf("%s has no %s", name, absent(f))
		return []symptom{{kind: CauseWrongReply, key: text, text: text + after, precise: true}}
	case f.Diff != nil && f.Event.Frame.Type.Does != codec.Refuse: // refusals of two messages are two causes
		name := messageName(&f.Event.Frame)
		return one(CauseWrongReply, name+"."+f.Diff.Field, fmt.Sprintf("unexpected %s%s: %s", name, after, f.Text))
	case f.Reason == play.Mismatched && f.Event != nil && f.Event.Frame.Type != nil:
		name := messageName(&f.Event.Frame)
		return one(CauseWrongReply, name+after, fmt.Sprintf("unexpected %s%s: %s", name, after, f.Text))
	}
	return nil
}

// accepts returns the symptom that the target accepts the last message that was sent, although it breaks a rule, or
// nil. A refusal that answers only requests of its type shows that the target has accepted the form of the message.
func accepts(c *Case, f *play.Failure, last request) *symptom {
	e := last.fault
	if e == nil || f.Event != nil && f.Event.Frame.Type != nil && f.Event.Frame.Type.Does == codec.Refuse &&
		(last.kind == nil || c.Script.Protocol.IsGeneralError(f.Event.Frame.Type)) {
		return nil
	}
	text := fmt.Sprintf("the target accepts a message that breaks it (%s): %s", e.Detail, f.Text)
	s := brokenRule(CauseWrongReply, c, e.Rule, text)
	if s.key, s.precise = "accepts "+s.key, true; e.Field == atEnd {
		s.key += " " + atEnd
	}
	return &s
}

// absent returns the first value that a step expects of a list or of statistics and that the received message does not
// contain, such as "current-jobs-ready" or "$tube", or "".
func absent(f *play.Failure) string {
	rest := func(a transcript.Arg) bool { return a.Kind == transcript.Rest }
	for _, c := range f.Step.Choices {
		if c.Verb != transcript.Send || c.Type != f.Event.Frame.Type || !slices.ContainsFunc(c.Args, rest) {
			continue
		}
		for _, a := range c.Args {
			switch a.Kind {
			case transcript.Literal:
				return string(a.Value)
			case transcript.Name:
				return "$" + a.Name
			}
		}
	}
	return ""
}

// isAnswer reports whether t is a reply to particular requests, unlike a general error.
func isAnswer(p *codec.Protocol, t *codec.Type) bool {
	answers := func(request *codec.Type) bool { return slices.Contains(request.Answers, t) }
	return t != nil && slices.ContainsFunc(p.Types, answers)
}

// answers reports whether a step expects a reply to a message of type t.
func answers(t *codec.Type, st *transcript.Step) bool {
	return t != nil && slices.ContainsFunc(st.Choices, func(c transcript.Choice) bool {
		return c.Verb == transcript.Send && slices.Contains(t.Answers, c.Type)
	})
}

// request is the last message that a peer sent on the connection on which a case failed. It is the last message on any
// connection if that connection has none, or if a message is missing that is not a reply to it.
type request struct {
	event *play.Event  // nil: no peer sent a message
	kind  *codec.Type  // type, also of a message that was sent as raw bytes; nil if it is not known
	fault *codec.Error // what is wrong with a message that was sent as raw bytes, or nil
}

// lastRequest returns the last request of a run of a case. p may be nil.
func lastRequest(c *Case, p *play.Result) (r request) {
	if p == nil {
		return r
	}
	for i := range slices.Backward(p.Events) {
		ev := &p.Events[i]
		if ev.From != codec.Peer || ev.Verb > transcript.Raw {
			continue
		}
		own := p.Failure == nil || ev.Actor == p.Failure.Step.Peer
		other := nothingSent(p.Failure) && ev.Frame.Type != nil && !answers(ev.Frame.Type, p.Failure.Step)
		if r.event == nil || own && !other {
			r.event = ev
		}
		if own {
			break
		}
	}
	if r.kind = r.legal(); r.event != nil && r.kind == nil {
		r.kind, r.fault = illegal(c, rawBytes(p, r.event.Actor))
	}
	return r
}

// nothingSent reports whether the target did not send the message that a step expects.
func nothingSent(f *play.Failure) bool {
	return f != nil && f.Reason == play.TimedOut && f.Event == nil
}

// legal returns the type of a request that was not sent as raw bytes, or nil.
func (r request) legal() *codec.Type {
	if r.event == nil {
		return nil
	}
	return r.event.Frame.Type
}

// String returns the name of the request, or "" if there is none. A message with a fault is named by the rule that it
// breaks.
func (r request) String() string {
	switch {
	case r.event == nil:
		return ""
	case r.legal() != nil:
		return messageName(&r.event.Frame)
	case r.fault != nil && r.fault.Detail != incomplete:
		return "a message that breaks " + string(r.fault.Rule)
	}
	return "raw bytes"
}

// after returns " after" and the name of the request, or "".
func (r request) after() string {
	if r.event == nil {
		return ""
	}
	return " after " + r.String()
}

// rawBytes returns what an actor sent since its last message that was not sent as raw bytes. It returns nil if a part
// of it is not known.
func rawBytes(p *play.Result, actor transcript.Actor) (b []byte) {
	for i := range p.Events {
		ev := &p.Events[i]
		switch {
		case ev.Actor != actor || ev.From != codec.Peer || ev.Verb > transcript.Raw:
		case ev.Cut > 0:
			return nil
		case ev.Frame.Type != nil:
			b = nil
		default:
			b = append(b, ev.Frame.Raw...)
		}
	}
	return b
}

// illegal returns the type of the last message in b, and what is wrong with it, or nil. An incomplete message breaks
// the rule that the case tests.
func illegal(c *Case, b []byte) (t *codec.Type, e *codec.Error) {
	session := c.Script.Protocol.NewSession(codec.Options{})
	for len(b) > 0 {
		var f codec.Frame
		n, err := session.Decode(codec.Peer, b, &f)
		if t = f.Type; err == codec.ErrShort {
			return t, &codec.Error{Rule: c.Rules[0], Detail: incomplete}
		}
		if e = nil; errors.As(err, &e) && len(bytes.TrimRight(b[min(e.Offset, n, len(b)):min(n, len(b))], "\r\n")) == 0 {
			e = &codec.Error{Rule: e.Rule, Detail: e.Detail, Field: atEnd}
		}
		if n <= 0 || n > len(b) || e != nil && e.Fatal {
			break
		}
		b = b[n:]
	}
	return t, e
}

// Parts of errors that illegal returns: the detail of an incomplete message, and the field of an error at the end of
// a message, where something is missing.
const (
	incomplete = "it is incomplete"
	atEnd      = "end"
)

// messageName returns the name of the type of a message. For types with many commands, it appends the first word of the
// first argument.
func messageName(f *codec.Frame) string {
	name := f.Type.Name
	if (f.Type.Worded || f.Type.AnyCommand) && len(f.Arg(0)) > 0 {
		if word, _, _ := strings.Cut(string(f.Arg(0)), " "); word != "" && len(word) <= maxWord {
			name += " " + word
		}
	}
	return name
}

// maxWord is the maximum length, in bytes, of a word that messageName appends.
const maxWord = 40
