package triage

import (
	"bytes"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/fuzz/exec"
	"jobwire/fuzz/input"
	"jobwire/fuzz/model"
)

// key returns the key of a finding: findings with the same key are duplicates. The key of a crash with a stack is the
// stack. The key of most other findings consists of the oracle, the rule and the effects of the messages of the
// minimized input, regardless of their order.
func key(p *codec.Protocol, in *input.Input, f *exec.Fault) string {
	if f.Resync {
		return resynced + string(f.Rule)
	}
	if blocked(in, f) {
		return "blocked by a client that does not read"
	}
	id := f.Oracle + "|" + string(f.Rule) + "|" + f.Law
	if f.Got != "" {
		id += "|" + f.Got
	}
	if f.Unsent.Data != nil { // with a model, the same defect is a wrong reply
		return exec.Disclosure + "||" + f.Unsent.Does
	}
	if inputFree(f) {
		return id
	}
	last := f.Step >= 0 && f.Step < len(in.Steps)
	acts := behavior(p, in)
	switch {
	case last && (f.Oracle == exec.HangConn || f.Oracle == exec.HangAll):
		// The key contains only the first message without a reply, even if that message is illegal.
		return fmt.Sprintf("%s|%s %v", f.Oracle, family(p, &in.Steps[f.Step]),
			slices.ContainsFunc(in.Steps, func(s input.Step) bool { return slices.Contains(input.Leaves, s.Verb) }))
	case f.Timed: // it does not depend on the messages around that time
		return id + "|" + expectation(p, f)
	case f.Oracle == exec.Framing:
		// After legal messages, the server has made the mistake itself. Otherwise it may only send on what it got.
		if slices.ContainsFunc(acts, func(a stepAction) bool { return len(a.rules) > 0 }) {
			return id + "|after an illegal message"
		}
		return id
	case last && f.Law == notRejected && acts[f.Step].typ != nil:
		return id + "|" + acts[f.Step].typ.Name
	case last && f.Refusal != "":
		// A server that rejects several messages about one kind of object from senders in one role probably rejects all
		// of them for the same reason.
		of := family(p, &in.Steps[f.Step])
		if t := acts[f.Step].typ; t != nil {
			of = familyOf(t)
		}
		return fmt.Sprintf("%s|%s|%s", id, f.Refusal, of)
	case last && f.Law == closedLaw:
		return id + "|" + closedAfter(in, f, acts)
	}
	return id + "|" + circumstances(p, in, f, acts)
}

// closedAfter describes the message after which the server closed the connection: its size class, or its effect if it
// is short.
func closedAfter(in *input.Input, f *exec.Fault, acts []stepAction) string {
	at := f.Step
	for at > 0 && (acts[at].does == "" || in.Steps[at].Conn != in.Steps[f.Step].Conn) {
		at-- // the step only continues the message of an earlier step
	}
	if n := sizeClass(&in.Steps[at]); n > 0 && in.Steps[at].Verb == transcript.Send {
		return strconv.Itoa(n)
	}
	return acts[at].does
}

// circumstances returns what the server should have done, what happens to jobs, and the effects of all messages.
func circumstances(p *codec.Protocol, in *input.Input, f *exec.Fault, acts []stepAction) string {
	var does []string
	// A server may change data independently of what the messages do, and what it lists may be wrong because of one value.
	data := f.Law == model.ChangedData
	listed := f.Law == wrongContent && f.Step >= 0 && f.Step < len(acts) && isQuery(&acts[f.Step])
	for _, a := range acts {
		if data || listed {
			does = append(does, a.unusual...)
		}
		if !data {
			does = append(does, a.does)
		}
	}
	does = append(does, together(in, f, acts))
	slices.Sort(does)
	all := strings.TrimPrefix(strings.Join(slices.Compact(does), " "), " ")
	if data {
		return all
	}
	return expectation(p, f) + "|" + history(acts) + "|" + all
}

// expectation returns what the server should have done, and why, without the values that differ between inputs. It is ""
// if the rule of the fault says this.
func expectation(p *codec.Protocol, f *exec.Fault) string {
	if f.Oracle != exec.Law || f.Law != wrongContent && f.Rule != "" {
		return ""
	}
	wanted, _, content := cutLast(f.Text, "; got ")
	if !content {
		wanted, _, _ = cutLast(f.Text, ", got ")
	}
	words := strings.Fields(withoutValues(withoutDetails(wanted)))
	for i, word := range words {
		if t := p.TypeNamed(strings.TrimRight(word, ",")); t != nil {
			words[i] = t.Does.String()
		}
	}
	return strings.Join(words, " ")
}

// withoutDetails returns a text without what it has in parentheses.
func withoutDetails(text string) string { return details.ReplaceAllString(text, "") }

var details = regexp.MustCompile(` ?\([^()]*\)`)

// jobs returns the number of messages that submit a job, at most 2.
func jobs(acts []stepAction) (n int) {
	for i := range acts {
		if acts[i].typ != nil && acts[i].typ.Does == codec.Submit {
			n++
		}
	}
	return min(n, 2)
}

// history returns what happens to jobs, in this order. Several messages of one kind, one after the other, count as one,
// or as two if they submit jobs.
func history(acts []stepAction) string {
	var all []string
	for i := range acts {
		a, most := &acts[i], 1
		if a.does == codec.Submit.String() {
			most = 2
		}
		same := 0
		for same < len(all) && all[len(all)-1-same] == a.does {
			same++
		}
		if a.aboutJob() && same < most {
			all = append(all, a.does)
		}
	}
	return strings.Join(all, " ")
}

// aboutJob reports whether the step creates or ends a job, or changes who has it.
func (a *stepAction) aboutJob() bool {
	switch a.does {
	case abandons, workerLeaves:
		return true
	}
	if a.typ == nil || len(a.rules) > 0 {
		return false
	}
	switch a.typ.Does {
	case codec.Submit, codec.Ask, codec.Complete, codec.Fail, codec.Exception, codec.Release, codec.Bury, codec.Kick,
		codec.Delete, codec.Unregister:
		return true
	}
	return false
}

// together returns the effect of the message that was sent together with the message of the step of the fault, before
// the server could reply, or "" if there is none.
func together(in *input.Input, f *exec.Fault, acts []stepAction) string {
	next := f.Step + 1
	if in.Mode == input.OneByOne || f.Step < 0 || next >= len(in.Steps) {
		return ""
	}
	if in.Steps[next].Conn == in.Steps[f.Step].Conn {
		if t := acts[next].typ; t != nil && endsJob(t) {
			return "together with the end of a job"
		}
		return "together with " + acts[next].does
	}
	return ""
}

// resynced is the beginning of the key of a server that reads the bytes after an illegal message as others.
const resynced = "resync|"

// inputFree reports whether the fault alone determines the key of the finding, whatever the input is. This is true if
// the fault has a stack, if it names the rule that a request breaks, or if it describes data that no peer has sent.
func inputFree(f *exec.Fault) bool {
	return len(f.Stack) > 0 || f.Resync || f.Unsent.Data != nil ||
		f.Oracle == exec.HangConn && f.Rule != ""
}

// stepAction describes the effect of a step.
type stepAction struct {
	does      string         // the first broken rule, the effect of the message on a job, or the action; "" if unknown
	typ       *codec.Type    // of the message; nil if it has none
	rules     []codec.RuleID // that the message breaks
	unusual   []string       // values that ordinary messages do not have, such as "long unique-id"
	largeTime bool           // a time is greater than 1
	attached  bool           // the sender waits for the end of the job that it submits
}

// Effects of a disconnect. An operator who cancels a job does the same to it as the client that waits for it.
const (
	leaves       = "leaves"
	abandons     = "gives a job up"
	workerLeaves = "a worker leaves"
)

// behavior returns the effect of each step of an input. Raw bytes may begin a message that later steps complete. The
// effect then belongs to the step with the beginning of the message, and the later steps have no known effect. Steps
// after a message whose end no server can determine have no known effect either.
func behavior(p *codec.Protocol, in *input.Input) []stepAction {
	does := make([]stepAction, len(in.Steps))
	type stream struct {
		pending []byte
		lost    bool
		submits bool // and waits for the end of the job
		asks    bool
	}
	streams := make([]stream, in.Conns())
	for i := range in.Steps {
		s := &in.Steps[i]
		k := &streams[s.Conn]
		switch {
		case slices.Contains(input.Leaves, s.Verb):
			switch {
			case k.asks:
				does[i].does = workerLeaves
			case k.submits:
				does[i].does = abandons
			default:
				does[i].does = leaves
			}
			*k = stream{}
			continue
		case s.Verb == transcript.Nothing:
			does[i].does = waits
			continue
		case s.Verb != transcript.Raw && len(k.pending) == 0 && !k.lost:
			_, does[i] = firstAction(p, plainBytes(p, s))
			does[i].does = effect(p, s)
			if s.Type != nil {
				if does[i].does == s.Type.Does.String() {
					does[i].does = precise(s.Type)
				}
				k.submits = k.submits || does[i].attached
				k.asks = k.asks || s.Type.Does == codec.Ask
			}
			for n := range s.Args {
				if fd := s.Type.FieldAt(n); s.Args[n].Now && fd != nil { // the value is a number of seconds from now
					does[i].largeTime = false
					does[i].unusual = slices.DeleteFunc(does[i].unusual, func(what string) bool { return what == largePrefix+fd.Name })
				}
			}
			continue
		}
		k.pending = append(k.pending, plainBytes(p, s)...)
		for len(k.pending) > 0 && !k.lost {
			n, a := firstAction(p, k.pending)
			if n == 0 {
				break
			}
			if does[i].does == "" {
				does[i] = a
			}
			k.lost = n > len(k.pending)
			k.pending = k.pending[min(n, len(k.pending)):]
		}
	}
	return does
}

// precise returns the effect of messages of the type. Messages that configure something configure different things.
func precise(t *codec.Type) string {
	switch t.Does {
	case codec.Cancel:
		return abandons
	case codec.Configure:
		return t.Name
	}
	return t.Does.String()
}

// waits is the effect of a step that is a pause.
const waits = "waits"

// firstAction returns the length and the effect of the first message in b. The length is 0 if the message is
// incomplete, and greater than len(b) if no server can determine where the message ends.
func firstAction(p *codec.Protocol, b []byte) (length int, a stepAction) {
	var f codec.Frame
	for {
		n, err := p.NewSession(codec.Options{Waive: a.rules}).Decode(codec.Peer, b, &f)
		e, illegal := err.(*codec.Error)
		switch {
		case err == codec.ErrShort:
			return length, a
		case !illegal:
			length, a.typ = n, f.Type
			a.attached = f.Type.Does == codec.Submit && f.Attached()
			if a.unusual, a.largeTime = unusual(p, &f), hasLargeTime(&f); a.does == "" {
				a.does = precise(f.Type)
			}
			return length, a
		case slices.Contains(a.rules, e.Rule):
			return length, a
		}
		if length == 0 {
			a.does, length = string(e.Rule), n
			if e.Fatal {
				length = len(b) + 1
			}
		}
		if a.rules = append(a.rules, e.Rule); e.Fatal {
			return length, a
		}
	}
}

// longValue is the length in bytes above which a value counts as long. longPrefix and largePrefix precede the name of
// the field in descriptions of unusual values, and hugePrefix that of the message: a server that has too few bits for
// one number of a message probably has too few for the others.
const (
	longValue   = 32
	longPrefix  = "long "
	largePrefix = "large "
	hugePrefix  = "huge number in "
)

// blocked reports whether a server that does not answer waits for another client, which does not read the replies to its
// requests. A minimized input has such a client only if the failure needs it.
func blocked(in *input.Input, f *exec.Fault) bool {
	return slices.ContainsFunc(in.Steps, func(s input.Step) bool {
		return s.Verb == transcript.StopsReading && (f.Oracle == exec.HangAll || f.Oracle == exec.HangConn && s.Conn != f.Conn)
	})
}

// hasLargeTime reports whether a message contains a start time, time limit, delay or timeout that is greater than 1, in
// the unit of its field.
func hasLargeTime(f *codec.Frame) bool {
	for i := range f.Spans {
		switch f.Spans[i].Field.Means {
		case codec.StartTime, codec.TimeLimit, codec.Delay, codec.Timeout:
			if n, ok := codec.ParseNumber(f.Value(i)); ok && n > 1 {
				return true
			}
		}
	}
	return false
}

// unusual describes the values of a message that ordinary messages do not have: long texts, texts with special
// characters, numbers greater than 1, numbers that need more than 31 bits, and optional times. A minimized message has
// such values only if the failure needs them.
func unusual(p *codec.Protocol, f *codec.Frame) (all []string) {
	for i := range f.Spans {
		fd, v := f.Spans[i].Field, f.Value(i)
		switch fd.Kind {
		case codec.Number, codec.Signed, codec.Uint:
			switch n, ok := codec.ParseNumber(v); {
			case ok && n > math.MaxInt32:
				all = append(all, hugePrefix+f.Type.Name)
			case ok && n > 1:
				all = append(all, largePrefix+fd.Name)
			}
		case codec.Text, codec.Opaque:
			if len(v) > longValue {
				all = append(all, longPrefix+fd.Name)
			} else if isUnusualText(fd, v) {
				all = append(all, "special "+fd.Name)
			}
		}
	}
	for _, m := range []codec.Meaning{codec.StartTime, codec.Schedule, codec.TimeLimit} {
		if f.Type.Has(m) && slices.ContainsFunc(p.Types, func(t *codec.Type) bool {
			return !t.Has(m) && t.Req&f.Type.Req != 0 && strings.HasPrefix(f.Type.Name, t.Name+"_")
		}) {
			all = append(all, f.Type.FieldAt(f.Type.At(m)).Name)
		}
	}
	return all
}

// isUnusualText reports whether the value of a field is a long text or a text with special characters.
func isUnusualText(fd *codec.Field, v []byte) bool {
	return (fd.Kind == codec.Text || fd.Kind == codec.Opaque) && (len(v) > longValue ||
		bytes.ContainsFunc(v, func(r rune) bool { return r <= ' ' || r >= 0x7f }))
}

// cause describes what is unusual about a minimized input and its failure. Findings with the same cause probably have
// one underlying fault, even if the fault appears in different replies.
type cause struct {
	kind  string
	shown string         // the rule, what the server should have done, and what it did; "": unknown
	acts  []string       // unusual effects, in alphabetical order
	jobs  int            // number of jobs if one of them is for later, which may concern another job; at most 2
	until string         // what happens to jobs until the last unusual effect on a job; the rest only shows the failure
	rules []codec.RuleID // rules that messages break, in alphabetical order
}

// ordinary contains the effects that messages have in most conversations about jobs. These effects do not identify a
// cause.
var ordinary = []codec.Effect{codec.NoEffect, codec.Submit, codec.Ask, codec.Wait, codec.Query, codec.Delete,
	codec.Store, codec.Data, codec.Warning, codec.Status, codec.Complete, codec.Fail,
	codec.Register, codec.Use, codec.Echo}

// causeOf returns the cause of the failure of a minimized input. The kind of the result is "" if the cause is unknown,
// or if the key of the finding identifies the cause completely.
func causeOf(p *codec.Protocol, in *input.Input, f *exec.Fault) (k cause) {
	switch f.Oracle {
	case exec.Law, exec.Framing, exec.HangConn:
		if k.kind = f.Oracle; f.Law == closedLaw {
			k.kind = closedLaw
		}
	case exec.HangAll: // it breaks no rule of the protocol
		k.kind, k.shown = f.Oracle, f.Law
	default:
		if place := crashPlace(f); place != "" {
			k.kind, k.acts = "crash", []string{place}
		} else if f.Ends() && len(f.Stack) == 0 {
			k.ofCrash(f, behavior(p, in))
		}
		return k
	}
	if f.Text != "" || f.Rule != "" {
		k.shown = strings.Join([]string{string(f.Rule), f.Law, f.Got, expectation(p, f)}, "|")
	}
	acts := behavior(p, in)
	if with := together(in, f, acts); with != "" && f.Oracle == exec.Law {
		k.acts = append(k.acts, with)
	}
	if k.addUnusual(acts); f.Timed {
		k.rules = nil
	}
	k.reduce(f, acts)
	return k
}

// ofCrash sets the cause of a crash in an unknown place: what is unusual about the last message, or else about all of
// them.
func (c *cause) ofCrash(f *exec.Fault, acts []stepAction) {
	c.kind = "crash|" + f.Oracle + "|" + f.Law + "|" + f.Signal
	last := slices.DeleteFunc(slices.Clone(acts), func(a stepAction) bool { return a.does == "" })
	if len(last) == 0 {
		return
	}
	if c.addUnusual(last[len(last)-1:]); len(c.acts)+len(c.rules) == 0 {
		c.addUnusual(acts)
	}
	c.acts = append(c.acts, "last "+last[len(last)-1].does)
}

// crashPlace returns the innermost function of a crash with its file and line, or its address in a program without
// symbols. It is "" if the line is unknown.
func crashPlace(f *exec.Fault) string {
	if len(f.Stack) == 0 {
		return ""
	}
	if _, place, known := cutLast(f.Law, " at "); known {
		return f.Stack[0] + " at " + place
	}
	if strings.Contains(f.Stack[0], "+0x") {
		return f.Stack[0]
	}
	return ""
}

// addUnusual adds the unusual effects of the steps and the rules that they break.
func (c *cause) addUnusual(acts []stepAction) {
	for i, a := range acts {
		c.rules = append(c.rules, a.rules...)
		if c.acts = append(c.acts, a.unusual...); a.typ != nil && a.sets(codec.StartTime) {
			c.jobs = jobs(acts)
		}
		if a.does != "" && len(a.rules) == 0 && !slices.ContainsFunc(ordinary, func(e codec.Effect) bool { return e.String() == a.does }) {
			if c.acts = append(c.acts, a.does); a.aboutJob() {
				c.until = history(acts[:i+1])
			}
		}
	}
	slices.Sort(c.acts)
	slices.Sort(c.rules)
	c.acts, c.rules = slices.Compact(c.acts), slices.Compact(c.rules)
	// Sleeping and waiting only reveal an earlier effect: whether the server assigns a job to the worker, and whether a
	// scheduled time has come.
	for _, later := range []string{codec.Sleep.String(), waits} {
		if len(c.acts)+len(c.rules) > 1 {
			c.acts = slices.DeleteFunc(c.acts, func(what string) bool { return what == later })
		}
	}
}

// reduce replaces the effects and rules by the one that explains the failure f, if there is one.
func (c *cause) reduce(f *exec.Fault, acts []stepAction) {
	until, jobs := c.until, c.jobs
	c.until, c.jobs = "", 0
	long := func(what string) bool { return strings.HasPrefix(what, longPrefix) }
	passed := timePassed(f, acts)
	illegal := performed(f, acts)
	switch {
	case illegal != "":
		c.kind, c.shown, c.acts = notRejected, "", []string{illegal}
	case c.kind != closedLaw && c.kind != exec.Framing && len(c.rules) == 0 && passed != "":
		c.kind, c.acts, c.shown = timeKind, []string{passed}, "" // what follows the pause only reveals the failure
	case f.Oracle == exec.HangConn && len(c.rules) > 0:
		c.acts = nil // the illegal message is the reason for the missing reply
	case f.Law == closedLaw && slices.ContainsFunc(c.acts, long):
		c.acts = []string{longPrefix} // the server closes the connection because of a long value, whatever value that is
	case f.Law == closedLaw && slices.ContainsFunc(acts, func(a stepAction) bool { return a.largeTime }):
		c.acts = []string{"large time"}
	case f.Oracle == exec.Framing && slices.Contains(c.rules, f.Rule):
		c.acts, c.rules = []string{"forwards"}, nil // the server accepts illegal values and forwards them
	case f.Law == wrongContent && len(c.rules)+len(c.acts) == 0 && f.Step >= 0 && f.Step < len(acts) &&
		isQuery(&acts[f.Step]):
		for i := range acts { // different queries can reveal the same wrong state; the other messages cause that state
			if !isQuery(&acts[i]) && acts[i].does != "" {
				c.acts = append(c.acts, acts[i].does)
			}
		}
		c.kind, c.shown = wrongContent, ""
		slices.Sort(c.acts)
	default:
		c.until, c.jobs = until, jobs
	}
}

// timeKind is the kind of a failure for which a time must pass.
const timeKind = "time"

// timePassed describes an input with a pause after a worker has requested a job that it has a limited time for, or after
// a message that sets a start time. The description says which of them, and whether a worker ended a job before the
// pause. It is "" if there is no such pause, and the failure f does not show that the time has passed without one.
func timePassed(f *exec.Fault, acts []stepAction) string {
	limited, asked, starts, ended := false, false, false, ""
	for i := range acts {
		a := &acts[i]
		switch {
		case a.does == waits && asked:
			return "a time limit passes" + ended
		case a.does == waits && starts:
			return "a start time passes"
		case a.typ == nil:
		case a.sets(codec.TimeLimit):
			limited = true
		case a.sets(codec.StartTime):
			starts = true
		case a.typ.Does == codec.Ask:
			asked = limited
		case endsJob(a.typ):
			ended = " after the end of a job"
		}
	}
	switch {
	case !f.Timed:
		return ""
	case limited:
		return "a time limit passes" + ended
	}
	return "a start time passes"
}

// endsJob reports whether messages of the type end a job.
func endsJob(t *codec.Type) bool {
	return t.Does == codec.Complete || t.Does == codec.Fail || t.Does == codec.Exception
}

// sets reports whether the message has a field with the meaning that other messages with its effect do not have.
func (a *stepAction) sets(m codec.Meaning) bool {
	return a.typ.Has(m) && slices.Contains(a.unusual, a.typ.FieldAt(a.typ.At(m)).Name)
}

// notRejected is the law that a server breaks if it performs an illegal request.
const notRejected = "illegal message not rejected"

// performed returns the name of the illegal request that the server has performed, or "".
func performed(f *exec.Fault, acts []stepAction) string {
	if f.Step < 0 || f.Step >= len(acts) || acts[f.Step].typ == nil {
		return ""
	}
	a := &acts[f.Step]
	if f.Law == notRejected || f.Oracle == exec.HangConn && len(a.rules) > 0 && input.MayWait(a.typ) {
		return a.typ.Name
	}
	return ""
}

// wrongContent is the law that a server breaks if its reply has the right type and wrong content.
const wrongContent = "wrong reply content"

func isQuery(a *stepAction) bool {
	return a.typ != nil && (a.typ.Does == codec.Query || a.typ.Does == codec.Echo)
}

// same reports whether two findings have the same cause. The rules that the messages of one input break must include the
// rules that the messages of the other break. The unusual effects of both inputs must be equal, and what happened to jobs
// before them, unless one number explains the same failure. If both failures are also shown by the same difference from
// what the server should have done, the unusual effects of one input need only include those of the other. If no effect is
// unusual, this difference must be the same, and have a reason.
func (c *cause) same(o *cause) bool {
	shown := c.shown != "" && c.shown == o.shown
	if c.kind == "" || c.kind != o.kind || (len(c.rules) == 0) != (len(o.rules) == 0) || c.jobs != o.jobs ||
		c.until != o.until && !(shown && c.sharesNumber(o)) {
		return false
	}
	known := len(c.rules)+len(c.acts) > 0 || shown && strings.Contains(c.shown, "because")
	alike := known && slices.Equal(c.acts, o.acts) ||
		shown && len(c.acts) > 0 && len(o.acts) > 0 && oneContains(c.acts, o.acts)
	return alike && oneContains(c.rules, o.rules)
}

// sharesNumber reports whether one message has an unusual number in both inputs, which explains the failure.
func (c *cause) sharesNumber(o *cause) bool {
	return slices.ContainsFunc(c.acts, func(what string) bool {
		return (strings.HasPrefix(what, largePrefix) || strings.HasPrefix(what, hugePrefix)) && slices.Contains(o.acts, what)
	})
}

// oneContains reports whether one of the lists contains all elements of the other list.
func oneContains[E comparable](few, many []E) bool {
	if len(few) > len(many) {
		few, many = many, few
	}
	return !slices.ContainsFunc(few, func(e E) bool { return !slices.Contains(many, e) })
}

// plainBytes returns the bytes of a step, or the part of them that the codec can encode.
func plainBytes(p *codec.Protocol, s *input.Step) []byte {
	if s.Type == nil {
		return s.Bytes
	}
	m := s.Message()
	b, _ := p.NewSession(codec.Options{WaiveAll: true}).Append(nil, codec.Peer, &m)
	return b
}

// effect returns what a step does: the rule that its message breaks, the effect of its message on a job, or the action
// on the connection.
func effect(p *codec.Protocol, s *input.Step) string {
	if slices.Contains(input.Leaves, s.Verb) {
		return leaves
	}
	name := input.Class(p, s)
	if s.Type != nil && name == s.Type.Name {
		return s.Type.Does.String()
	}
	return name
}

// family returns a class of messages that a server probably handles in the same way: messages with the same senders and
// the same first field. The class of illegal bytes is the rule that they break.
func family(p *codec.Protocol, s *input.Step) string {
	if s.Type.FieldAt(0) != nil {
		return familyOf(s.Type)
	}
	return input.Class(p, s)
}

// familyOf returns a key that is equal for message types of the same roles whose first fields have the same name.
func familyOf(t *codec.Type) string {
	if f := t.FieldAt(0); f != nil {
		return fmt.Sprint(t.Req, " ", f.Name)
	}
	return t.Name
}

// sizeClass returns the size class of the longest value of a step: from 0 for less than 64 bytes to 4 for 32 KiB or
// more.
func sizeClass(s *input.Step) (n int) {
	longest := len(s.Bytes)
	for _, a := range s.Args {
		longest = max(longest, len(a.Value))
	}
	for _, bound := range []int{64, 512, 4096, 32 << 10} {
		if longest >= bound {
			n++
		}
	}
	return n
}

// closedLaw is the law that a server breaks if it closes a connection without a reason. The key of such a finding
// contains the effect of the last message on the connection, or the size class of that message.
const closedLaw = "unexpected disconnect"
