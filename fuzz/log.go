package fuzz

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/internal/version"
)

// Log contains the inputs that a worker ran on one server, in order, from the start of the server. Running them again
// on a new server repeats the behavior of the server.
type Log struct {
	Protocol   *codec.Protocol
	Server     string // name of the server in reports
	Seed       uint64 // random seed of the run
	Worker     int
	Generation int // number of this server among the servers of the worker
	Clock      int // speed of the server's clock as a multiple of the machine's clock; 0: the same speed
	Entries    []Entry
}

// Entry is one input of a log.
type Entry struct {
	Input  *Input
	Prefix string // prefix of the names in the input

	// Events contains the types of the messages that the server sent, by connection. It is "" if the order of the
	// messages depends on time.
	Events string
}

// logHeader is the first line of a log file.
type logHeader struct {
	Version    string `json:"jobwire"`
	Protocol   string `json:"protocol"`
	Server     string `json:"server"`
	Seed       uint64 `json:"seed"`
	Worker     int    `json:"worker"`
	Generation int    `json:"life"`
	Clock      int    `json:"clock,omitempty"`
}

// logLine is one of the other lines of a log file: an entry.
type logLine struct {
	Prefix string `json:"prefix,omitempty"`
	storedInput
	Events string `json:"events,omitempty"`
}

// Write writes the log as lines of JSON: one line about the run, and then one line for each entry.
func (l *Log) Write(w io.Writer) error {
	b := bufio.NewWriter(w)
	e := json.NewEncoder(b)
	err := e.Encode(logHeader{version.Get().String(), l.Protocol.Name, l.Server, l.Seed, l.Worker, l.Generation, l.Clock})
	for i := range l.Entries {
		if err != nil {
			return err
		}
		n := &l.Entries[i]
		err = e.Encode(logLine{n.Prefix, stored(n.Input), n.Events})
	}
	return errors.Join(err, b.Flush())
}

// ReadLog reads a log that Write has written. It returns an error if the log is about another protocol.
func ReadLog(p *codec.Protocol, r io.Reader) (*Log, error) {
	d := json.NewDecoder(bufio.NewReader(r))
	var head logHeader
	if err := d.Decode(&head); err != nil {
		return nil, fmt.Errorf("this is not a log of fuzz: %w", err)
	}
	if head.Protocol != p.Name {
		return nil, fmt.Errorf("the log is about %q, not about %q", head.Protocol, p.Name)
	}
	l := &Log{Protocol: p, Server: head.Server, Seed: head.Seed, Worker: head.Worker, Generation: head.Generation,
		Clock: head.Clock}
	for d.More() {
		var line logLine
		if err := d.Decode(&line); err != nil {
			return nil, err
		}
		c, err := line.input(p)
		if err != nil {
			return nil, err
		}
		if len(line.Prefix) != 0 && len(line.Prefix) != len(placeholder) {
			return nil, fmt.Errorf("invalid prefix %q: expected %d characters", line.Prefix, len(placeholder))
		}
		l.Entries = append(l.Entries, Entry{Input: c, Prefix: line.Prefix, Events: line.Events})
	}
	return l, nil
}

// Replay runs the inputs of a log on a new server, in order, until the server ends or hangs. It calls failed for each
// fault that an oracle reports, with the number of the input, counted from 1. It returns an error if the server cannot
// be started or ctx is canceled.
func Replay(ctx context.Context, cfg Config, log *Log, failed func(n int, v *Fault)) error {
	f := newFuzzer(cfg)
	f.stopped = func() bool { return ctx.Err() != nil }
	f.triage = newTriage(ctx, f)
	l := f.triage.onlyExaminer.replay
	if log.Clock > 1 && cfg.StartFast == nil {
		return fmt.Errorf("the clock of the server of this log ran %d times as fast: add --fast-clock=%[1]d", log.Clock)
	}
	l.clock = log.Clock
	defer f.triage.ending.Wait()
	defer l.close()
	if err := f.calibrate(ctx); err != nil {
		return err
	}
	if err := l.ready(); err != nil {
		return err
	}
	l.used, l.x.thorough = true, false
	for i, e := range log.Entries {
		r := l.x.execute(e.Input, e.Prefix)
		if r.Fault == nil && !ended(l.t) {
			continue
		}
		if v := verdict(l.t, r.Fault); v != nil && ctx.Err() == nil {
			if failed(i+1, v); v.ends() || v.maybeCrashed() {
				return nil
			}
		}
	}
	if v := l.atEnd(nil); v != nil && ctx.Err() == nil {
		failed(len(log.Entries), v)
	}
	return ctx.Err()
}

// until returns a log with the first n entries. Entries that are added to l later do not change the result.
func (l *Log) until(n int) *Log {
	part := *l
	part.Entries = l.Entries[:n:n]
	return &part
}

// last returns a log with the last n entries.
func (l *Log) last(n int) *Log {
	part := *l
	part.Entries = l.Entries[max(0, len(l.Entries)-n):]
	return &part
}

// outcome returns the value of Entry.Events for a record.
func (r *Record) outcome() string {
	if r.OrderUncertain {
		return ""
	}
	var b strings.Builder
	conns := 0
	for i := range r.Events {
		if r.Events[i].Conn != canaryID {
			conns = max(conns, r.Events[i].Conn+1)
		}
	}
	for conn := range conns {
		if conn > 0 {
			b.WriteString("; ")
		}
		for i := range r.Events {
			e := &r.Events[i]
			switch {
			case e.Conn != conn || e.From != codec.Server || e.Barrier:
				continue
			case e.Verb == transcript.Send:
				b.WriteString(e.Type.Name)
			default:
				b.WriteString(e.Verb.String())
			}
			b.WriteByte(' ')
		}
	}
	return strings.TrimSpace(b.String())
}

// inputs returns the inputs of entries.
func inputs(entries []Entry) []*Input {
	all := make([]*Input, len(entries))
	for i := range entries {
		all[i] = entries[i].Input
	}
	return all
}

// together returns a copy of the entries in which inputs are sent in the given mode if they contain adjacent messages
// on one connection.
func together(entries []Entry, mode Mode) []Entry {
	all := slices.Clone(entries)
	for i := range all {
		if d := all[i].Input.together(mode); d != nil {
			all[i].Input = d
		}
	}
	return all
}
