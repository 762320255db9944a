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

	Heard   int            `expr:"heard"`   // messages, illegal ones included
	Count   map[string]int `expr:"count"`   // legal messages of each type, the present one included
	First   string         `expr:"first"`   // type of the first message
	Past    []string       `expr:"past"`    // types of the last messages before the present one
	Request *Message       `expr:"request"` // the last legal message, or one without a name
	Waits   bool           `expr:"waits"`   // the last request has no reply yet
	Reply   string         `expr:"reply"`   // type of the last reply
	Ignored bool           `expr:"ignored"` // the server reads nothing more from the peer
	Ended   bool           `expr:"ended"`   // the peer sends nothing more
	Left    bool           `expr:"left"`    // the connection is closed
	raw     []byte         // the last message, if replies are read after it

	// Of a worker.
	Announced []string `expr:"announced"` // all functions that it ever announced
	Can       []string `expr:"can"`       // the functions, tubes or names that it has announced and not withdrawn
	Asleep    bool     `expr:"asleep"`
	Woken     int      `expr:"woken"`   // how often the server has woken it; in Gearman since it fell asleep
	Idle      bool     `expr:"idle"`    // woken, without a request for a job since
	Refused   int      `expr:"refused"` // how often in a row the server had no job for it
	Goodbye   bool     `expr:"goodbye"` // it has withdrawn all names
	Job       *Job     `expr:"job"`
	Done      []*Job   `expr:"done"`

	// Of a client.
	Tube       string   `expr:"tube"`       // that it uses
	Exceptions bool     `expr:"exceptions"` // it has asked for exceptions
	Created    []*Job   `expr:"created"`    // by its requests, duplicates included
	Channels   []string `expr:"channels"`

	Noted map[string]any    `expr:"notes"` // by faults
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
	return p.Request.Name
}

// Job is a job, as far as it is known from the messages about it.
type Job struct {
	ID       string   `expr:"id"`     // or handle
	Type     string   `expr:"type"`   // of its submission, or job type
	Queue    string   `expr:"queue"`  // function, tube or name
	Unique   string   `expr:"unique"` // unique ID, or key
	Data     string   `expr:"data"`   // workload, body or args
	Args     []string `expr:"args"`   // of its submission
	Creator  *Peer    `expr:"creator"`
	Clients  []*Peer  `expr:"clients"`  // that wait for it, the first one first
	Worker   *Peer    `expr:"worker"`   // that has it, or nil
	Assigned int      `expr:"assigned"` // how often
	Ended    string   `expr:"ended"`    // the type that ended it; "" while it has not ended

	State  string `expr:"state"` // present and previous state; the last reply about it
	Before string `expr:"before"`
	Last   string `expr:"last"`

	Dups     int    `expr:"dups"`      // later submissions of the same job
	LastData string `expr:"last_data"` // of the last one of those, or its own
	Lost     int    `expr:"lost"`      // how often its worker left
	Reports  int    `expr:"reports"`   // of progress
	Progress string `expr:"progress"`  // the latest, as it is in the packet
	First    string `expr:"first"`     // the first progress
	Result   string `expr:"result"`
	Code     byte   `expr:"code"`   // of the result
	Orphan   bool   `expr:"orphan"` // its creator left while a worker had it
}

// exists reports whether this is a job, and not the one that stands for none in expressions. A job without a handle has a queue.
func (j *Job) exists() bool { return j.ID != "" || j.Queue != "" }

// Queued reports whether the job waits for a worker.
func (j *Job) Queued() bool { return j.Ended == "" && j.Worker == nil }

// Running reports whether a worker has the job.
func (j *Job) Running() bool { return j.Ended == "" && j.Worker != nil }

// waits reports whether the client waits for the job.
func (j *Job) waits(p *Peer) bool { return slices.Contains(j.Clients, p) }

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
