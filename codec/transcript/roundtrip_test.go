package transcript_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"jobwire/codec"
	"jobwire/codec/beanstalk"
	"jobwire/codec/gearman"
	. "jobwire/codec/transcript"
	"jobwire/fuzz/laws"
)

// difficultValues returns values that are difficult for a notation.
func difficultValues() [][]byte {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	values := [][]byte{all, bytes.Repeat([]byte{0}, 33), bytes.Repeat([]byte("ab"), 40)}
	for _, s := range []string{"", " ", "  x ", "a b", `"`, `\`, `\x41`, "'", "(Raw)", "x (Raw)", "(Data)", "$x", "$now", "*", "#", "...",
		"within", "past", "crlf", "or", "nothing", "raw", "->", "a -> b: c", "- a b", "@case", "00 52", ".", "-1", "é", "\x7f", "\t", "\n", "a\r", "a\rb", "\r\n", "12345678 ", "1234567 12345678"} {
		values = append(values, []byte(s))
	}
	return values
}

// plain returns a legal value for the field.
func plain(fd *codec.Field) []byte {
	if fd.Kind == codec.Number || fd.Kind == codec.Signed {
		return fmt.Append(nil, fd.Lo)
	}
	return []byte("v")
}

// requests returns the message types that t may answer.
func requests(p *codec.Protocol, t *codec.Type) []*codec.Type {
	var msgTypes []*codec.Type
	for _, q := range p.Types {
		if q.Ordered && slices.Contains(q.Replies, t.Name) {
			msgTypes = append(msgTypes, q)
		}
	}
	return msgTypes
}

// asking returns a legal message of a type.
func asking(q *codec.Type) *codec.Message {
	m := &codec.Message{Type: q}
	for i := range q.Fields {
		if fd := q.FieldAt(i); fd != nil && !fd.Optional {
			m.Args = append(m.Args, plain(fd))
		}
	}
	return m
}

// messages returns messages of a type: with and without the optional arguments and repetitions, and with
// every awkward value in every place. The messages may be illegal.
func messages(t *codec.Type) []codec.Message {
	var counts []int
	required, full := 0, 0
	for i := range t.Fields {
		if fd := &t.Fields[i]; !fd.Derived() {
			full++
			if !fd.Optional {
				required++
			}
		}
	}
	for n := required; n <= full; n++ {
		counts = append(counts, n)
	}
	for n := range 3 {
		if len(t.Repeat) > 0 {
			counts = append(counts, full+(n+1)*len(t.Repeat))
		}
	}
	base := func(n int) codec.Message {
		m := codec.Message{Type: t}
		for i := range n {
			m.Args = append(m.Args, plain(t.FieldAt(i)))
		}
		return m
	}
	var all []codec.Message
	for _, n := range counts {
		all = append(all, base(n))
		for i := range n {
			for _, v := range difficultValues() {
				m := base(n)
				m.Args[i] = v
				all = append(all, m)
			}
		}
		if t.End == "\n" {
			m := base(n)
			m.CRLF = true
			all = append(all, m)
		}
	}
	return all
}

// TestEveryType prints messages of every type in both forms and parses them again. The parser must reject a
// message that the codec rejects. A message that the codec would decode differently must not be printed as
// bytes.
func TestEveryType(t *testing.T) {
	for _, p := range []*codec.Protocol{gearman.Protocol, beanstalk.Protocol} {
		for _, msgType := range p.Types {
			t.Run(p.Name+" "+msgType.Name, func(t *testing.T) { everyMessage(t, p, msgType) })
		}
	}
}

func everyMessage(t *testing.T, p *codec.Protocol, msgType *codec.Type) {
	for side, roles := range map[codec.Side]codec.Role{codec.Peer: msgType.Req, codec.Server: msgType.Res} {
		if roles == 0 {
			continue
		}
		// A reply is tested with each of the requests that it may answer.
		asks := []*codec.Type{nil}
		if msgTypes := requests(p, msgType); side == codec.Server && msgTypes != nil {
			asks = msgTypes
		}
		done := 0
		for _, m := range messages(msgType) {
			taken := slices.DeleteFunc(slices.Clone(asks), func(q *codec.Type) bool {
				return !bothForms(t, p, side, roles, q, &m)
			})
			if len(taken) > 0 {
				done++
				continue
			}
			text := lines(t, &Script{Protocol: p, Steps: []Step{send(actor(p, roles), side, &m)}})
			if _, err := Parse(p, "test.wire", []byte(text)); err == nil {
				t.Errorf("accepted, though the codec refuses it:\n%s", text)
			}
		}
		if done == 0 {
			t.Errorf("no message from the %s was tried", side)
		}
	}
}

// actor returns an actor with the first of the roles.
func actor(p *codec.Protocol, roles codec.Role) Actor {
	bit := roles & -roles
	return Actor{Name: p.RoleNames(bit), Role: bit}
}

// bothForms tests one message, after a request if q is not nil, and reports whether the codec accepts it.
func bothForms(t *testing.T, p *codec.Protocol, side codec.Side, roles codec.Role, q *codec.Type, m *codec.Message) bool {
	t.Helper()
	peer := actor(p, roles)
	hex := Printer{Protocol: p, Hex: true}
	var inHex []byte
	script := &Script{Protocol: p}
	writer, reader := p.NewSession(codec.Options{}), p.NewSession(codec.Options{})
	if q != nil {
		ask := asking(q)
		script.Steps = append(script.Steps, send(peer, codec.Peer, ask))
		raw, err := writer.Append(nil, codec.Peer, ask)
		if err != nil {
			t.Fatal(err)
		}
		var f codec.Frame
		if _, err := reader.Decode(codec.Peer, raw, &f); err != nil {
			t.Fatal(err)
		}
		inHex = append(hex.AppendFrame(inHex, peer.Name, &f), '\n')
	}
	script.Steps = append(script.Steps, send(peer, side, m))
	text := lines(t, script)
	raw, err := writer.Append(nil, side, m)
	if err != nil {
		return false
	}
	if back := parse(t, p, text); !laws.Same(script, back, false) {
		t.Errorf("the lines mean something else:\n%s%s", text, lines(t, back))
	}

	var f codec.Frame
	var got codec.Message
	n, err := reader.Decode(side, raw, &f)
	if err == nil {
		f.Message(&got)
	}
	faithful := err == nil && n == len(raw) && got.Type == m.Type && got.CRLF == m.CRLF && len(got.Args) == len(m.Args)
	for i := 0; faithful && i < len(m.Args); i++ {
		faithful = bytes.Equal(got.Args[i], m.Args[i])
	}
	var b bytes.Buffer
	switch err := Bytes(&b, script); {
	case !faithful && err == nil:
		t.Errorf("printed, though it would be read otherwise:\n%s", b.String())
	case !faithful:
	case err != nil:
		t.Errorf("%v:\n%s", err, text)
	default:
		back := parse(t, p, b.String())
		if !laws.Same(script, back, false) {
			t.Errorf("the bytes mean something else:\n%s%s", b.String(), lines(t, back))
		}
		if last := back.Steps[len(back.Steps)-1].Choices[0].Bytes; !bytes.Equal(last, raw) {
			t.Errorf("got %q, want %q", last, raw)
		}
		if rec := Record(peer, &f); !laws.Same(&Script{Protocol: p, Steps: []Step{rec}}, &Script{Protocol: p, Steps: back.Steps[len(back.Steps)-1:]}, true) {
			t.Errorf("recorded otherwise:\n%s", b.String())
		}
		inHex = hex.AppendFrame(inHex, peer.Name, &f)
		if !laws.Same(back, parse(t, p, string(inHex)), true) || bytes.Contains(inHex, []byte("\n\"")) {
			t.Errorf("in hex it means something else:\n%s", inHex)
		}
	}
	return true
}

func send(peer Actor, from codec.Side, m *codec.Message) Step {
	c := Choice{Type: m.Type, CRLF: m.CRLF}
	for _, v := range m.Args {
		c.Args = append(c.Args, Arg{Value: v})
	}
	return Step{Peer: peer, From: from, Choices: []Choice{c}}
}

// TestRawInBytes tests that bytes that a transcript sends as raw are the same after they have been printed and parsed,
// in both forms.
func TestRawInBytes(t *testing.T) {
	for _, v := range difficultValues() {
		if len(v) == 0 {
			continue
		}
		s := &Script{Protocol: gearman.Protocol, Steps: []Step{{Peer: Actor{"Client", gearman.Client}, Choices: []Choice{
			{Verb: Raw, Bytes: v}, {Verb: Closes}, {Verb: Raw, Bytes: v, Grade: NonStrict}}}}}
		if back := parse(t, gearman.Protocol, lines(t, s)); !laws.Same(s, back, true) {
			t.Errorf("%q: the lines mean something else:\n%s", v, lines(t, s))
		}
		var b bytes.Buffer
		if err := Bytes(&b, s); err != nil {
			t.Fatal(err)
		}
		if back := parse(t, gearman.Protocol, b.String()); !laws.Same(s, back, true) {
			t.Errorf("%q: the bytes mean something else:\n%s", v, b.String())
		}
	}
}
