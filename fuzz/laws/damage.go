package laws

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"jobwire/codec"
	"jobwire/codec/beanstalk"
)

// sent is a message of a conversation with its fields.
type sent struct {
	conn  int
	from  codec.Side
	raw   []byte
	typ   *codec.Type
	spans []codec.Span
}

// damage is one change of one field.
type damage struct {
	kind    string
	message int
	span    codec.Span
	off, to int    // of the damaged bytes
	put     []byte // replaces them

	exact bool // the violation is certain, and at the field
	legal bool // the message may still be legal, and violate a rule only because of other messages
	loose bool // the end of the message may be unknown afterwards, so later messages may be lost
}

// kinds has the name of each kind of damage, and a function that returns such a damage of a field of a message, or nil
// if the field cannot have it.
var kinds = []struct {
	name  string
	apply func(r *rand.Rand, m *sent, s codec.Span) *damage
}{
	{"a number with another character", func(r *rand.Rand, m *sent, s codec.Span) *damage {
		k := s.Field.Kind
		if k != codec.Number && k != codec.Signed || s.End == s.Off || !isDigit(m.raw[s.Off]) {
			return nil
		}
		c := "-x"[r.IntN(2)]
		if k == codec.Signed {
			c = 'x'
		}
		return &damage{off: s.Off, to: s.Off + 1, put: []byte{c}, exact: true}
	}},
	{"a forbidden character", func(r *rand.Rand, m *sent, s codec.Span) *damage {
		c := "~"
		if strings.Contains(s.Field.Chars, c) {
			c = "\xff"
		}
		if s.Field.Kind != codec.Text || s.Field.Chars == "" || s.End == s.Off {
			return nil
		}
		at := s.Off + r.IntN(s.End-s.Off)
		return &damage{off: at, to: at + 1, put: []byte(c), exact: true}
	}},
	{"a value that is not in the list", func(_ *rand.Rand, _ *sent, s codec.Span) *damage {
		if s.Field.Values == nil {
			return nil
		}
		return &damage{off: s.Off, to: s.End, put: bytes.Repeat([]byte("~"), s.End-s.Off), exact: true}
	}},
	{"a value that is too long", func(_ *rand.Rand, m *sent, s codec.Span) *damage {
		more := s.Field.Max + 1 - (s.End - s.Off)
		if s.Field.Max == 0 || s.End == s.Off || m.typ.End == "\r\n" && len(m.raw)+more > beanstalk.DefaultMaxLine {
			return nil // the line would be too long, too
		}
		return &damage{off: s.Off, to: s.End, put: bytes.Repeat([]byte("a"), s.Field.Max+1), exact: true}
	}},
	{"an empty value", func(_ *rand.Rand, m *sent, s codec.Span) *damage {
		if s.Field.NonEmpty == "" && s.Field.Kind != codec.Number || s.End == s.Off {
			return nil
		}
		return &damage{off: s.Off, to: s.End}
	}},
	{"a separator in a value", func(r *rand.Rand, m *sent, s codec.Span) *damage {
		if m.typ.Sep == "" || s.End-s.Off < 2 || s.Field.Derived() || s.Field.Width > 0 {
			return nil
		}
		at := s.Off + 1 + r.IntN(s.End-s.Off-1)
		return &damage{off: at, to: at + 1, put: []byte(m.typ.Sep)}
	}},
	{"a missing column", func(_ *rand.Rand, m *sent, s codec.Span) *damage {
		sep := []byte(m.typ.Sep)
		if len(sep) == 0 || s.Field.Derived() || s.Next == len(m.raw) || !bytes.HasSuffix(m.raw[:s.Next], sep) {
			return nil
		}
		return &damage{off: s.Off, to: s.Next}
	}},
	{"another literal", func(r *rand.Rand, m *sent, s codec.Span) *damage {
		if s.Field.Kind != codec.Literal && s.Field.Kind != codec.Code || s.End == s.Off {
			return nil
		}
		at := s.Off + r.IntN(s.End-s.Off)
		end := m.typ.Stop != "" && len(m.typ.Repeat) > 1 && s.Off > 0 // of a list
		return &damage{off: at, to: at + 1, put: []byte{m.raw[at] ^ 1<<r.IntN(5)}, exact: end, loose: !end}
	}},
	{"another length", func(r *rand.Rand, m *sent, s codec.Span) *damage {
		if s.Field.Kind != codec.Length || s.End == s.Off || s.Field.Name == "Count" {
			return nil // another count of values hides where the message ends
		}
		return &damage{off: s.End - 1, to: s.End, put: []byte{m.raw[s.End-1] ^ 1<<r.IntN(3)}, loose: true}
	}},
	{"another value", func(r *rand.Rand, m *sent, s codec.Span) *damage {
		fd := s.Field
		plain := fd.Kind == codec.Opaque && fd.Means == codec.Uninterpreted || fd.Derived()
		repeated := fd.Means == codec.JobID || fd.Width == 40 // by peers: what the server chooses, such as an SHA1
		if m.from == codec.Peer || s.End == s.Off || plain || repeated {
			return nil
		}
		at := s.Off + r.IntN(s.End-s.Off)
		return &damage{off: at, to: at + 1, put: []byte{m.raw[at] ^ 1}, legal: true}
	}},
	{"another line end", func(_ *rand.Rand, m *sent, s codec.Span) *damage {
		if s.Next-s.End < 2 || !bytes.HasSuffix(m.raw[s.End:s.Next], []byte("\r\n")) {
			return nil
		}
		return &damage{off: s.Next - 2, to: s.Next, put: []byte("\n"), loose: true}
	}},
}

// OneFieldDamaged checks that one damaged field in a conversation is one violation of its sender, that the violation
// is at the field if the field alone shows it, and that all later messages are decoded as before if the end of the
// damaged message is known. A damaged message may also be another legal message: if the server sent it, it may violate
// one rule about several messages.
func OneFieldDamaged(c *Case) error {
	all, err := encode(c.Protocol, c.Steps, nil)
	if err != nil {
		return err
	}
	return oneFieldDamaged(c.random(), c.Protocol, all, nil)
}

// oneFieldDamaged damages one field of a conversation and checks the result. If monitor is not nil, the messages must
// not violate rules about several messages, either.
func oneFieldDamaged(r *rand.Rand, p *codec.Protocol, all []sent, monitor checker) error {
	d := damageOne(r, all)
	if d == nil {
		return nil
	}
	all = slices.Clone(all)
	m := &all[d.message]
	raw := m.raw
	m.raw = slices.Concat(raw[:d.off], d.put, raw[d.to:])
	if more := len(d.put) - (d.to - d.off); more != 0 && !resize(m, d, more) {
		return nil
	}
	if err := d.check(p, all, monitor); err != nil {
		return fmt.Errorf("%s in %s of message %d, %s, %q: %w",
			d.kind, d.span.Field.Name, d.message+1, all[d.message].typ.Name, all[d.message].raw, err)
	}
	return nil
}

// resize corrects the length fields that count the damaged bytes, of which there are more now. It returns false if the
// length has another number of digits then.
func resize(m *sent, d *damage, more int) bool {
	raw := slices.Clone(m.raw)
	for _, s := range m.spans {
		if s.Field.Kind != codec.Length || s.Field.Name == "Count" || s.Next > d.off {
			continue
		}
		v := raw[s.Off:s.End]
		if s.Field.Width > 0 {
			binary.BigEndian.PutUint32(v, uint32(int(codec.BigEndian(v))+more))
			continue
		}
		n, _ := codec.ParseNumber(v)
		if d.off > s.Next+int(n) {
			continue
		}
		text := strconv.Itoa(int(n) + more)
		if len(text) != len(v) {
			return false
		}
		copy(v, text)
	}
	m.raw = raw
	return true
}

// encode encodes the messages of a conversation. conns has the connection of each step; nil: all have the same.
func encode(p *codec.Protocol, steps []Step, conns []int) ([]sent, error) {
	var writers, readers []codec.Session
	all := make([]sent, len(steps))
	var f codec.Frame
	for i := range steps {
		from, conn := steps[i].From, 0
		if conns != nil {
			conn = conns[i]
		}
		for len(writers) <= conn {
			writers = append(writers, p.NewSession(codec.Options{}))
			readers = append(readers, p.NewSession(codec.Options{}))
		}
		raw, err := writers[conn].Append(nil, from, &steps[i].Message)
		if err != nil {
			return nil, fmt.Errorf("message %d, %s: %w", i+1, steps[i].Message.Type.Name, err)
		}
		if _, err := readers[conn].Decode(from, raw, &f); err != nil {
			return nil, fmt.Errorf("message %d, %q: %w", i+1, raw, err)
		}
		all[i] = sent{conn, from, raw, f.Type, slices.Clone(f.Spans)}
	}
	return all, nil
}

// damageOne chooses a kind of damage and a field, each with the same probability, or returns nil if there is none.
func damageOne(r *rand.Rand, all []sent) *damage {
	var found [][]*damage // by kind
	for _, k := range kinds {
		var list []*damage
		for i := range all {
			for _, s := range all[i].spans {
				d := k.apply(r, &all[i], s)
				if d != nil && !bytes.Equal(d.put, all[i].raw[d.off:d.to]) {
					d.kind, d.message, d.span = k.name, i, s
					list = append(list, d)
				}
			}
		}
		if len(list) > 0 {
			found = append(found, list)
		}
	}
	if len(found) == 0 {
		return nil
	}
	list := found[r.IntN(len(found))]
	return list[r.IntN(len(list))]
}

// accepted is a rule that a server violates if it accepts the damaged request, as it accepted the undamaged one.
const accepted = "beanstalk.put.expected-crlf"

// checker checks rules about several messages of a conversation.
type checker interface {
	Open(conn int)
	Message(conn int, f *codec.Frame, number int, err *codec.Error) []violation
	Gap(conn int)
}

// violation is a violation by the message with that number.
type violation struct {
	message int
	err     *codec.Error
}

// reader decodes the messages of one connection.
type reader struct {
	streams [2]codec.Stream
	blame   codec.Blame
}

// damageCheck is the state of decoding a conversation in which one message is damaged.
type damageCheck struct {
	*damage
	p          *codec.Protocol
	monitor    checker // nil: none
	hurt       *sent   // the damaged message
	readers    []*reader
	f          codec.Frame
	seen       bool // the damaged message was decoded
	violations int
}

// check decodes the conversation, in which one message is damaged.
func (d *damage) check(p *codec.Protocol, all []sent, monitor checker) error {
	c := &damageCheck{damage: d, p: p, monitor: monitor, hurt: &sent{conn: -1}}
	if d.kind != "" {
		c.hurt = &all[d.message]
	}
	for i := range all {
		m := &all[i]
		rd := c.reader(m.conn)
		later := i > d.message && m.conn == c.hurt.conn && m.from != c.hurt.from
		if later && len(rd.streams[c.hurt.from].Rest()) > 0 {
			return nil // the sender has not completed the message, which is a violation at the end of the connection
		}
		for piece := range rd.streams[m.from].Feed(m.raw, &c.f) {
			if piece.Found == codec.Skipped {
				continue
			}
			if done, err := c.decoded(rd, i, m, piece); done || err != nil {
				return err
			}
			if err := c.monitored(i, m, piece); err != nil {
				return err
			}
		}
	}
	if d.exact && c.violations == 0 {
		return fmt.Errorf("expected a violation, got none")
	}
	return nil
}

// reader returns the reader of a connection.
func (c *damageCheck) reader(conn int) *reader {
	for len(c.readers) <= conn {
		c.readers = append(c.readers, &reader{streams: codec.Streams(c.p.NewSession(codec.Options{}))})
		if c.monitor != nil {
			c.monitor.Open(len(c.readers) - 1)
		}
	}
	return c.readers[conn]
}

// decoded checks one decoded message of message i. done says that the damaged message is another legal message, so that
// nothing else can be checked.
func (c *damageCheck) decoded(rd *reader, i int, m *sent, piece codec.Piece) (done bool, err error) {
	hurt := c.hurt
	first := !c.seen && m.conn == hurt.conn && m.from == hurt.from && i >= c.message
	c.seen = c.seen || first
	if piece.Found == codec.Whole {
		if first && !c.legal {
			return true, nil
		}
		if !first && c.f.Type != m.typ && (m.from == hurt.from || hurt.from == codec.Server) && !c.loose {
			return false, fmt.Errorf("%q: expected %s, got %s", m.raw, m.typ.Name, c.f.Type.Name)
		}
	}
	c.f.From, c.f.Raw = m.from, piece.Raw
	if !rd.blame.Proved(c.p, &c.f, piece.Err) || piece.Err == nil {
		return false, nil
	}
	if c.violations++; c.violations > 1 || !first && !c.loose || m.from != hurt.from || m.conn != hurt.conn {
		return false, fmt.Errorf("%q: expected no violation by message %d, got %w", m.raw, i+1, piece.Err)
	}
	at, end := piece.Err.Offset, max(c.span.End, c.off+len(c.put))
	if c.exact && !m.typ.Push && (at < c.span.Off || at > end) { // a push is recognized by its form
		return false, fmt.Errorf("expected a violation at byte %d, got %w", c.span.Off, piece.Err)
	}
	return false, nil
}

// monitored checks the rules about several messages after a decoded message of message i.
func (c *damageCheck) monitored(i int, m *sent, piece codec.Piece) error {
	if c.monitor == nil {
		return nil
	}
	for _, v := range c.monitor.Message(m.conn, &c.f, i, piece.Err) {
		if v.err.Rule == accepted {
			continue
		}
		if c.violations++; !c.legal || c.violations > 1 || v.message != c.message {
			return fmt.Errorf("%q: expected no violation by message %d, got %w", m.raw, v.message+1, v.err)
		}
	}
	if piece.Err != nil && piece.Err.Fatal {
		c.monitor.Gap(m.conn)
	}
	return nil
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
