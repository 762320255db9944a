package model

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"jobwire/codec"
)

// Deed is what a move does.
type Deed uint8

const (
	Say Deed = iota
	Leave
	Wait
)

// Move is one step of a conversation, without the values that only a server can give:
// handles and IDs are numbers in the order in which they were learned. So a move means
// something in every conversation, and any of them may be left out.
type Move struct {
	Deed Deed
	Conn uint8
	Says uint8    // index into what the connection may say
	Args [8]uint8 // choices among the values of each field; 0 is the simplest
}

// Diction is what a protocol's conversations are made of: a table of who says what how
// often, and pools of values by their field's name.
type Diction struct {
	p        *codec.Protocol
	options  codec.Options
	actors   []string          // by connection, as transcripts call them
	says     map[string]string // by actor, or by role: types with their weights
	pools    map[string][]string
	gives    map[string]bool // types that give what they name to the connection they come on
	named    string          // what transcripts call such values
	waits    []time.Duration
	sentinel []string
	always   bool            // it is answered whatever else happens
	blocks   map[string]bool // types that may wait for their answer
	answer   string          // the type that answers the sentinel
	mark     string          // its first argument
	leave    int             // of 256 moves, how many leave
	wait     int             // and wait

	rows [maxPeers][]*codec.Type // by connection, as often as their weight
}

// dictions are made once; protocols add theirs.
var dictions = map[string]func(p *codec.Protocol) *Diction{}

// DictionOf returns the protocol's diction. Rules to waive are those that the server
// breaks in its messages, so that they are read nevertheless.
func DictionOf(p *codec.Protocol, waive ...codec.RuleID) *Diction {
	d := dictions[p.Name](p)
	d.p, d.options.Waive = p, waive
	for i, actor := range d.actors {
		role, _, _ := strings.Cut(actor, " ")
		says := d.says[actor]
		if says == "" {
			says = d.says[role]
		}
		for _, w := range strings.Fields(says) {
			name, weight, _ := strings.Cut(w, "*")
			n, _ := strconv.Atoi(weight)
			t := p.TypeNamed(name)
			if t == nil {
				panic("no type " + name)
			}
			for range max(n, 1) {
				d.rows[i] = append(d.rows[i], t)
			}
		}
	}
	return d
}

// Move makes one at random.
func (d *Diction) Move(r *rand.Rand) Move {
	mv := Move{Conn: uint8(r.IntN(len(d.actors)))}
	switch n := r.IntN(256); {
	case n < d.leave:
		mv.Deed = Leave
	case n < d.leave+d.wait:
		mv.Deed = Wait
	}
	mv.Says = uint8(r.IntN(len(d.rows[mv.Conn])))
	for i := range mv.Args {
		mv.Args[i] = uint8(r.Uint32())
	}
	return mv
}

// Simpler returns moves that are like mv and simpler, the simplest first.
func (d *Diction) Simpler(mv Move) []Move {
	var all []Move
	if mv.Deed == Say {
		t := d.rows[mv.Conn][int(mv.Says)%len(d.rows[mv.Conn])]
		for i := range mv.Args {
			if i > len(t.Fields)+1 && i < 7 || mv.Args[i] == 0 {
				continue
			}
			s := mv
			s.Args[i] = 0
			all = append(all, s)
			if mv.Args[i] > 1 {
				s.Args[i] = mv.Args[i] / 2
				all = append(all, s)
			}
		}
	} else if mv.Args != [8]uint8{} {
		s := mv
		s.Args = [8]uint8{}
		all = append(all, s)
	}
	return all
}

// Show writes the move for people.
func (d *Diction) Show(mv Move) string {
	switch mv.Deed {
	case Leave:
		return d.actors[mv.Conn] + " leaves"
	case Wait:
		return fmt.Sprint("wait ", d.waits[int(mv.Args[0])%len(d.waits)])
	}
	return fmt.Sprintf("%s %s %v", d.actors[mv.Conn], d.rows[mv.Conn][int(mv.Says)%len(d.rows[mv.Conn])].Name, mv.Args)
}

// message gives a move's values their meaning here and now.
func (t *Talk) message(mv Move) codec.Message {
	rows := t.d.rows[mv.Conn]
	m := codec.Message{Type: rows[int(mv.Says)%len(rows)]}
	k := 0
	add := func(fd *codec.Field) {
		if !fd.Derived() {
			m.Args = append(m.Args, t.value(int(mv.Conn), fd, int(mv.Args[k%7]), m.Args))
			k++
		}
	}
	for i := range m.Type.Fields {
		fd := &m.Type.Fields[i]
		if fd.Optional && int(mv.Args[7]) < 64*(i+1) {
			return m
		}
		add(fd)
	}
	if len(m.Type.Repeat) > 0 {
		for range mv.Args[7] % 3 {
			for i := range m.Type.Repeat {
				add(&m.Type.Repeat[i])
			}
		}
	}
	return m
}

// value is the n-th of a field's values.
func (t *Talk) value(conn int, fd *codec.Field, n int, before [][]byte) []byte {
	if fd.Assigned {
		all := t.known[fd.Name]
		if p := t.peers[conn]; p != nil && len(p.known[fd.Name]) > 0 && n%8 != 7 {
			all = p.known[fd.Name]
		}
		if len(all) > 0 && n < 250 {
			return all[max(0, len(all)-1-n/2%4)]
		}
	}
	pool := t.d.pools[fd.Name]
	if len(pool) == 0 {
		if fd.Kind == codec.Uint {
			b := make([]byte, fd.Width)
			b[fd.Width-1] = byte(n % 4)
			return b
		}
		return []byte(strconv.Itoa(n % 4))
	}
	v := pool[n%len(pool)]
	if at, ok := strings.CutPrefix(v, "now"); ok {
		delta, _ := strconv.Atoi(at)
		v = strconv.FormatInt(time.Now().Unix()+int64(delta), 10)
	}
	if fd.Kind == codec.Uint {
		u, _ := strconv.ParseUint(v, 10, 64)
		b := make([]byte, fd.Width)
		for i := range b {
			b[len(b)-1-i] = byte(u >> (8 * i))
		}
		return b
	}
	return []byte(v)
}

// Data that is handed through: empty, short, what looks like framing, long.
var payloads = []string{"x", "", "y", "a\x00b", "\x00REQ\x00\x00\x00\x01", "1\r\n2\n", strings.Repeat("z", 600)}

var strings200 = strings.Repeat("t", 200)

// Waits that do not end where timers of whole seconds do.
var waits = []time.Duration{1500 * time.Millisecond, 3500 * time.Millisecond}

func set(names string) map[string]bool {
	m := map[string]bool{}
	for _, n := range strings.Fields(names) {
		m[n] = true
	}
	return m
}

func init() {
	dictions["gearman"] = func(*codec.Protocol) *Diction {
		return &Diction{
			actors: []string{"Client", "Worker", "Client 2", "Worker 2", "Admin"},
			says: map[string]string{
				"Client": "SUBMIT_JOB*8 SUBMIT_JOB_HIGH*3 SUBMIT_JOB_LOW*3 SUBMIT_JOB_BG*4 SUBMIT_JOB_HIGH_BG*2 SUBMIT_JOB_LOW_BG*2 SUBMIT_JOB_EPOCH*2 SUBMIT_JOB_SCHED SUBMIT_REDUCE_JOB*2 SUBMIT_REDUCE_JOB_BACKGROUND GET_STATUS*6 GET_STATUS_UNIQUE*3 OPTION_REQ*2 ECHO_REQ*1",
				"Worker": "CAN_DO*8 CAN_DO_TIMEOUT*2 CANT_DO*2 RESET_ABILITIES PRE_SLEEP*6 GRAB_JOB*10 GRAB_JOB_UNIQ*5 GRAB_JOB_ALL*5 WORK_DATA*3 WORK_WARNING*3 WORK_STATUS*4 WORK_COMPLETE*8 WORK_FAIL*3 WORK_EXCEPTION*3 SET_CLIENT_ID*2 ALL_YOURS ECHO_REQ*1",
				"Admin":  "status*6 prioritystatus*3 workers*3 show-jobs*3 show-unique-jobs*2 maxqueue*4 cancel-job*3 version getpid verbose create-function*2 drop-function*2",
			},
			pools: map[string][]string{
				"Function": {"a", "b", "a", "c"}, "Unique ID": {"", "u", "-", "v", ""}, "Workload": payloads, "Data": payloads, "Response": payloads, "Exception": payloads, "Warning": payloads,
				"Job handle": {"H:none:7"}, "Option": {"exceptions", "exceptions", "other"}, "Timeout": {"0", "1000", "3000", "60000"}, "Epoch time": {"0", "now+1", "now+2", "now+4000000000"},
				"Numerator": {"0", "1", "50", "18446744073709551615"}, "Denominator": {"1", "0", "100"}, "Client ID": {"w1", "w2", "w3"},
				"Reducer": {"r", ""}, "Unused": {"", "u"}, "Size": {"0", "1", "2", "-1"}, "Normal size": {"1", "0", "3"}, "Low size": {"1", "0", "2"}, "Minute": {"0", "59"}, "Day of month": {"1", "31"}, "Month": {"1", "2"},
			},
			gives: set("JOB_ASSIGN JOB_ASSIGN_UNIQ JOB_ASSIGN_ALL"), named: "handle",
			waits:    waits,
			sentinel: []string{"ECHO_REQ", "sentinel"}, always: true, answer: "ECHO_RES", mark: "sentinel",
			leave: 6, wait: 3,
		}
	}
}
