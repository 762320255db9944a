package inject

import (
	"slices"
	"strings"

	"jobwire/refserver"
)

// Peer is a connection, and what is known from its messages.
type Peer struct {
	*refserver.Conn
	server *Server

	Heard   int            // messages, illegal ones included
	Count   map[string]int // legal messages of each type, the present one included
	First   string         // type of the first message
	Past    []string       // types of the last messages before the present one
	Request *Message       // the last legal message
	Waits   bool           // the last request has no reply yet
	Reply   string         // type of the last reply
	Ignored bool           // the server reads nothing more from the peer
	Ended   bool           // the peer sends nothing more
	Left    bool           // the connection is closed
	raw     []byte         // the last message, if replies are read after it

	// Of a worker.
	Announced []string // all functions that it ever announced
	Can       []string // the functions, tubes or names that it has announced and not withdrawn
	Asleep    bool
	Woken     int  // how often the server has woken it; in Gearman since it fell asleep
	Idle      bool // woken, without a request for a job since
	Refused   int  // how often in a row the server had no job for it
	Goodbye   bool // it has withdrawn all names
	Job       *Job
	Done      []*Job

	// Of a client.
	Tube       string // that it uses
	Exceptions bool   // it has asked for exceptions
	Created    []*Job // by its requests, duplicates included
	Channels   []string

	Notes map[string]string // for edits
	List  []string          // for edits
	Mark  bool              // for edits
}

// maxPast is how many types a peer's past has.
const maxPast = 4

// Last returns the type of the message before the present one, or of the last one while
// messages of other peers are handled.
func (p *Peer) Last() string {
	if len(p.Past) == 0 {
		return ""
	}
	return p.Past[len(p.Past)-1]
}

// Does reports whether the worker can do jobs of the function or name.
func (p *Peer) Does(name string) bool { return slices.Contains(p.Can, name) }

// Jobs returns the jobs that the peer has.
func (p *Peer) Jobs() []*Job {
	return p.server.FindAll(func(j *Job) bool { return j.Worker == p && j.Ended == "" })
}

// Asked returns the type of the last legal message, or "".
func (p *Peer) Asked() string {
	if p.Request == nil {
		return ""
	}
	return p.Request.Name
}

// Job is a job, as far as it is known from the messages about it.
type Job struct {
	ID       string   // or handle
	Type     string   // of its submission, or job type
	Queue    string   // function, tube or name
	Unique   string   // unique ID, or key
	Data     string   // workload, body or args
	Args     []string // of its submission
	Creator  *Peer
	Clients  []*Peer // that wait for it, the first one first
	Worker   *Peer   // that has it, or nil
	Assigned int     // how often
	Ended    string  // the type that ended it; "" while it has not ended

	State, Before, Last string // present and previous state; the last reply about it

	Dups     int    // later submissions of the same job
	LastData string // of the last one of those, or its own
	Lost     int    // how often its worker left
	Reports  int    // of progress
	Progress string // the latest, as it is in the packet
	First    string // the first progress
	Result   string
	Code     byte // of the result
	Orphan   bool // its creator left while a worker had it
}

// Queued reports whether the job waits for a worker.
func (j *Job) Queued() bool { return j.Ended == "" && j.Worker == nil }

// Running reports whether a worker has the job.
func (j *Job) Running() bool { return j.Ended == "" && j.Worker != nil }

// Find returns the first job for which is holds, or nil.
func (s *Server) Find(is func(*Job) bool) *Job {
	if i := slices.IndexFunc(s.Jobs, is); i >= 0 {
		return s.Jobs[i]
	}
	return nil
}

// FindAll returns the jobs for which is holds.
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

// Announced reports whether a worker can do the function or name.
func (s *Server) Announced(name string) bool {
	return slices.ContainsFunc(s.Peers, func(p *Peer) bool { return p.Does(name) })
}

// Learn is a set of updates of a record by message type. Its keys are types separated by spaces.
type Learn map[string]func(m *Message)

// Update returns a function that makes the update of a message's type.
func (l Learn) Update() func(*Message) {
	by := Learn{}
	for types, do := range l {
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

// Release records that a peer has no jobs and waits for none.
func Release(p *Peer) {
	for _, j := range p.server.Jobs {
		if j.Ended == "" && j.Worker == p {
			j.Worker = nil
		}
		j.Clients = slices.DeleteFunc(j.Clients, func(c *Peer) bool { return c == p })
	}
}
