// Package capturefile writes the messages of played transcripts as capture files with comments.
package capturefile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/conform"
	"jobwire/pcap"
	"jobwire/play"
)

// Kinds maps the verbs of transcript events to the kinds of capture events. Silence is not an event in a capture.
var Kinds = map[transcript.Verb]pcap.Kind{
	transcript.Send:       pcap.Data,
	transcript.Raw:        pcap.Data,
	transcript.Opens:      pcap.Opens,
	transcript.Closes:     pcap.Closes,
	transcript.HalfCloses: pcap.HalfCloses,
	transcript.Resets:     pcap.Resets,
}

// Write writes a capture of one transcript.
func Write(w io.Writer, p *codec.Protocol, events []play.Event, comments func(i int) []string) error {
	c, err := newScriptWriter(w, p)
	if err != nil {
		return err
	}
	if err := c.Add(events, time.Time{}, comments); err != nil {
		return err
	}
	return c.w.Close()
}

// scriptWriter writes transcripts as packets.
type scriptWriter struct {
	w    *pcap.Writer
	next int // number of the next connection
}

func newScriptWriter(w io.Writer, p *codec.Protocol) (*scriptWriter, error) {
	cw, err := pcap.NewWriter(w, p.DefaultPort)
	return &scriptWriter{w: cw}, err
}

// Add writes the events of a transcript as packets of new connections, one for each actor. The time of an event is
// began plus its time in the transcript; if began is zero, the events are 1 ms apart. If a peer closes its connection
// and the server sends another event on it, add half-closes the connection instead. comments returns the packet
// comments of the event with index i.
func (s *scriptWriter) Add(events []play.Event, began time.Time, comments func(i int) []string) error {
	next := map[string]codec.Side{} // sender of the next event on the connection of each actor
	answered := make([]bool, len(events))
	for i, ev := range slices.Backward(events) {
		if _, ok := Kinds[ev.Verb]; ok {
			answered[i] = next[ev.Actor.Name] == codec.Server
			next[ev.Actor.Name] = ev.From
		}
	}
	type conn struct {
		id     int
		closed [2]bool
	}
	conns := map[string]*conn{} // open connections
	for i := range events {
		ev := &events[i]
		kind, ok := Kinds[ev.Verb]
		cn := conns[ev.Actor.Name]
		if !ok || cn == nil && kind != pcap.Data && kind != pcap.Opens {
			continue
		}
		if kind == pcap.Closes && ev.From == codec.Peer && answered[i] {
			kind = pcap.HalfCloses
		}
		if cn == nil {
			cn = &conn{id: s.next}
			conns[ev.Actor.Name] = cn
			s.next++
		}
		out := pcap.Event{Conn: cn.id, From: ev.From, Kind: kind, Data: ev.Frame.Raw, Comments: comments(i)}
		if !began.IsZero() {
			out.At = began.Add(ev.At)
		}
		if err := s.w.Write(out); err != nil {
			return err
		}
		switch kind {
		case pcap.HalfCloses:
			cn.closed[ev.From] = true
		case pcap.Closes, pcap.Resets:
			cn.closed = [2]bool{true, true}
		}
		if cn.closed[codec.Peer] && cn.closed[codec.Server] {
			delete(conns, ev.Actor.Name)
		}
	}
	return nil
}

// File is a capture file with the packets of several transcripts.
type File struct {
	*scriptWriter
	File *os.File
}

func Create(name string, p *codec.Protocol) (*File, error) {
	f, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	w, err := newScriptWriter(f, p)
	return &File{w, f}, err
}

// Close finishes the capture and closes the file.
func (f *File) Close() error { return errors.Join(f.w.Close(), f.File.Close()) }

// PlayComments returns a function that returns the packet comments for the events of a played transcript: the file
// and line of each message and, for the last event, why the run failed.
func PlayComments(s *transcript.Script, r *play.Result) func(i int) []string {
	last := lastShown(r.Events)
	return func(i int) []string {
		ev, place := &r.Events[i], s.File
		if ev.Step >= 0 {
			place = fmt.Sprintf("%s:%d", s.File, s.Steps[ev.Step].Line)
		}
		about := []string{place + ": " + Described(s.Protocol, ev)}
		if i == last && r.Failure != nil {
			about = append(about, "Failed: "+r.Failure.Error())
		}
		return about
	}
}

// caseComments returns a function that returns the packet comments for the events of a case that did not pass: the ID
// of the case and, for the last event, the verdict and the rule of the failed step.
func caseComments(p *codec.Protocol, r *conform.Result) func(i int) []string {
	last := lastShown(r.Play.Events)
	return func(i int) []string {
		about := []string{r.Case.ID + ": " + Described(p, &r.Play.Events[i])}
		if i == last {
			about = append(about, fmt.Sprintf("%s: %s [%s]: %s", r.Case.ID, r.Verdict, r.Rule(), r.Note))
		}
		return about
	}
}

// WriteFailedCases writes the messages of the cases that did not pass, one case after the other, and closes the
// capture.
func WriteFailedCases(c *File, reports []*conform.Report) error {
	for _, rep := range reports {
		for i := range rep.Results {
			if r := &rep.Results[i]; r.Play != nil {
				if err := c.Add(r.Play.Events, time.Time{}, caseComments(rep.Protocol, r)); err != nil {
					return err
				}
			}
		}
	}
	return c.Close()
}

// lastShown returns the index of the last event that add writes, or -1 if there is none.
func lastShown(events []play.Event) int {
	for i, ev := range slices.Backward(events) {
		if _, ok := Kinds[ev.Verb]; ok {
			return i
		}
	}
	return -1
}

// Described returns the sender, the receiver and the type of a message, and the rule that the message violates.
func Described(p *codec.Protocol, ev *play.Event) string {
	from, to, what := ev.Actor.Name, p.ServerName, ev.Verb.String()
	if ev.From == codec.Server {
		from, to = to, from
	}
	if t := ev.Frame.Type; t != nil {
		what = t.Name
	} else if ev.Verb == transcript.Raw {
		what = "bytes that are not a message"
	}
	if ev.Err != nil {
		what += fmt.Sprintf(" [%s] %s", ev.Err.Rule, ev.Err.Detail)
	}
	return fmt.Sprintf("%s -> %s: %s", from, to, what)
}
