package input

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"jobwire/codec"
	"jobwire/internal/version"
)

// Log contains the inputs that a worker ran on one server, in order, from the start of the server. Running them again
// on a new server repeats the behavior of the server.
type Log struct {
	Protocol   *codec.Protocol
	Server     string // name of the server in reports
	Seed       uint64 // random seed of the run
	Worker     int
	Generation int  // number of this server among the servers of the worker
	Clock      int  // speed of the server's clock as a multiple of the machine's clock; 0: the same speed
	Steady     bool // the worker sent a barrier on every connection after each step
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
	Steady     bool   `json:"steady,omitempty"`
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
	err := e.Encode(logHeader{version.Get().String(), l.Protocol.Name, l.Server, l.Seed, l.Worker, l.Generation, l.Clock,
		l.Steady})
	for i := range l.Entries {
		if err != nil {
			return err
		}
		n := &l.Entries[i]
		err = e.Encode(logLine{n.Prefix, stored(n.Input), n.Events})
	}
	return errors.Join(err, b.Flush())
}

// ReadLog reads a log that Write has written. It returns an error if the log is of another protocol than p.
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
		Clock: head.Clock, Steady: head.Steady}
	for d.More() {
		var line logLine
		if err := d.Decode(&line); err != nil {
			return nil, err
		}
		in, err := line.input(p)
		if err != nil {
			return nil, err
		}
		// The prefix replaces the placeholder in the names of the input.
		if len(line.Prefix) != 0 && len(line.Prefix) != len(Placeholder) {
			return nil, fmt.Errorf("invalid prefix %q: expected %d characters", line.Prefix, len(Placeholder))
		}
		l.Entries = append(l.Entries, Entry{Input: in, Prefix: line.Prefix, Events: line.Events})
	}
	return l, nil
}

// Until returns a log with the first n entries. Entries that are added to l later do not change the result.
func (l *Log) Until(n int) *Log {
	part := *l
	part.Entries = l.Entries[:n:n]
	return &part
}

// Last returns a log with the last n entries.
func (l *Log) Last(n int) *Log {
	part := *l
	part.Entries = l.Entries[max(0, len(l.Entries)-n):]
	return &part
}

// Together returns a copy of the entries in which inputs are sent in the given mode if they contain adjacent messages
// on one connection.
func Together(entries []Entry, mode Mode) []Entry {
	all := slices.Clone(entries)
	for i := range all {
		if d := all[i].Input.Together(mode); d != nil {
			all[i].Input = d
		}
	}
	return all
}
