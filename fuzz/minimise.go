package fuzz

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"time"

	"jobwire/codec"
	"jobwire/codec/transcript"
)

// minimiser makes a conversation smaller as long as a fault holds: by connection, step,
// argument and byte.
type minimiser struct {
	best  *Conv
	holds func(*Conv) bool
	start time.Time
	tries int

	budget time.Duration
	proto  *codec.Protocol
	stop   func() bool // whether somebody wants it to end; nil is nobody
}

// Bounds of minimising beside its time: on a busy machine, it may take some times as long to try at
// least so often.
const (
	someTries = 100
	someTimes = 4
)

func (m *minimiser) late() bool {
	if m.stop != nil && m.stop() {
		return true
	}
	over := time.Since(m.start)
	return over > m.budget && (m.tries >= someTries || over > someTimes*m.budget)
}

// try keeps a conversation if it is another and the fault holds.
func (m *minimiser) try(c *Conv) bool {
	if m.late() || len(c.Steps) == 0 || c.equal(m.best) {
		return false
	}
	if m.tries++; !m.holds(c) {
		return false
	}
	m.best = c
	return true
}

// minimise works until nothing helps any more, or time is up.
func (m *minimiser) minimise() *Conv {
	m.start = time.Now()
	m.oneByOne()
	m.order(1) // what else there is to try takes too long while there is much
	for before := -1; before != m.best.size() && !m.late(); {
		before = m.best.size()
		m.truncate()
		m.connections()
		m.steps()
		m.merge()
		m.glue()
		m.rename()
		m.types()
		m.waits()
		m.values()
		m.raws()
		m.order(12)
		if before == m.best.size() {
			m.pairs(12)
		}
	}
	return m.best
}

// oneByOne has messages wait for the replies to those before them.
func (m *minimiser) oneByOne() {
	c := m.best.clone()
	c.Ahead = false
	m.try(c)
}

// order has what is sent all at once come one after the other, in the order in which the
// server may have taken it. Which that is, is tried for conversations of so many steps.
func (m *minimiser) order(most int) {
	if !m.best.Burst {
		return
	}
	c := m.best.clone()
	c.Burst = false
	if m.try(c) || len(c.Steps) > most {
		return
	}
	for i := range c.Steps {
		for k := i + 1; k < len(c.Steps) && m.best.Burst; k++ {
			d := c.clone()
			d.Steps[i], d.Steps[k] = d.Steps[k], d.Steps[i]
			m.try(d)
		}
	}
}

// truncate cuts the end off, by halves.
func (m *minimiser) truncate() {
	for n := len(m.best.Steps) / 2; n > 0; n /= 2 {
		for len(m.best.Steps) > n {
			c := m.best.clone()
			c.Steps = c.Steps[:len(c.Steps)-n]
			if !m.try(c) {
				break
			}
		}
	}
}

// connections leaves out whole connections.
func (m *minimiser) connections() {
	for conn := m.best.conns() - 1; conn >= 0; conn-- {
		c := m.best.clone()
		c.Steps = slices.DeleteFunc(c.Steps, func(s Step) bool { return s.Conn == conn })
		for i := range c.Steps {
			if c.Steps[i].Conn > conn {
				c.Steps[i].Conn--
			}
		}
		if len(c.Steps) < len(m.best.Steps) {
			m.try(c)
		} else {
			m.best = c // nobody was there
		}
	}
}

// steps leaves out steps, many at a time at first.
func (m *minimiser) steps() {
	for n := max(1, len(m.best.Steps)/2); n > 0; n /= 2 {
		for at := len(m.best.Steps) - n; at >= 0; at -= n {
			c := m.best.clone()
			c.Steps = slices.Delete(c.Steps, at, min(at+n, len(c.Steps)))
			m.try(c)
			at = min(at, len(m.best.Steps))
		}
	}
}

// pairs leaves out two steps that are not needed without each other, of conversations of at most so many.
func (m *minimiser) pairs(most int) {
	if len(m.best.Steps) > most {
		return
	}
	for a := len(m.best.Steps) - 2; a >= 0; a-- {
		for b := len(m.best.Steps) - 1; b > a; b-- {
			c := m.best.clone()
			c.Steps = slices.Delete(slices.Delete(c.Steps, b, b+1), a, a+1)
			if m.try(c) {
				break
			}
		}
	}
}

// merge has one connection do what two did.
func (m *minimiser) merge() {
	for conn := m.best.conns() - 1; conn > 0; conn-- {
		c := m.best.clone()
		for i := range c.Steps {
			if c.Steps[i].Conn == conn {
				c.Steps[i].Conn--
			} else if c.Steps[i].Conn > conn {
				c.Steps[i].Conn--
			}
		}
		m.try(c)
	}
}

// glue makes one of bytes that follow each other on a connection.
func (m *minimiser) glue() {
	for i := 0; i+1 < len(m.best.Steps); i++ {
		a, b := &m.best.Steps[i], &m.best.Steps[i+1]
		if a.Verb == transcript.Raw && b.Verb == transcript.Raw && a.Conn == b.Conn {
			c := m.best.clone()
			c.Steps[i].Bytes = slices.Concat(a.Bytes, b.Bytes)
			c.Steps = slices.Delete(c.Steps, i+1, i+2)
			m.try(c)
		}
	}
}

// rename gives names that stand for one's own the short ones that they lead.
func (m *minimiser) rename() {
	c := m.best.clone()
	for i := range c.Steps {
		for k := range c.Steps[i].Args {
			a := &c.Steps[i].Args[k]
			a.Value = bytes.ReplaceAll(a.Value, []byte(place), nil)
		}
	}
	m.try(c)
	m.shared()
}

// shared shortens values that stand in several places, in all of them at once.
func (m *minimiser) shared() {
	places := map[string]int{}
	for i := range m.best.Steps {
		for _, a := range m.best.Steps[i].Args {
			places[string(a.Value)]++
		}
	}
	short := byte('a')
	for _, long := range slices.Sorted(maps.Keys(places)) {
		if len(long) < 2 || places[long] < 2 {
			continue
		}
		for places[string(short)] > 0 && short < 'z' {
			short++
		}
		c := m.best.clone()
		for i := range c.Steps {
			for k := range c.Steps[i].Args {
				if a := &c.Steps[i].Args[k]; string(a.Value) == long {
					a.Value = []byte{short}
				}
			}
		}
		if m.try(c) {
			places[string(short)] = places[long]
		}
	}
}

// types puts the plain message in the place of one that says more, as the names of their types tell.
func (m *minimiser) types() {
	for i := range m.best.Steps {
		s := &m.best.Steps[i]
		if s.Type == nil {
			continue
		}
		for _, t := range m.proto.Types {
			if t.Req&s.Type.Req == 0 || !strings.HasPrefix(s.Type.Name, t.Name+"_") {
				continue
			}
			c := m.best.clone()
			c.Steps[i].Type, c.Steps[i].Args = t, nil
			for k := range t.Fields {
				if f := argField(t, k); f != nil {
					c.Steps[i].Args = append(c.Steps[i].Args, s.labelled(f.Name))
				}
			}
			if m.try(c) {
				break
			}
		}
	}
}

// labelled returns the argument of a step that has the label.
func (s *Step) labelled(label string) Arg {
	for i := range s.Args {
		if f := argField(s.Type, i); f != nil && f.Name == label {
			return s.Args[i]
		}
	}
	return Arg{}
}

func (m *minimiser) waits() {
	for i := range m.best.Steps {
		for m.best.Steps[i].Verb == transcript.Nothing && m.best.Steps[i].For > 20*time.Millisecond {
			c := m.best.clone()
			c.Steps[i].For /= 2
			if !m.try(c) {
				break
			}
		}
	}
}

// values makes arguments shorter and plainer.
func (m *minimiser) values() {
	for i := range m.best.Steps {
		for k := range m.best.Steps[i].Args {
			if m.late() {
				return
			}
			m.value(i, k)
		}
		if m.best.Steps[i].CRLF {
			c := m.best.clone()
			c.Steps[i].CRLF = false
			m.try(c)
		}
	}
}

func (m *minimiser) value(i, k int) {
	with := func(v []byte) bool {
		c := m.best.clone()
		c.Steps[i].Args[k] = Arg{Value: v}
		return m.try(c)
	}
	a := m.best.Steps[i].Args[k]
	if a.Of > 0 {
		if !with([]byte("1")) {
			m.source(i, k)
			return
		}
		a = m.best.Steps[i].Args[k]
	}
	f := argField(m.best.Steps[i].Type, k)
	if f != nil && f.Width > 0 {
		if zero := make([]byte, len(a.Value)); !bytes.Equal(zero, a.Value) {
			with(zero)
		}
		return
	}
	if f != nil && (f.Kind == codec.Number || f.Kind == codec.Signed) {
		if v := string(a.Value); v != "0" && !with([]byte("0")) && v != "1" {
			with([]byte("1"))
		}
		return
	}
	if len(a.Value) == 0 || with(nil) {
		return
	}
	if len(a.Value) > 1 && (with([]byte("a")) || with([]byte("x"))) {
		return
	}
	for n := len(a.Value) / 2; n > 0 && !m.late(); n /= 2 {
		for len(m.best.Steps[i].Args[k].Value) > n {
			v := m.best.Steps[i].Args[k].Value
			if !with(v[:len(v)-n:len(v)-n]) && !with(v[n:]) {
				break
			}
		}
	}
	v := m.best.Steps[i].Args[k].Value
	if plain := bytes.Repeat([]byte("x"), len(v)); len(v) > 1 && !bytes.Equal(plain, v) {
		with(plain)
	}
}

// source takes a value that the server chose from the first step that will do, so that others may be
// left out.
func (m *minimiser) source(i, k int) {
	for at := range i {
		if s := &m.best.Steps[at]; s.ID == m.best.Steps[i].Args[k].Of {
			return
		} else if s.Verb == transcript.Send {
			c := m.best.clone()
			c.Steps[i].Args[k].Of = s.ID
			if m.try(c) {
				return
			}
		}
	}
}

// raws makes bytes fewer, and messages of them where they are some.
func (m *minimiser) raws() {
	for i := range m.best.Steps {
		if m.best.Steps[i].Verb != transcript.Raw {
			continue
		}
		if m.asMessage(i) {
			continue
		}
		for n := len(m.best.Steps[i].Bytes) / 2; n > 0 && !m.late(); n /= 2 {
			for at := len(m.best.Steps[i].Bytes) - n; at >= 0; at -= n {
				c := m.best.clone()
				b := c.Steps[i].Bytes
				if at+n > len(b) {
					continue
				}
				c.Steps[i].Bytes = slices.Delete(slices.Clone(b), at, at+n)
				if len(c.Steps[i].Bytes) > 0 {
					m.try(c)
				}
			}
		}
		m.asMessage(i)
		m.zeros(i)
	}
}

// asMessage writes bytes as the message that they are, if the rules are taken loosely.
func (m *minimiser) asMessage(i int) bool {
	s := &m.best.Steps[i]
	var f codec.Frame
	var msg codec.Message
	n, err := m.proto.NewSession(codec.Options{WaiveAll: true}).Decode(codec.Peer, s.Bytes, &f)
	if err != nil || n != len(s.Bytes) || f.Type == nil || has(dialectOf(m.proto).never, f.Type.Name) {
		return false
	}
	f.Message(&msg)
	c := m.best.clone()
	step := &c.Steps[i]
	*step = Step{ID: s.ID, Conn: s.Conn, Verb: transcript.Send, Type: msg.Type, CRLF: msg.CRLF}
	for _, a := range msg.Args {
		step.Args = append(step.Args, Arg{Value: slices.Clone(a)})
	}
	return m.try(c)
}

// zeros makes bytes plain, by halves.
func (m *minimiser) zeros(i int) {
	for n := len(m.best.Steps[i].Bytes); n > 0 && !m.late(); n /= 2 {
		for at := 0; at+n <= len(m.best.Steps[i].Bytes); at += n {
			part := m.best.Steps[i].Bytes[at : at+n]
			if len(bytes.Trim(part, "\x00x")) == 0 || len(m.best.Steps[i].Bytes) > 256 {
				continue
			}
			c := m.best.clone()
			b := slices.Clone(c.Steps[i].Bytes)
			clear(b[at : at+n])
			c.Steps[i].Bytes = b
			m.try(c)
		}
	}
}
