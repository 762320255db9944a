package conform

import (
	"slices"
	"sync"
	"time"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/play"
)

// silence has the replies that a target does not send. When a reply has not come within the whole timeout several
// times, other cases wait for the same reply for a shorter time. A nil silence has no replies.
type silence struct {
	limit time.Duration // the time for which the target gets to send a reply that it has not sent before
	mu    sync.Mutex
	// number of failures, by the last message to the target, or nil for any, and the expected one
	number map[[2]*codec.Type]int
}

const (
	provedSilence = 3                      // failures after which a reply to the same message is waited for briefly
	mutedType     = 6                      // failures after which the reply is waited for briefly, whatever it answers
	shortTimeout  = 250 * time.Millisecond // the limit of a target that replies in a quarter of that or faster
)

// add adds the failure of a conversation that missed a reply.
func (s *silence) add(script *transcript.Script, f *play.Failure) {
	if s == nil || f.Reason != play.TimedOut || f.Event != nil || f.Index >= len(script.Steps) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	pair := awaited(script, f.Index)
	s.number[pair]++
	s.number[[2]*codec.Type{nil, pair[1]}]++
}

// shorten returns the script with short timeouts for the replies that the target does not send.
func (s *silence) shorten(script *transcript.Script) *transcript.Script {
	if s == nil {
		return script
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.number) == 0 {
		return script
	}
	short := *script
	for i := range short.Steps {
		st := &short.Steps[i]
		if !waitsLong(st) {
			continue
		}
		pair := awaited(script, i)
		if s.number[pair] < provedSilence && s.number[[2]*codec.Type{nil, pair[1]}] < mutedType {
			continue
		}
		if &short.Steps[0] == &script.Steps[0] {
			short.Steps = slices.Clone(script.Steps)
		}
		short.Steps[i].Within = s.limit
	}
	return &short
}

// waitsLong reports whether a step expects a message, or a message or the end of the connection, with no time limit
// of its own.
func waitsLong(st *transcript.Step) bool {
	if st.From != codec.Server || st.Within != 0 || st.After != 0 || st.Until != 0 ||
		st.Choices[0].Verb != transcript.Send {
		return false
	}
	other := func(c transcript.Choice) bool { return c.Verb != transcript.Send && c.Verb != transcript.Closes }
	return !slices.ContainsFunc(st.Choices, other)
}

// awaited returns the type of the last message to the target, on the same connection, before the i-th step of a script,
// and the type that the step expects first.
func awaited(script *transcript.Script, i int) [2]*codec.Type {
	st := &script.Steps[i]
	var last *codec.Type
	for _, earlier := range slices.Backward(script.Steps[:i]) {
		if earlier.From == codec.Peer && earlier.Peer == st.Peer && earlier.Choices[0].Verb == transcript.Send {
			last = earlier.Choices[0].Type
			break
		}
	}
	return [2]*codec.Type{last, st.Choices[0].Type}
}
