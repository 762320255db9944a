package pcap

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"jobwire/codec"
	"jobwire/codec/transcript"
)

// How times of a capture are kept. What took longer may mean something to the server; what
// nobody answers is given a moment to take effect.
const (
	longPause = 100 * time.Millisecond
	mostPause = 2 * time.Second
	settle    = 10 * time.Millisecond
	longWait  = 3 * time.Second
	mostWait  = time.Minute
	nearNow   = 24 * 60 * 60 // seconds around a message in which a number is a time
)

// Written tells of a transcript.
type Written struct {
	Name        string
	Connections int
	Steps       int
	Incomplete  bool // something in it cannot be performed, or is missing
}

// Write writes all transcripts, each to the file that create makes for its name. It
// returns what was written; left counts messages for which there was no room, and
// foreign connections in no protocol that can be performed.
func (t *Transcripts) Write(source string, create func(name string) (io.WriteCloser, error)) (all []Written, left, foreign int, err error) {
	count := map[*codec.Protocol]int{}
	for _, steps := range t.sets() {
		p := steps[0].talk.proto
		count[p]++
		w := scriptWriter{proto: p, notes: playRows[p], names: map[string]string{}, source: source, unheard: map[*talk]*step{}}
		w.Name = fmt.Sprintf("%s-%d.wire", p.Name, count[p])
		text, err := w.script(steps)
		if err != nil {
			return all, t.left, len(t.foreign), err
		}
		out, err := create(w.Name)
		if err != nil {
			return all, t.left, len(t.foreign), err
		}
		_, err = out.Write(text)
		if cerr := out.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			return all, t.left, len(t.foreign), err
		}
		all = append(all, w.Written)
	}
	return all, t.left, len(t.foreign), nil
}

// scriptWriter writes one transcript.
type scriptWriter struct {
	Written
	proto  *codec.Protocol
	notes  *playNotes
	source string
	out    []byte
	names  map[string]string // of what the server chose; "" of what a peer made up
	ended  bool              // what follows is not performed

	unheard map[*talk]*step // the last of a peer, while nothing tells that the server has heard it
}

func transcriptName(role string, n int) string { return role + " " + strconv.Itoa(n) }

func (w *scriptWriter) script(steps []step) ([]byte, error) {
	steps = ending(steps)
	steps = arrange(steps)
	cast(steps)
	w.head(steps)
	met := map[*talk]bool{}
	for i := range steps {
		st := &steps[i]
		if tk := st.talk; !met[tk] {
			met[tk] = true
			if tk.mid {
				w.Incomplete = true
				w.comment("%s: the connection began before the capture. What it said until then is missing here.", tk.peer.Name)
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
	for i := range steps {
		if steps[i].talk.goesOn {
			w.Incomplete = true
			w.comment("The conversation goes on: this is as much of it as is kept.")
			break
		}
	}
	return w.out, nil
}

// head writes what stands above the steps.
func (w *scriptWriter) head(steps []step) {
	met := map[*talk]bool{}
	var list []string
	for i := range steps {
		if tk := steps[i].talk; !met[tk] {
			met[tk] = true
			list = append(list, fmt.Sprintf("%s is connection %d", tk.peer.Name, tk.id))
		}
	}
	w.Connections, w.Steps = len(met), len(steps)
	w.out = fmt.Appendf(w.out, "# From %s, server %s.\n", plainText(w.source), steps[0].talk.server)
	const shown = 50
	for _, line := range list[:min(len(list), shown)] {
		w.comment("%s", line)
	}
	if n := len(list) - shown; n > 0 {
		w.comment("and %d more", n)
	}
	w.out = fmt.Appendf(w.out, "@protocol %s\n\n", w.proto.Name)
}

// plainText is a text for a comment.
func plainText(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, s)
}

// comment writes a line that is not performed.
func (w *scriptWriter) comment(format string, args ...any) {
	w.out = append(fmt.Appendf(append(w.out, "# "...), format, args...), '\n')
}

// step writes a step, or, as a comment, one that cannot be performed.
func (w *scriptWriter) step(st, before *step) error {
	if st.odd != "" {
		w.Incomplete = true
		w.comment("%s: %s", st.talk.peer.Name, st.odd)
		if st.verb == transcript.Raw && !w.ended {
			w.comment("What follows is not performed.")
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
	if w.ended || st.odd != "" {
		w.out = append(w.out, "# "...)
		line = append(bytes.TrimRight(line[:min(len(line), maxUnplayable)], "\n"), '\n')
	}
	w.out = append(w.out, line...)
	w.hear(st)
	return nil
}

// build makes the step of the notation.
func (w *scriptWriter) build(st, before *step) *transcript.Step {
	s := &transcript.Step{Peer: st.talk.peer, From: st.from}
	c := transcript.Choice{Verb: st.verb, Type: st.typ, CRLF: st.crlf}
	if st.verb == transcript.Raw {
		c.Bytes = st.raw
	}
	if t := st.typ; t != nil {
		role := t.Req
		if st.from == codec.Server {
			role = t.Res
		}
		c.Unchecked = role&s.Peer.Role == 0 || st.size > w.proto.Limits(codec.Options{}).MaxData
		c.Args = w.args(st)
	}
	s.Choices = []transcript.Choice{c}
	w.timing(s, st, before)
	return s
}

// timing keeps of the capture's times what a performance may need.
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
	case len(w.unheard) > 0 && w.unheard[st.talk] == nil, len(w.unheard) > 1:
		s.After = settle
	}
	if s.After > 0 {
		clear(w.unheard)
	}
}

// hear notes which peers the server may not have heard: those that it did not answer since,
// if it does not speak to others of the job that they named.
func (w *scriptWriter) hear(st *step) {
	if st.from == codec.Peer {
		w.unheard[st.talk] = st
		return
	}
	delete(w.unheard, st.talk)
	for tk, said := range w.unheard {
		if said.typ != nil && st.typ != nil && sameJob(said, st) {
			delete(w.unheard, tk)
		}
	}
}

// sameJob reports whether two messages name a job in common.
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

// args writes the arguments: what the server chooses as names, what another may say
// otherwise as wildcards, and times as so long before or behind the present one.
func (w *scriptWriter) args(st *step) []transcript.Arg {
	t, server := st.typ, st.from == codec.Server
	if server && len(t.Repeat) > 0 && (st.theirs || w.notes.isTheirs(t, nil)) {
		return []transcript.Arg{{Kind: transcript.Rest}}
	}
	args := make([]transcript.Arg, len(st.args))
	for i, v := range st.args {
		a, fd := &args[i], t.FieldAt(i)
		a.Value = v
		switch {
		case server && (st.theirs || w.notes.isTheirs(t, fd)):
			a.Kind = transcript.Any
		case fd.Assigned || slices.Contains(w.notes.jobs, fd.Name):
			if name := w.name(st, fd, v); name != "" {
				a.Kind, a.Name = transcript.Name, name
			}
		case slices.Contains(w.notes.times, t.Name+"."+fd.Name):
			if delta, ok := since(fd, v, st.at); ok {
				a.Kind, a.Delta = transcript.Now, delta
			}
		}
	}
	return args
}

// name returns the name of a value that the server chose, or "" for one that it had
// not told: that stands for itself.
func (w *scriptWriter) name(st *step, fd *codec.Field, v []byte) string {
	key := string(v)
	if !fd.Assigned { // it counts for its function
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

// since returns how far a time lies from the message that names it.
func since(fd *codec.Field, v []byte, at int64) (int64, bool) {
	var n uint64
	if fd.Kind == codec.Uint {
		n = binary.BigEndian.Uint64(append(make([]byte, 8-len(v)), v...))
	} else {
		var bad int
		if n, bad = codec.ParseNumber(v); bad >= 0 {
			return 0, false
		}
	}
	d := int64(n) - at/1e9
	return d, d > -nearNow && d < nearNow
}
