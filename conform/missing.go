package conform

import (
	"fmt"
	"maps"
	"slices"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/internal/verdict"
	"jobwire/play"
)

// reactions are what a target does when it receives messages of one type.
type reactions struct {
	works   bool                // it has replied as a case expected or, without a reply, has not closed the connection
	to      map[string]reaction // what it did instead, by the family of the case
	illegal map[string]reaction // the same if the message may have had an illegal value
}

// reaction is what a target does when a case expects the reply to a message.
type reaction struct {
	verb  transcript.Verb // Nothing, Closes, or Send for a refusal
	reply *codec.Type     // the refusal
	text  string          // such as "closed the connection"; "" if the target does something else
}

// acceptedBy reports whether a step expects the reaction.
func (r reaction) acceptedBy(st *transcript.Step) bool {
	return slices.ContainsFunc(st.Choices, func(c transcript.Choice) bool { return c.Verb == r.verb && c.Type == r.reply })
}

// missingAfter is the number of cases, without parameters, that must fail in the same way at a message before the
// target does not implement it.
const missingAfter = 3

// missing returns the usual reaction to a message that the target does not implement, and a sentence about it. It
// returns false if the target may implement it. If the target reacts in this way to another message that it does not
// implement, also a reaction to a message that may have had an illegal value counts, and enough reactions suffice.
func (f *inference) missing(t *codec.Type, enough int) (what reaction, text string, ok bool) {
	r := f.messages[t]
	if r == nil || r.works {
		return what, "", false
	}
	what, n := usual(r.to)
	if n < missingAfter {
		all := maps.Clone(r.illegal)
		maps.Copy(all, r.to)
		known := func(other *reactions) bool {
			same, n := usual(other.to)
			return !other.works && n >= missingAfter && same == what
		}
		if what, n = usual(all); n < enough || !slices.ContainsFunc(slices.Collect(maps.Values(f.messages)), known) {
			return what, "", false
		}
	}
	text = fmt.Sprintf("the target does not implement %s: it %s in %s, and did not reply as expected in any",
		t.Name, what.text, CountCases(n, n))
	return what, text, true
}

// usual returns the most frequent reaction, and its number.
func usual(to map[string]reaction) (what reaction, n int) {
	number := map[reaction]int{}
	for _, one := range to {
		number[one]++
		if n := number[one] - number[what]; n > 0 || n == 0 && one.text < what.text {
			what = one
		}
	}
	return what, number[what]
}

// observe adds what an attempt shows about messages.
func (f *inference) observe(a *attempt) {
	script := a.Performed()
	end := len(script.Steps)
	if a.Verdict == verdict.Failed && a.Play != nil && a.Play.Failure != nil {
		end = min(end, a.Play.Failure.Index)
	} else if a.sentBack {
		end = 0
	} else if !a.Verdict.Passes() {
		return
	}
	pending := map[transcript.Actor][]*codec.Type{} // messages without a reply so far
	for i := range script.Steps[:end] {
		st := &script.Steps[i]
		c, sent := &st.Choices[0], pending[st.Peer]
		if st.From == codec.Peer {
			if c.Verb == transcript.Send && c.Type != nil {
				pending[st.Peer] = append(sent, c.Type)
			}
			continue
		}
		refused := slices.ContainsFunc(st.Choices, refuses)
		k := slices.IndexFunc(sent, func(t *codec.Type) bool { return answers(t, st) })
		if k < 0 && c.Verb == transcript.Send && refuses(*c) {
			k = slices.IndexFunc(sent, func(t *codec.Type) bool { return len(t.Answers) > 0 })
		}
		for n, t := range sent {
			if !refused && (len(t.Answers) == 0 || n == k && answersOnly(t, st)) {
				f.message(t).works = true
			}
		}
		if k >= 0 {
			pending[st.Peer] = slices.Delete(slices.Clone(sent), k, k+1)
		}
	}
	all, what := a.reaction()
	for _, t := range all {
		if a.sentBack {
			f.message(t).illegal[a.Case.Family] = what
		} else {
			f.message(t).to[a.Case.Family] = what
		}
	}
}

// refuses reports whether a server may do what a choice says although it does not implement a message.
func refuses(c transcript.Choice) bool {
	return c.Verb != transcript.Send || c.Type.Does == codec.Refuse
}

func (f *inference) message(t *codec.Type) *reactions {
	if f.messages[t] == nil {
		f.messages[t] = &reactions{to: map[string]reaction{}, illegal: map[string]reaction{}}
	}
	return f.messages[t]
}

// reaction returns the types of the messages at which the target may have failed the case, and what it did.
func (r *Result) reaction() (all []*codec.Type, what reaction) {
	if r.Verdict != verdict.Failed && !r.sentBack || r.Play == nil || r.Play.Failure == nil {
		return nil, what
	}
	f, script := r.Play.Failure, r.Performed()
	if what = unanswered(f); what.text == "" || f.Index >= len(script.Steps) {
		return nil, what
	}
	if t := asked(script, f.Index); t != nil && (what.verb == transcript.Closes || answers(t, f.Step)) {
		all = append(all, t)
	}
	return append(all, withoutReply(script, f)...), what
}

// withoutReply returns the types without a reply of the messages that the target received before it refused a message
// or closed the connection, on the same connection: it may have refused one of these.
func withoutReply(script *transcript.Script, f *play.Failure) (all []*codec.Type) {
	if unanswered(f).verb == transcript.Nothing {
		return nil
	}
	for _, st := range script.Steps[:min(f.Index, len(script.Steps))] {
		c := &st.Choices[0]
		if st.From == codec.Peer && st.Peer == f.Step.Peer && c.Verb == transcript.Send && c.Type != nil &&
			!c.Unchecked && len(c.Type.Answers) == 0 && !slices.Contains(all, c.Type) {
			all = append(all, c.Type)
		}
	}
	return all
}

// unanswered returns what a target did that did not reply to a message: it sent nothing, closed the connection or
// refused the message. The text is "" if it did something else.
func unanswered(f *play.Failure) (what reaction) {
	switch {
	case f.Reason == play.Ended:
		what = reaction{verb: transcript.Closes, text: "closed the connection"}
	case nothingSent(f):
		what = reaction{verb: transcript.Nothing, text: "sent no reply"}
	case f.Reason == play.Mismatched && f.Event != nil && f.Event.Frame.Type != nil &&
		f.Event.Frame.Type.Does == codec.Refuse:
		what = reaction{transcript.Send, f.Event.Frame.Type, "replied " + messageName(&f.Event.Frame)}
	}
	return what
}

// explain records in the results of cases which message the target does not implement, if that is why they did not pass
// or their setups did not work.
func (f *inference) explain(results []Result) {
	for i := range results {
		r := &results[i]
		script, p := r.Conversation()
		wrong := r.Verdict == verdict.Failed || r.Verdict == verdict.Inconsistent ||
			r.Verdict == verdict.Inconclusive && r.setup != nil
		about := []*codec.Type{r.lacking}
		if wrong && p != nil && p.Failure != nil && unanswered(p.Failure).text != "" {
			about = append([]*codec.Type{lastRequest(r.Case, p).kind}, withoutReply(script, p.Failure)...)
		}
		r.lacking = nil
		for _, t := range about {
			if _, text, ok := f.missing(t, 1); ok {
				r.lacking, r.lacks = t, text
				break
			}
		}
		switch {
		case r.lacking == nil:
		case r.Verdict == verdict.Inconclusive && !r.sentBack:
			r.Note = fmt.Sprintf("the setup %q does not work on this target: %s", r.setup.name, r.lacks)
			r.Verdict, r.setup = verdict.Inferred, nil
		case r.Verdict == verdict.Inconclusive || r.Verdict == verdict.Inferred:
			r.Note = r.lacks
			r.Verdict, r.setup = verdict.Inferred, nil
		}
	}
}

// missingIn returns the index of the first step outside setups that expects the reply to a message that the target
// does not implement, the type of the message, and a sentence about it; or nil.
func (f *inference) missingIn(script *transcript.Script) (at int, t *codec.Type, text string) {
	for i := range script.Steps {
		st := &script.Steps[i]
		if !asserts(*st) {
			continue
		}
		t := asked(script, i)
		if t == nil || len(t.Answers) > 0 && !answersOnly(t, st) {
			continue
		}
		if what, text, ok := f.missing(t, missingAfter); ok && !what.acceptedBy(st) {
			return i, t, text
		}
	}
	return 0, nil, ""
}

// cut returns the steps of a script before the one that missingIn returns, and the type of the message with a sentence
// about it, or nil.
func (f *inference) cut(script *transcript.Script) (part *transcript.Script, t *codec.Type, text string) {
	if f == nil {
		return script, nil, ""
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	at, t, text := f.missingIn(script)
	if t == nil {
		return script, nil, ""
	}
	short := *script
	short.Steps = script.Steps[:at]
	return &short, t, text
}

// lacks returns a sentence if the target does not implement the message type t, or "".
func (f *inference) lacks(t *codec.Type) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, text, _ := f.missing(t, missingAfter)
	return text
}

// informative returns the rank of each case in the order of a run. First, the shortest cases with each message, which
// show whether the target implements it; then the cases that check the server's process, which take longest; then one
// instance of every other case; then the second instances, and so on.
func informative(s *Suite) []int {
	rank := make([]int, len(s.Cases))
	about := map[*codec.Type][]int{}
	number := map[string]int{}
	for i, c := range s.Cases {
		number[c.Family]++
		if rank[i] = 1 + number[c.Family]; c.observed() {
			rank[i] = 1
		}
		if t := firstAsked(c.Script); t != nil && number[c.Family] == 1 {
			about[t] = append(about[t], i)
		}
	}
	for _, of := range about {
		slices.SortStableFunc(of, func(a, b int) int { return len(s.Cases[a].Script.Steps) - len(s.Cases[b].Script.Steps) })
		for _, i := range of[:min(len(of), missingAfter)] {
			rank[i] = 0
		}
	}
	return rank
}

// firstAsked returns the type of the message whose reply a script expects first outside setups, or nil.
func firstAsked(script *transcript.Script) *codec.Type {
	i := slices.IndexFunc(script.Steps, asserts)
	if i < 0 {
		return nil
	}
	if t := asked(script, i); t != nil && answersOnly(t, &script.Steps[i]) {
		return t
	}
	return nil
}

// answersOnly reports whether a step expects nothing else than a reply to a message of type t.
func answersOnly(t *codec.Type, st *transcript.Step) bool {
	return !slices.ContainsFunc(st.Choices, func(c transcript.Choice) bool {
		return c.Verb != transcript.Send || !slices.Contains(t.Answers, c.Type)
	})
}

// asked returns the type of the last message to the target before the i-th step of a script, on the same connection. It
// returns nil if the message may be illegal, or if the step expects what the target also does if it does not implement
// the message.
func asked(script *transcript.Script, i int) *codec.Type {
	st := &script.Steps[i]
	if c := st.Choices[0]; c.Verb != transcript.Send || script.Protocol.IsGeneralError(c.Type) {
		return nil
	}
	for _, earlier := range slices.Backward(script.Steps[:i]) {
		if c := &earlier.Choices[0]; earlier.From == codec.Peer && earlier.Peer == st.Peer && c.Verb <= transcript.Raw {
			if c.Unchecked {
				return nil
			}
			return c.Type // nil for raw bytes
		}
	}
	return nil
}
