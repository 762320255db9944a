package audit

import (
	"slices"

	"jobwire/codec"
)

// sight is what is kept of conversations to tell what there was occasion to do wrong. It forgets
// all when it becomes too much.
type sight struct {
	jobs   map[string]*creation // by what the server calls them
	latest map[key]*creation    // the last of each function and unique ID
	places map[string]string    // functions by unique IDs
	tubes  map[string]bool      // that were named
	any    bool                 // a job was created
	now    *creation            // the job that was just created
}

// key is what may make two jobs one.
type key struct{ function, unique string }

// creation is a job.
type creation struct {
	key
	kind  byte
	state state

	several    bool // others waited for their answers, too
	another    bool // was created before
	again      bool // another one of the key is not known to have ended
	afterwards bool // another one of the key has
	elsewhere  bool // the unique ID was used for another function
}

// state is how far a job is.
type state uint8

const (
	unknown state = iota
	waiting
	assigned
	ended
)

// Bounds of what is kept.
const (
	maxSight = 1 << 14 // jobs and tubes
	maxAsked = 1 << 8  // requests of a connection that wait
)

func (s *sight) reset() {
	*s = sight{jobs: map[string]*creation{}, latest: map[key]*creation{}, places: map[string]string{}, tubes: map[string]bool{}, any: s.any}
}

// asks notes a request for a job.
func (s *sight) asks(l *line, k key, kind byte) {
	if len(l.asked) < maxAsked {
		l.asked = append(l.asked, &creation{key: k, kind: kind})
	}
}

// gives notes the answer to it.
func (s *sight) gives(l *line, name string) {
	if s.now = nil; len(l.asked) == 0 {
		return
	}
	j := l.asked[0]
	j.several, j.another = len(l.asked) > 1, s.any
	l.asked = l.asked[1:]
	if len(s.jobs)+len(s.tubes) >= maxSight {
		s.reset()
	}
	if old := s.latest[j.key]; old != nil {
		j.again, j.afterwards = old.state != ended, old.state == ended
	}
	if at, used := s.places[j.unique]; used && j.unique != "" {
		j.elsewhere = at != j.function
	}
	j.state, s.any, s.now = waiting, true, j
	s.jobs[name], s.latest[j.key], s.places[j.unique] = j, j, j.function
}

// becomes notes how far a job is.
func (s *sight) becomes(name []byte, st state) {
	if j := s.jobs[string(name)]; j != nil {
		j.state = st
	}
}

// watches reports whether a tube is watched, as far as is known.
func (l *line) watches(f *codec.Frame) bool {
	return slices.Contains(l.tubes, string(f.Arg(0))) || !l.narrowed && string(f.Arg(0)) == "default"
}

// Conditions of occasions.

func another(s *sight, _ *line, _ *codec.Frame) bool { return s.now != nil && s.now.another }

func oneOfSeveral(s *sight, _ *line, _ *codec.Frame) bool { return s.now != nil && s.now.several }

func created(is func(*creation) bool) func(*sight, *line, *codec.Frame) bool {
	return func(s *sight, _ *line, _ *codec.Frame) bool { return s.now != nil && is(s.now) }
}

// job is that the message's first argument names a job that is so far.
func job(st state) func(*sight, *line, *codec.Frame) bool {
	return func(s *sight, _ *line, f *codec.Frame) bool {
		j := s.jobs[string(f.Arg(0))]
		return j == nil && st == unknown || j != nil && j.state == st
	}
}

// has is that an argument is so.
func has(arg int, is func(string) bool) func(*sight, *line, *codec.Frame) bool {
	return func(_ *sight, _ *line, f *codec.Frame) bool { return is(string(f.Arg(arg))) }
}

// present is that a message has arguments.
func present(_ *sight, _ *line, f *codec.Frame) bool { return len(f.Spans) > f.Head }

// kind is that a job of the type was created on the connection.
func kind(k byte) func(*sight, *line, *codec.Frame) bool {
	return func(_ *sight, l *line, _ *codec.Frame) bool { return l.kinds[k] }
}

// behind is that so many messages of a type came before on the connection.
func behind(n int, typ string) func(*sight, *line, *codec.Frame) bool {
	return func(_ *sight, l *line, _ *codec.Frame) bool { return l.said[typ] >= n }
}
