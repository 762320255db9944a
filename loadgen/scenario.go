package loadgen

import (
	"fmt"
	"strings"

	"jobwire/codec"
)

// Scenario is what clients and workers do. Its fields tell what a dialect's clients and
// workers have to know of it; not all of them mean something to every protocol.
type Scenario struct {
	Name, About string

	Standing   bool   // all jobs are queued before the first worker begins
	Filling    bool   // of such, it is the queueing that is measured; the rest shows that nothing is lost
	Background bool   // nobody waits for a result
	Until      end    // what ends a job
	Mixed      bool   // jobs of all priorities
	Updates    int    // what a worker says of a job before its end: so many times status, and data
	Share      int    // submissions with the same unique ID, one behind the other
	Kills      bool   // workers are killed while they have jobs
	Alone      bool   // there are no workers: the server itself answers
	Probe      string // what it is asked, if so

	MaxWindow int    // 0 is no limit
	WindowWhy string // the reason for it
}

// end is what ends a job, as the load sees it.
type end uint8

const (
	atResult end = iota // the client hears of the result
	atAck               // the server has acknowledged it
	atWorker            // the worker has seen the end of it
)

// dialect makes a protocol's clients and workers.
type dialect struct {
	protocol  *codec.Protocol
	scenarios []Scenario
	grabs     func(*Config) int // outstanding for each worker, where the user does not say
	client    func(*conn, *Scenario) client
	worker    func(*conn, *Scenario) peer
}

// systems are the protocols that there is load for, by their names.
var systems = map[string]*dialect{}

func (d *dialect) scenario(name string) *Scenario {
	for i := range d.scenarios {
		if d.scenarios[i].Name == name {
			return &d.scenarios[i]
		}
	}
	return nil
}

func (d *dialect) names() string {
	var all []string
	for _, s := range d.scenarios {
		all = append(all, s.Name)
	}
	return strings.Join(all, ", ")
}

// Scenarios lists what can be done to a protocol's servers.
func Scenarios(p *codec.Protocol) []Scenario {
	if d := systems[p.Name]; d != nil {
		return d.scenarios
	}
	return nil
}

// rowsOf finds rows by name. It is for package variables: a name that is wrong does not
// survive the first test.
func row(p *codec.Protocol, name string) *codec.Type {
	t := p.TypeNamed(name)
	if t == nil {
		panic(fmt.Sprintf("%s has no row %s", p.Name, name))
	}
	return t
}

// handlers is what a peer does with what comes, by the index of the row.
type handlers[P any] []func(P, *codec.Frame)

// table makes handlers of their names.
func table[P any](p *codec.Protocol, by map[string]func(P, *codec.Frame)) handlers[P] {
	h := make(handlers[P], len(p.Types))
	for name, fn := range by {
		h[row(p, name).Index] = fn
	}
	return h
}

// of returns what is done with a message. One that is not expected ends the connection.
func (h handlers[P]) of(c *conn, f *codec.Frame) func(P, *codec.Frame) {
	if do := h[f.Type.Index]; do != nil {
		return do
	}
	return func(P, *codec.Frame) { c.end(fmt.Errorf("%s came unasked", f.Type.Name)) }
}

// functions returns the names of the functions, or tubes, that jobs are spread over.
func (r *run) functions() [][]byte {
	names := make([][]byte, r.cfg.Functions)
	for i := range names {
		names[i] = []byte(r.cfg.Prefix)
		if len(names) > 1 {
			names[i] = fmt.Appendf(names[i], "-%d", i+1)
		}
	}
	return names
}

// owner returns the client of the job with that number.
func (r *run) owner(number uint64) *conn {
	return r.clients[int(number&(maxSlots-1))/r.perClient]
}
