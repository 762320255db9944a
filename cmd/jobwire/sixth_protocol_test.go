package main

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"testing/fstest"
	"time"

	"jobwire/catalog"
	"jobwire/codec"
	"jobwire/judge"
	"jobwire/refserver"
)

// tiny is a job queue protocol that exists only in this test. A message is a netstring, such as
// "14:ADD mail hello,", with the name of its type and its arguments.
var tiny = catalog.Entry{
	Protocol: tinyProtocol,
	Checker:  newTinyChecker,
	Server:   func(catalog.Flags) func() refserver.Machine { return newTinyServer },
	Files: fstest.MapFS{
		"accept.wire": {Data: []byte(`
@case ADD

Client -> Queue: ADD mail hello

@case JOB

Queue -> Worker: JOB 1 mail hello
`)},
		"reject.wire": {Data: []byte(`
@case unknown-type
@rule tiny.type.known

Client -> Queue: raw "3:ADX,"
`)},
		"cases/work.wire": {Data: []byte(`
@section Work

@case work.result
@about The client receives the result of its job.
@rules tiny.work.result tiny.work.once

Worker -> Queue: JOIN mail
Client -> Queue: ADD mail hello
Queue -> Client: ADDED $id
Worker -> Queue: NEXT
Queue -> Worker: JOB $id mail hello
Worker -> Queue: NEXT
Queue -> Worker: NONE
Worker -> Queue: DONE $id HELLO
Queue -> Client: DONE $id HELLO
`)},
	},
}

const (
	tinyClient codec.Role = 1 << iota
	tinyWorker
)

var (
	tinyQueue   = codec.Field{Name: "Queue", Kind: codec.Text, Means: codec.Queue, NonEmpty: "tiny.queue.not-empty"}
	tinyPayload = codec.Field{Name: "Payload", Means: codec.Payload}
	tinyID      = codec.Field{Name: "Job ID", Kind: codec.Number, Means: codec.JobID, Assigned: true, Rule: "tiny.id.decimal"}
)

var tinyTypes = codec.JoinTypes(netstrings([]codec.Type{
	{Name: "ADD", Req: tinyClient, Does: codec.Submit, Fields: []codec.Field{tinyQueue, tinyPayload}, Replies: []string{"ADDED", "NO"}},
	{Name: "ADDED", Res: tinyClient, Does: codec.Accept, Fields: []codec.Field{tinyID}},
	{Name: "JOIN", Req: tinyWorker, Does: codec.Register, Fields: []codec.Field{tinyQueue}},
	{Name: "NEXT", Req: tinyWorker, Does: codec.Ask, Replies: []string{"JOB", "NONE"}},
	{Name: "JOB", Res: tinyWorker, Does: codec.Assign, Fields: []codec.Field{tinyID, tinyQueue, tinyPayload}},
	{Name: "NONE", Res: tinyWorker, Does: codec.NoJob},
	{Name: "DONE", Req: tinyWorker, Res: tinyClient, Does: codec.Complete, Fields: []codec.Field{tinyID, tinyPayload}},
	{Name: "PING", Req: tinyClient | tinyWorker, Does: codec.Echo, Fields: []codec.Field{tinyPayload}, Replies: []string{"PONG", "NO"}},
	{Name: "PONG", Res: tinyClient | tinyWorker, Does: codec.Answer, Fields: []codec.Field{tinyPayload}},
	{Name: "NO", Res: tinyClient | tinyWorker, Does: codec.Refuse, Fields: []codec.Field{{Name: "Reason", Means: codec.Chosen}}},
}))

var tinyForm = codec.Form{Any: []codec.RuleID{"tiny.message.netstring", "tiny.message.size-cap", "tiny.type.known"},
	Missing: "tiny.args.missing", Extra: "tiny.args.surplus", Trailing: "tiny.args.surplus"}

func netstrings(types []codec.Type) []codec.Type {
	for i := range types {
		types[i].Word, types[i].Sep, types[i].Section = types[i].Name, " ", "Messages"
		types[i].Form = [2]*codec.Form{&tinyForm, &tinyForm}
	}
	return types
}

var tinyProtocol = &codec.Protocol{
	Name: "tiny", Title: "Tiny", DefaultPort: 4799, ServerName: "Queue", Roles: []string{"Client", "Worker"},
	Types: tinyTypes, Complete: "tiny.message.complete", NewSession: newTinySession, OrderedIDs: true,
	Barriers: []codec.Barrier{{Request: []string{"PING", codec.Nonce}, Reply: []string{"PONG", codec.Nonce}}},
	Rules: codec.ParseRules(`
tiny.message.netstring MUST, Messages
  A message is a netstring: its size in decimal digits, a colon, the message and a comma.
tiny.message.complete MUST, Messages
  A client, worker or server does not end a connection in the middle of a message.
tiny.message.size-cap MUST, Messages
  A message is not longer than the limit of its receiver.
tiny.type.known MUST, Messages
  A message begins with the name of a type that its sender may send.
tiny.args.missing MUST, Messages
  A message has all arguments of its type.
tiny.args.surplus MUST, Messages
  A message has no more arguments than its type.
tiny.queue.not-empty MUST, Messages
  The name of a queue is not empty.
tiny.id.decimal MUST, Messages
  The ID of a job is a decimal number.
tiny.work.once MUST, Work
  The server assigns a job to only one worker.
tiny.work.result MUST, Work
  The server sends the result of a job to the client that submitted it.
tiny.work.own-job MUST, Work
  A worker sends DONE only for a job that it was assigned.
`),
}

var (
	tinySize = codec.Field{Name: "Size", Kind: codec.Length, Term: ":"}
	tinyWord = codec.Field{Name: "Type", Kind: codec.Code}
)

type tinySession struct {
	opts   codec.Options
	layout codec.Layout
}

func newTinySession(o codec.Options) codec.Session {
	s := &tinySession{opts: o.WithDefaults()}
	s.layout = codec.Layout{Form: &tinyForm, Options: &s.opts}
	return s
}

func (s *tinySession) Decode(from codec.Side, b []byte, f *codec.Frame) (int, error) {
	f.Reset(from)
	fatal := func(at int, rule codec.RuleID, expected string) (int, error) {
		return 0, &codec.Error{Rule: rule, Offset: at, Field: "Size", Detail: "expected " + expected, Fatal: true}
	}
	digits := bytes.IndexFunc(b, func(r rune) bool { return r < '0' || r > '9' })
	switch {
	case digits < 0 && len(b) < 10:
		return len(b) + 1, codec.ErrShort
	case digits <= 0 || digits > 9 || b[digits] != ':' || b[0] == '0' && digits > 1:
		return fatal(max(digits, 0), "tiny.message.netstring", "a size and a colon")
	}
	size, _ := strconv.Atoi(string(b[:digits]))
	if size > s.opts.MaxData {
		return fatal(0, "tiny.message.size-cap", "a smaller size")
	}
	n := digits + 1 + size + 1
	if len(b) < n {
		return n, codec.ErrShort
	}
	if b[n-1] != ',' {
		return fatal(n-1, "tiny.message.netstring", "a comma after the message")
	}
	f.Raw, f.Head = b[:n:n], 2
	body := b[digits+1 : n-1]
	word, _, more := bytes.Cut(body, []byte(" "))
	at := digits + 1 + len(word)
	next := at
	if more {
		next++
	}
	f.Spans = append(f.Spans, codec.Span{Field: &tinySize, Off: 0, End: digits, Next: digits + 1}, codec.Span{Field: &tinyWord, Off: digits + 1, End: at, Next: next})
	for _, t := range tinyTypes {
		if t.Name == string(word) && (t.Sends(from) || s.opts.Waived("tiny.type.known")) {
			f.Type = t
		}
	}
	if f.Type == nil {
		return n, &codec.Error{Rule: "tiny.type.known", Offset: digits + 1, Field: "Type", Detail: "expected a type that the " + from.String() + " sends"}
	}
	if err := s.layout.Split(f, f.Type.Fields, " ", next, n-1, more); err != nil {
		return n, err
	}
	last := &f.Spans[len(f.Spans)-1]
	if last.Next < n-1 && !s.opts.Waived("tiny.args.surplus") {
		return n, &codec.Error{Rule: "tiny.args.surplus", Offset: last.Next, Field: "Type", Detail: "expected the end of the message"}
	}
	last.Next = n
	return n, nil
}

func (s *tinySession) Append(dst []byte, from codec.Side, m *codec.Message) ([]byte, error) {
	if !m.Type.Sends(from) && !s.opts.Waived("tiny.type.known") {
		return dst, &codec.Error{Rule: "tiny.type.known", Field: "Type", Detail: "expected a type that the " + from.String() + " sends"}
	}
	body := []byte(m.Type.Name)
	if len(m.Args) > 0 || len(m.Type.Fields) > 0 {
		body = append(body, ' ')
	}
	out, err := s.layout.Join(body, 0, m)
	switch {
	case err != nil:
		return dst, err
	case len(out) > s.opts.MaxData:
		return dst, &codec.Error{Rule: "tiny.message.size-cap", Field: "Size", Detail: "expected a shorter message"}
	}
	return fmt.Appendf(dst, "%d:%s,", len(out), out), nil
}

// tinyChecker checks that workers report only jobs that they were assigned.
type tinyChecker struct{}

func newTinyChecker(j *judge.Monitor) judge.Checker {
	j.Declare(codec.Peer, tinyWorker, "work.own-job")
	return tinyChecker{}
}

func (tinyChecker) Open(c *judge.Conn) judge.Conversation {
	return &tinyConversation{Conn: c, assigned: map[string]bool{}}
}
func (tinyChecker) Reset()    {}
func (tinyChecker) Size() int { return 0 }

type tinyConversation struct {
	*judge.Conn
	assigned map[string]bool
}

func (c *tinyConversation) Message(f *codec.Frame) {
	id := string(f.Get(codec.JobID))
	switch {
	case f.Type.Does == codec.Assign:
		c.assigned[id] = true
	case f.Type.Does == codec.Complete && f.From == codec.Peer:
		c.Check("tiny.work.own-job", c.assigned[id], "Job ID", "the server has not assigned job %s to this worker", id)
	}
}

func (c *tinyConversation) Invalid(*codec.Frame, codec.RuleID) { c.Stop() }
func (c *tinyConversation) End(codec.Side, bool)               {}
func (c *tinyConversation) Size() int                          { return len(c.assigned) }

// tinyServer is the reference server.
type tinyServer struct {
	last   int
	queued []*tinyJob
	jobs   map[string]*tinyJob
}

type tinyJob struct {
	id, queue, payload string
	client, worker     *refserver.Conn
}

func newTinyServer() refserver.Machine { return &tinyServer{jobs: map[string]*tinyJob{}} }

func (s *tinyServer) Open(c *refserver.Conn) { c.Data = []string(nil) }

func (s *tinyServer) Handle(c *refserver.Conn, f *codec.Frame) {
	send := func(to *refserver.Conn, name string, args ...string) {
		var all [][]byte
		for _, a := range args {
			all = append(all, []byte(a))
		}
		to.Send(tinyProtocol.TypeNamed(name), all...)
	}
	switch f.Type.Does {
	case codec.Submit:
		s.last++
		j := &tinyJob{id: strconv.Itoa(s.last), queue: string(f.Arg(0)), payload: string(f.Arg(1)), client: c}
		s.jobs[j.id], s.queued = j, append(s.queued, j)
		send(c, "ADDED", j.id)
	case codec.Register:
		c.Data = append(c.Data.([]string), string(f.Arg(0)))
	case codec.Ask:
		i := slices.IndexFunc(s.queued, func(j *tinyJob) bool { return slices.Contains(c.Data.([]string), j.queue) })
		if i < 0 {
			send(c, "NONE")
			return
		}
		j := s.queued[i]
		s.queued = slices.Delete(s.queued, i, i+1)
		j.worker = c
		send(c, "JOB", j.id, j.queue, j.payload)
	case codec.Complete:
		if j := s.jobs[string(f.Arg(0))]; j == nil || j.worker != c {
			send(c, "NO", "the job is not yours")
		} else {
			delete(s.jobs, j.id)
			j.client.Forward(f)
		}
	case codec.Echo:
		send(c, "PONG", string(f.Arg(0)))
	}
}

func (s *tinyServer) Reject(c *refserver.Conn, _ *codec.Frame, e *codec.Error) {
	c.Send(tinyProtocol.TypeNamed("NO"), []byte(e.Rule))
}

func (s *tinyServer) HalfClosed(*refserver.Conn) bool { return false }

func (s *tinyServer) Close(c *refserver.Conn) {
	for _, j := range s.jobs {
		if j.worker == c {
			j.worker, s.queued = nil, append(s.queued, j)
		}
	}
}

func (s *tinyServer) Next() time.Time { return time.Time{} }
func (s *tinyServer) Tick(time.Time)  {}
