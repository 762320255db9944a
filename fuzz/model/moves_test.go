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

// DictionOf returns the protocol's diction. Rules to waive are those that the server
// breaks in its messages, so that they are read nevertheless.
func DictionOf(p *codec.Protocol, waive ...codec.RuleID) *Diction {
	d := dictions[p.Name]()
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
