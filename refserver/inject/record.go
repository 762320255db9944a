package inject

import (
	"slices"
	"strings"

	"jobwire/refserver"
)

// Peer is a connection, and what its messages say about it.
type Peer struct {
	*refserver.Conn
	server *Server

	ReceivedCount int            `expr:"heard"`   // number of messages received, including illegal ones
	Count         map[string]int `expr:"count"`   // number of legal messages of each type, including the current one
	First         string         `expr:"first"`   // type of the first message
	Past          []string       `expr:"past"`    // types of the last messages, at most maxPast, without the current one
	Request       *Message       `expr:"request"` // the last legal message; without a name if there is none
	Waits         bool           `expr:"waits"`   // the last request has not been answered
	Reply         string         `expr:"reply"`   // type of the last reply
	Ignored       bool           `expr:"ignored"` // the server reads nothing more from the peer
	Ended         bool           `expr:"ended"`   // the peer sends nothing more
	Left          bool           `expr:"left"`    // the connection is closed
	Rest          string         `expr:"rest"`    // the bytes that have arrived after the last complete message
	raw           []byte         // the bytes of the last message, if replies are decoded according to it

	// Recorded for workers:
	Announced []string `expr:"announced"` // all functions that it has ever registered
	Can       []string `expr:"can"`       // the functions, tubes or names that are registered at present
	Asleep    bool     `expr:"asleep"`
	Woken     int      `expr:"woken"`   // how often the server has woken it; in Gearman since it last went to sleep
	Idle      bool     `expr:"idle"`    // the worker was woken and has not requested a job since then
	Refused   int      `expr:"refused"` // how many times in succession the server had no job for it
	Goodbye   bool     `expr:"goodbye"` // the worker has unregistered all names
	Job       *Job     `expr:"job"`
	Done      []*Job   `expr:"done"`

	// Recorded for clients:
	Tube       string   `expr:"tube"`       // the tube that it uses
	Exceptions bool     `expr:"exceptions"` // the client has requested exceptions
	Created    []*Job   `expr:"created"`    // the jobs that its requests created, including duplicates
	Channels   []string `expr:"channels"`

	Noted map[string]any `expr:"notes"` // stored by faults
}

// maxPast is the maximum length of [Peer].Past.
const maxPast = 4

// Last returns the type of the message before the current one, or "". While messages of other peers are handled, it
// is the type of the peer's last message.
func (p *Peer) Last() string {
	if len(p.Past) == 0 {
		return ""
	}
	return p.Past[len(p.Past)-1]
}

// Does reports whether the worker has registered the function or name.
func (p *Peer) Does(name string) bool { return slices.Contains(p.Can, name) }

// Jobs returns the jobs that are assigned to the peer and have not ended.
func (p *Peer) Jobs() []*Job {
	return p.server.FindAll(func(j *Job) bool { return j.Worker == p && j.Ended == "" })
}

// Asked returns the type of the last legal message, or "".
func (p *Peer) Asked() string {
	return p.Request.Name
}

// Job is a job, as far as the messages show its state.
type Job struct {
	ID       string   `expr:"id"`     // or handle
	Type     string   `expr:"type"`   // type of the submission, or job type
	Queue    string   `expr:"queue"`  // function, tube or name
	Unique   string   `expr:"unique"` // unique ID, or key
	Data     string   `expr:"data"`   // workload, body or args
	Args     []string `expr:"args"`   // arguments of the submission
	Creator  *Peer    `expr:"creator"`
	Clients  []*Peer  `expr:"clients"`  // clients that wait for it, in the order in which they joined
	Worker   *Peer    `expr:"worker"`   // the worker that it is assigned to, or nil
	Assigned int      `expr:"assigned"` // how often it was assigned
	Ended    string   `expr:"ended"`    // type of the message that ended it; "" if it has not ended

	State  string `expr:"state"` // current state, previous state, and the last reply about it
	Before string `expr:"before"`
	Last   string `expr:"last"`

	Dups     int    `expr:"dups"`      // number of later submissions of the same job
	LastData string `expr:"last_data"` // data of the last submission
	Lost     int    `expr:"lost"`      // how often its worker disconnected
	Reports  int    `expr:"reports"`   // number of progress reports
	Progress string `expr:"progress"`  // the last progress report, as in the message
	First    string `expr:"first"`     // the first progress report
	Result   string `expr:"result"`
	Code     byte   `expr:"code"`   // of the result
	Orphan   bool   `expr:"orphan"` // the creator disconnected while a worker had the job
}

// exists reports whether j is a real job, not the empty one that expressions get if there is no job. A job without a
// handle has a queue.
func (j *Job) exists() bool { return j.ID != "" || j.Queue != "" }

// Queued reports whether the job has not ended and is not assigned to a worker.
func (j *Job) Queued() bool { return j.Ended == "" && j.Worker == nil }

// Running reports whether the job has not ended and is assigned to a worker.
func (j *Job) Running() bool { return j.Ended == "" && j.Worker != nil }

// waits reports whether the client waits for the job.
func (j *Job) waits(p *Peer) bool { return slices.Contains(j.Clients, p) }

// Find returns the first job for which is returns true, or nil.
func (s *Server) Find(is func(*Job) bool) *Job {
	if i := slices.IndexFunc(s.Jobs, is); i >= 0 {
		return s.Jobs[i]
	}
	return nil
}

// FindAll returns the jobs for which is returns true, in the order of their submission.
func (s *Server) FindAll(is func(*Job) bool) (all []*Job) {
	for _, j := range s.Jobs {
		if is(j) {
			all = append(all, j)
		}
	}
	return all
}

// ByID returns the job with the ID or handle, or nil.
func (s *Server) ByID(id string) *Job {
	return s.Find(func(j *Job) bool { return id != "" && j.ID == id })
}

// Updates maps message types to functions that update the record. A key may have several types, separated by spaces.
type Updates map[string]func(m *Message)

// Update returns a function that calls the function for the type of a message, if there is one.
func (u Updates) Update() func(*Message) {
	by := Updates{}
	for types, do := range u {
		for name := range strings.FieldsSeq(types) {
			by[name] = do
		}
	}
	return func(m *Message) {
		if do := by[m.Name]; do != nil {
			do(m)
		}
	}
}

// Release records that no job is assigned to the peer and that the peer waits for none.
func Release(p *Peer) {
	for _, j := range p.server.Jobs {
		if j.Ended == "" && j.Worker == p {
			j.Worker = nil
		}
		j.Clients = slices.DeleteFunc(j.Clients, func(c *Peer) bool { return c == p })
	}
}
