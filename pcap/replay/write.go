package replay

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/internal/newfile"
)

// Limits for keeping the times of a capture. Long pauses may have effects on the server. A pause also follows a
// message without a reply, so that the message can take effect.
const (
	longPause = 100 * time.Millisecond
	mostPause = 2 * time.Second
	settle    = 10 * time.Millisecond
	longWait  = 3 * time.Second
	mostWait  = time.Minute
	nearNow   = 24 * 60 * 60 // a number that is at most this many seconds from the message time is a time
)

// Transcript describes a transcript.
type Transcript struct {
	Name        string
	Connections int
	Steps       int
	Incomplete  bool // a part is missing or cannot be replayed
}

// WriteDir writes each transcript to a new file in a directory, which it creates if necessary. source is the name of
// the capture. If a file exists, WriteDir returns an error that wraps [fs.ErrExist], and the transcripts before it.
func (t *Collector) WriteDir(source, dir string) ([]Transcript, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	return t.Write(source, func(name string, text []byte) error {
		return newfile.WriteOnce(filepath.Join(dir, name), text)
	})
}

// Left returns the number of messages that are in no transcript, because more messages than fit in memory were added.
func (t *Collector) Left() int { return t.left }

// Unsupported returns the number of connections that cannot be replayed because of their protocol.
func (t *Collector) Unsupported() int { return len(t.unsupported) }

// Write calls write with the name and the text of each transcript. source is the name of the capture. If write
// returns an error, Write returns it, and the transcripts before it.
func (t *Collector) Write(source string, write func(name string, text []byte) error) (all []Transcript, err error) {
	count := map[*codec.Protocol]int{}
	for _, steps := range t.sets() {
		p := steps[0].session.proto
		count[p]++
		w := scriptWriter{proto: p, names: map[string]string{}, source: source, unconfirmed: map[*session]*step{}}
		w.Name = fmt.Sprintf("%s-%d.wire", p.Name, count[p])
		text, err := w.script(steps)
		if err != nil {
			return all, err
		}
		if err := write(w.Name, text); err != nil {
			return all, err
		}
		all = append(all, w.Transcript)
	}
	return all, nil
}

// scriptWriter writes one transcript.
type scriptWriter struct {
	Transcript
	proto  *codec.Protocol
	source string
	out    []byte
	names  map[string]string // names of values that the server chose; "" for values that a peer chose
	ended  bool              // the following steps are comments

	unconfirmed map[*session]*step // the last message of each peer that the server is not known to have received
}

// script returns the transcript of steps: a heading, the steps in the order in which they can be replayed, and comments
// where the capture is incomplete.
func (w *scriptWriter) script(steps []step) ([]byte, error) {
	steps = arrange(ending(steps))
	sessions := sessionsOf(steps)
	assignRoles(sessions)
	w.Steps = len(steps)
	w.head(sessions)
	met := map[*session]bool{}
	for i := range steps {
		st := &steps[i]
		if s := st.session; !met[s] {
			met[s] = true
			if s.midway {
				w.Incomplete = true
				w.comment("%s: this connection began before the capture, so its earlier messages are missing.", s.peer.Name)
			}
		}
		var before *step
		if i > 0 {
			before = &steps[i-1]
		}
		if err := w.step(st, before); err != nil {
			return nil, err
		}
	}
	if slices.ContainsFunc(sessions, func(s *session) bool { return s.cutOff }) {
		w.Incomplete = true
		w.comment("This transcript ends here, because jobwire keeps a limited number of messages. The connections have more messages in the capture.")
	}
	return w.out, nil
}

// head writes the comments before the steps.
func (w *scriptWriter) head(sessions []*session) {
	w.Connections = len(sessions)
	w.out = fmt.Appendf(w.out, "# From %s, server %s.\n", plainText(w.source), sessions[0].server)
	const shown = 50
	for _, s := range sessions[:min(len(sessions), shown)] {
		w.comment("%s is connection %d", s.peer.Name, s.id)
	}
	if n := len(sessions) - shown; n > 0 {
		w.comment("and %d more", n)
	}
	w.out = fmt.Appendf(w.out, "@protocol %s\n\n", w.proto.Name)
}

// plainText replaces control characters, for use in a comment.
func plainText(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, s)
}

// comment writes a comment.
func (w *scriptWriter) comment(format string, args ...any) {
	w.out = append(fmt.Appendf(append(w.out, "# "...), format, args...), '\n')
}

// step writes a step, as a comment if it cannot be replayed.
func (w *scriptWriter) step(st, before *step) error {
	if st.problem != "" {
		w.Incomplete = true
		w.comment("%s: %s", st.session.peer.Name, st.problem)
		if st.verb == transcript.Raw && !w.ended {
			w.comment("The messages below are comments, because they cannot be replayed.")
			w.ended = true
		}
		if len(st.raw) == 0 && st.verb == transcript.Raw {
			return nil
		}
	}
	if st.note != "" {
		w.comment("%s", st.note)
	}
	line, err := transcript.AppendStep(nil, w.proto, w.build(st, before))
	if err != nil {
		return err
	}
	if w.ended || st.problem != "" {
		w.out = append(w.out, "# "...)
		line = append(bytes.TrimRight(line[:min(len(line), maxUnplayable)], "\n"), '\n')
	}
	w.out = append(w.out, line...)
	w.confirm(st)
	return nil
}

// build returns a step in transcript notation.
func (w *scriptWriter) build(st, before *step) *transcript.Step {
	s := &transcript.Step{Peer: st.session.peer, From: st.from}
	c := transcript.Choice{Verb: st.verb, Type: st.typ, CRLF: st.crlf}
	if st.verb == transcript.Raw {
		c.Bytes = st.raw
	}
	if t := st.typ; t != nil {
		c.Unchecked = t.Roles(st.from)&s.Peer.Role == 0 || st.size > w.proto.Limits(codec.Options{}).MaxData
		c.Args = w.args(st)
	}
	s.Choices = []transcript.Choice{c}
	w.timing(s, st, before)
	return s
}

// timing adds the times of the capture that a replay may need.
func (w *scriptWriter) timing(s *transcript.Step, st, before *step) {
	if before == nil {
		return
	}
	gap := time.Duration(st.at - before.at)
	if st.from == codec.Server {
		if gap > longWait {
			s.Within = min(2*gap.Round(time.Second), mostWait)
		}
		return
	}
	switch {
	case gap >= longPause:
		s.After = min(gap, mostPause).Round(time.Millisecond)
	case len(w.unconfirmed) > 0 && w.unconfirmed[st.session] == nil, len(w.unconfirmed) > 1:
		s.After = settle
	}
	if s.After > 0 {
		clear(w.unconfirmed)
	}
}

// confirm records the messages that the server has received: when it sends a message, those of the same
// connection, and those that name the same job.
func (w *scriptWriter) confirm(st *step) {
	if st.from == codec.Peer {
		w.unconfirmed[st.session] = st
		return
	}
	delete(w.unconfirmed, st.session)
	for s, sent := range w.unconfirmed {
		if sent.typ != nil && st.typ != nil && sameJob(sent, st) {
			delete(w.unconfirmed, s)
		}
	}
}

// sameJob reports whether two messages name the same job.
func sameJob(a, b *step) bool {
	for i, v := range a.args {
		if fd := a.typ.FieldAt(i); !fd.Assigned {
			continue
		}
		for k, w := range b.args {
			if b.typ.FieldAt(k).Assigned && bytes.Equal(v, w) {
				return true
			}
		}
	}
	return false
}

// args returns the arguments: values that the server chooses as variables, values that differ between servers
// as wildcards, and times relative to the current time.
func (w *scriptWriter) args(st *step) []transcript.Arg {
	t, server := st.typ, st.from == codec.Server
	if server && len(t.Repeat) > 0 && (st.varies || t.Varies) {
		return []transcript.Arg{{Kind: transcript.Rest}}
	}
	args := make([]transcript.Arg, len(st.args))
	for i, v := range st.args {
		a, fd := &args[i], t.FieldAt(i)
		a.Value = v
		switch {
		case server && (st.varies || t.Varies || fd.Means == codec.Chosen):
			a.Kind = transcript.Any
		case fd.Means == codec.JobID:
			if name := w.name(st, v); name != "" {
				a.Kind, a.Name = transcript.Name, name
			}
		case fd.Means == codec.StartTime || fd.Means == codec.Clock:
			if delta, ok := since(fd, v, st.at); ok {
				a.Kind, a.Delta = transcript.Now, delta
			}
		}
	}
	return args
}

// name returns the variable of a value that the server chose, or "" for a value that a peer sent first.
func (w *scriptWriter) name(st *step, v []byte) string {
	key := string(v)
	if w.proto.ScopedIDs {
		key = string(st.scope) + "\x00" + key
	}
	name, known := w.names[key]
	if !known {
		if st.from == codec.Server && len(v) > 0 {
			name = "job" + strconv.Itoa(len(w.names)+1)
		}
		w.names[key] = name
	}
	return name
}

// since returns the difference between a time and the time of its message.
func since(fd *codec.Field, v []byte, at int64) (int64, bool) {
	n, ok := codec.ParseNumber(v)
	if fd.Kind == codec.Uint {
		n = codec.BigEndian(v)
	} else if !ok {
		return 0, false
	}
	d := int64(n) - at/1e9
	return d, d > -nearNow && d < nearNow
}
