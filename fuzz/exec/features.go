package exec

import (
	"jobwire/codec"
	"jobwire/fuzz/input"
	"jobwire/fuzz/model"
)

// The kinds of events that count as coverage.
const (
	coverLeft = 1 + iota
	coverSent
	coverState
	coverSilence
	coverGone
	coverIllegal
	coverReceived

	coverTimed = 100 // added to the kind of events that depend on time
)

// feature records an event on a connection as coverage, combined with the previous event on that connection. Of events
// that depend on time it records only the kind and a, or nothing if the same inputs must always have the same coverage.
func (x *execution) feature(k *conn, kind, a, b uint64) {
	switch {
	case x.c.Mode == input.Burst, x.Steady && x.timingDependent():
		return
	case x.timingDependent():
		kind, b = kind+coverTimed, 0
	}
	h := mix(mix(kind, a), b)
	x.record.Features = append(x.record.Features, mix(k.last, h))
	k.last = h
}

// timingDependent reports whether the order of further events may depend on time: in a burst, after an event that the
// server notices at an unknown time, such as the end of a connection, and after illegal bytes, whose effects no reply
// proves.
func (x *execution) timingDependent() bool {
	return x.c.Mode == input.Burst || x.timed || x.common || x.model == nil || x.model.Tainted()
}

// noteState records a change of the model's state as coverage.
func (x *execution) noteState() {
	if x.c.Mode == input.Burst || x.common || x.model.Tainted() || x.timed && x.Steady {
		return
	}
	state := x.model.State(model.Everything)
	if state == x.barrierState {
		return
	}
	x.record.Features = append(x.record.Features, mix(mix(coverState, x.barrierState), state))
	x.barrierState = state
}

// mix adds a value to the hash h of a feature.
func mix(h, v uint64) uint64 {
	h ^= v + 0x9e3779b97f4a7c15 + h<<6 + h>>2
	h *= 0xff51afd7ed558ccd
	return h ^ h>>32
}

// typeHash returns a number for a message type: 0 if it is unknown, otherwise 1 and its index in the protocol.
func typeHash(t *codec.Type) uint64 {
	if t == nil {
		return 0
	}
	return uint64(t.Index) + 1
}

// errHash returns a hash of the rule that an error names.
func errHash(e *codec.Error) (h uint64) {
	for _, c := range []byte(e.Rule) {
		h = h*31 + uint64(c)
	}
	return h
}

func boolHash(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}
