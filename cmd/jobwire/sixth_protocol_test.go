package main

import (
	"slices"
	"strconv"
	"testing/fstest"
	"time"

	"jobwire/catalog"
	"jobwire/codec"
	"jobwire/judge"
	"jobwire/refserver"
)

// tiny is a job queue protocol that exists only in this test. A message is a header of twelve bytes and its arguments,
// separated by NUL. The header has a magic, the number of the message type and the number of bytes that follow.
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

Client -> Queue: raw "ASK\x01" 00 00 00 63 00 00 00 00
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

var tinyMessages = []codec.Type{
	{Code: 1, Name: "ADD", Req: tinyClient, Does: codec.Submit, Fields: []codec.Field{tinyQueue, tinyPayload},
		Replies: []string{"ADDED", "NO"}},
	{Code: 2, Name: "ADDED", Res: tinyClient, Does: codec.Accept, Fields: []codec.Field{tinyID}},
	{Code: 3, Name: "JOIN", Req: tinyWorker, Does: codec.Register, Fields: []codec.Field{tinyQueue}},
	{Code: 4, Name: "NEXT", Req: tinyWorker, Does: codec.Ask, Replies: []string{"JOB", "NONE"}},
	{Code: 5, Name: "JOB", Res: tinyWorker, Does: codec.Assign, Fields: []codec.Field{tinyID, tinyQueue, tinyPayload}},
	{Code: 6, Name: "NONE", Res: tinyWorker, Does: codec.NoJob},
	{Code: 7, Name: "DONE", Req: tinyWorker, Res: tinyClient, Does: codec.Complete,
		Fields: []codec.Field{tinyID, tinyPayload}},
	{Code: 8, Name: "PING", Req: tinyClient | tinyWorker, Does: codec.Echo, Fields: []codec.Field{tinyPayload},
		Replies: []string{"PONG", "NO"}},
	{Code: 9, Name: "PONG", Res: tinyClient | tinyWorker, Does: codec.Answer, Fields: []codec.Field{tinyPayload}},
	{Code: 10, Name: "NO", Res: tinyClient | tinyWorker, Does: codec.Refuse,
		Fields: []codec.Field{{Name: "Reason", Means: codec.Chosen}}},
}

var tinyForm = codec.Form{
	Any:     []codec.RuleID{"tiny.message.magic", "tiny.message.direction", "tiny.message.size-cap", "tiny.type.known"},
	Missing: "tiny.args.missing", Extra: "tiny.args.surplus", Trailing: "tiny.args.surplus"}

var tinyFraming = codec.Framing{Header: &codec.Header{
	Fields: [3]*codec.Field{
		{Name: "Magic", Kind: codec.Literal, Width: 4, Rule: "tiny.message.magic"},
		{Name: "Type", Kind: codec.Code, Width: 4, Rule: "tiny.type.known"},
		{Name: "Size", Kind: codec.Length, Width: 4, Rule: "tiny.message.size-cap"},
	},
	Magic: [2]string{codec.Peer: "ASK\x01", codec.Server: "ANS\x01"}, Form: &tinyForm,
	Other: "tiny.message.magic", Reversed: "tiny.message.direction", Known: "tiny.type.known",
	Direction: "tiny.message.direction", Size: "tiny.message.size-cap",
	KnownDetail: "expected a known message type, got %d",
	ExtraDetail: "expected no data for a type without arguments, got %d bytes",
}}

var tinyProtocol = &codec.Protocol{
	Name: "tiny", Title: "Tiny", DefaultPort: 4799, ServerName: "Queue", Roles: []string{"Client", "Worker"},
	Types: tinyTypes(), Complete: "tiny.message.complete", Answered: "tiny.request.answered", Framing: tinyFraming, OrderedIDs: true,
	Binary: func([]byte) bool { return true },
	NewSession: func(o codec.Options) codec.Session {
		o = o.WithDefaults()
		return tinyFraming.Header.Session(&o, nil)
	},
	Barriers: []codec.Barrier{{Request: []string{"PING", codec.Nonce}, Reply: []string{"PONG", codec.Nonce}}},
	Rules: codec.ParseRules(`
tiny.message.magic MUST, Messages
  A message begins with the magic of its direction.
tiny.message.direction MUST, Messages
  A message type is sent only in its direction.
tiny.message.complete MUST, Messages
  A client, worker or server does not end a connection in the middle of a message.
tiny.message.size-cap MUST, Messages
  A message is not longer than the limit of its receiver.
tiny.type.known MUST, Messages
  The number of a message type is one of the table.
tiny.args.missing MUST, Messages
  A message has all arguments of its type.
tiny.args.surplus MUST, Messages
  A message has no more arguments than its type.
tiny.queue.not-empty MUST, Messages
  The name of a queue is not empty.
tiny.id.decimal MUST, Messages
  The ID of a job is a decimal number.
tiny.request.answered MUST, Messages
  A request that has a reply in the table is answered.
tiny.work.once MUST, Work
  The server assigns a job to only one worker.
tiny.work.result MUST, Work
  The server sends the result of a job to the client that submitted it.
tiny.work.own-job MUST, Work
  A worker sends DONE only for a job that it was assigned.
`),
}

func tinyTypes() []*codec.Type {
	for i := range tinyMessages {
		tinyMessages[i].Section = "Messages"
	}
	tinyFraming.Header.Link(tinyMessages)
	return codec.JoinTypes(tinyMessages)
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
