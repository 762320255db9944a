package audit

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"jobwire/codec"
	"jobwire/codec/beanstalk"
	"jobwire/codec/danga"
	"jobwire/codec/gearman"
	"jobwire/codec/gearmonkey"
)

// dialect is what stress has to know of a protocol.
type dialect struct {
	protocol *codec.Protocol
	answered func(*codec.Type) bool // a request that has one answer, which may be an error
	answers  func(*codec.Type) bool // an answer to such a request
	refusal  []string               // that error: the type and the arguments; nil is none
	head     func(raw []byte) int   // where a message is cut into a head and a body
	name     string                 // the field by which jobs are told apart; "" is none that may be changed
	long     func(name string) string
	short    func(name string) string // the reverse of long
	needless string                   // what may come to a worker at any time
	refuses  bool                     // that is also the answer no: around one, more of them would have a worker ask for ever
	needs    string                   // what only a worker sends
	begins   func(*codec.Type) bool   // what begins a job whose end is waited for; nil is nothing that is known
	ends     string                   // what ends a job, and may come in any order of jobs
	loses    bool                     // a job whose worker is lost is lost, too
	largest  int                      // bytes of a large payload

	// like makes a message of ours one of the conversation that another is of; nil if they look the same in
	// all.
	like func(m, other []byte)
}

var dialects = []dialect{
	{
		protocol: gearman.Protocol,
		answered: func(t *codec.Type) bool {
			return strings.HasPrefix(t.Name, "SUBMIT_") || strings.HasPrefix(t.Name, "GRAB_") || slices.Contains([]string{"GET_STATUS", "OPTION_REQ", "ECHO_REQ"}, t.Name)
		},
		answers: func(t *codec.Type) bool {
			return slices.Contains([]string{"JOB_CREATED", "NO_JOB", "JOB_ASSIGN", "JOB_ASSIGN_UNIQ", "JOB_ASSIGN_ALL", "STATUS_RES", "OPTION_RES", "ECHO_RES"}, t.Name)
		},
		refusal:  []string{"ERROR", "QUEUE_ERROR", "the server cannot do this now"},
		head:     func([]byte) int { return 12 },
		name:     "Job handle",
		long:     stretched(gearman.MaxHandle),
		short:    shrunk(gearman.MaxHandle),
		needless: "NOOP", needs: "CAN_DO",
		begins: func(t *codec.Type) bool {
			return slices.Contains([]string{"SUBMIT_JOB", "SUBMIT_JOB_HIGH", "SUBMIT_JOB_LOW"}, t.Name)
		},
		ends:    "WORK_COMPLETE",
		largest: 16 << 20,
	},
	{
		protocol: beanstalk.Protocol,
		answered: func(t *codec.Type) bool { return t.Name != "quit" },
		answers:  func(*codec.Type) bool { return true },
		refusal:  []string{"INTERNAL_ERROR"},
		head:     line1,
		name:     "Job ID",
		long:     mirrored, short: mirrored,
		largest: 65535,
	},
	{
		protocol: gearmonkey.Protocol,
		answered: func(*codec.Type) bool { return true },
		answers:  func(*codec.Type) bool { return true },
		loses:    true,
		refusal:  []string{"error", "ERR", "the server cannot do this now"},
		head:     line1,
		largest:  16 << 20,
	},
	{
		protocol: danga.Protocol,
		answered: never, // by an error: there is no packet for one
		answers:  never,
		head:     func([]byte) int { return 9 },
		name:     "Job handle",
		long:     stretched(danga.MaxText),
		short:    shrunk(danga.MaxText),
		needless: "noop", refuses: true, needs: "worker_connect",
		largest: 16 << 20,
		like:    func(m, other []byte) { copy(m[:4], other[:4]) }, // the magic
	},
}

func never(*codec.Type) bool { return false }

// stretched makes names of a length.
func stretched(size int) func(string) string {
	return func(name string) string {
		if n := size - len(name) - 1; n > 0 {
			return name + "." + strings.Repeat("x", n)
		}
		return name
	}
}

// shrunk is the reverse of stretched.
func shrunk(size int) func(string) string {
	return func(name string) string {
		if short := strings.TrimRight(name, "x"); len(name) == size && strings.HasSuffix(short, ".") {
			return strings.TrimSuffix(short, ".")
		}
		return name
	}
}

// line1 is behind the first line.
func line1(raw []byte) int { return bytes.IndexByte(raw, '\n') + 1 }

// mirrored makes small numbers large, and these small again.
func mirrored(id string) string {
	n, err := strconv.ParseUint(id, 10, 64)
	if err != nil {
		return id
	}
	return strconv.FormatUint(^n, 10)
}

func dialectOf(p *codec.Protocol) *dialect {
	for i := range dialects {
		if dialects[i].protocol == p {
			return &dialects[i]
		}
	}
	return nil
}

// message encodes a message of the server, by the words of it, for the conversation that another is of.
func (d *dialect) message(words []string, other []byte) []byte {
	m := codec.Message{Type: d.protocol.TypeNamed(words[0])}
	for _, w := range words[1:] {
		m.Args = append(m.Args, []byte(w))
	}
	b, err := d.protocol.NewSession(codec.Options{WaiveAll: true}).Append(nil, codec.Server, &m)
	if err != nil {
		panic(fmt.Sprintf("%s: %v", words, err)) // a row above is wrong
	}
	if d.like != nil {
		d.like(b, other)
	}
	return b
}

// renamed returns the message with its job under another name, or nil if it names none.
func (d *dialect) renamed(s codec.Session, f *codec.Frame, name func(string) string) []byte {
	var m codec.Message
	f.Message(&m)
	found := false
	k := 0
	for i := range f.Spans {
		if f.Spans[i].Field.Derived() {
			continue
		}
		if f.Spans[i].Field.Name == d.name {
			m.Args[k], found = []byte(name(string(m.Args[k]))), true
		}
		k++
	}
	if !found {
		return nil
	}
	b, err := s.Append(nil, f.From, &m)
	if err != nil {
		return nil
	}
	if d.like != nil {
		d.like(b, f.Raw)
	}
	return b
}
