package play

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"jobwire/codec"
	"jobwire/codec/transcript"
)

// Encode writes out both sides of a script as if it had been performed without a
// hitch: the events that would have happened, with every byte. Of several
// choices the first happens. Names stand for words made of them, those that a
// server would choose for "H:name", or for a number where one is due. A wildcard says too little to be
// encoded, and is an error that names the step; with fill it is the word any, or what else its field may be, and ...
// is no more than has to be there.
func Encode(s *transcript.Script, now time.Time, fill bool) ([]Event, error) {
	var (
		bind     transcript.Bindings
		events   []Event
		at       time.Duration
		sessions = map[string]codec.Session{}
		n        int
	)
	word := func(name string, fd *codec.Field) string {
		n++
		switch {
		case fd != nil && (fd.Kind == codec.Number || fd.Kind == codec.Signed):
			return strconv.Itoa(n)
		case fd != nil && fd.Assigned:
			return "H:" + name + ":" + strconv.Itoa(n)
		}
		return name
	}
	for i := range s.Steps {
		st := &s.Steps[i]
		c := &st.Choices[0]
		ev := Event{Actor: st.Peer, From: st.From, Verb: c.Verb, For: c.For, Step: i}
		at += max(st.After, c.For, time.Millisecond)
		ev.At = at
		switch c.Verb {
		case transcript.Raw:
			ev.Frame = codec.Frame{From: st.From, Raw: c.Bytes}
		case transcript.Send:
			sess := sessions[st.Peer.Name]
			if sess == nil {
				// What may stand in a script was judged when it was parsed.
				sess = s.Protocol.NewSession(codec.Options{WaiveAll: true})
				sessions[st.Peer.Name] = sess
			}
			if fill {
				c = filled(c, word)
			}
			bindFresh(&bind, c, word)
			m, err := bind.Resolve(c, now.Add(at), true)
			if err != nil {
				return nil, fmt.Errorf("%s:%d: cannot be encoded: %w", s.File, st.Line, err)
			}
			raw, err := sess.Append(nil, st.From, &m)
			if err != nil {
				return nil, fmt.Errorf("%s:%d: cannot be encoded: %w", s.File, st.Line, err)
			}
			ev.Frame = codec.Frame{Type: c.Type, From: st.From, Raw: raw}
		}
		events = append(events, ev)
	}
	return events, nil
}

// filled returns the choice with values in the place of its wildcards.
func filled(c *transcript.Choice, word func(name string, fd *codec.Field) string) *transcript.Choice {
	out := *c
	out.Args = nil
	need := 0
	for i := range c.Type.Fields {
		if fd := &c.Type.Fields[i]; !fd.Derived() && !fd.Optional {
			need++
		}
	}
	value := func() transcript.Arg {
		return transcript.Arg{Value: some(c.Type.FieldAt(len(out.Args)), word)}
	}
	for i, a := range c.Args {
		switch a.Kind {
		case transcript.Any:
			a = value()
		case transcript.Rest:
			for len(out.Args)+len(c.Args)-i-1 < need {
				out.Args = append(out.Args, value())
			}
			continue
		}
		out.Args = append(out.Args, a)
	}
	return &out
}

// some returns a value that a field may have.
func some(fd *codec.Field, word func(name string, fd *codec.Field) string) []byte {
	const name = "any"
	switch {
	case fd == nil:
		return []byte(name)
	case len(fd.Values) > 0:
		return []byte(fd.Values[0])
	case fd.Kind == codec.Uint:
		b := make([]byte, fd.Width)
		for i, n := len(b)-1, fd.Lo; i >= 0 && n > 0; i, n = i-1, n>>8 {
			b[i] = byte(n)
		}
		return b
	case fd.Assigned:
		return []byte(word(name, fd))
	case fd.Kind == codec.Number || fd.Kind == codec.Signed:
		return strconv.AppendUint(nil, fd.Lo, 10)
	}
	v := name
	if fd.Width > 0 {
		v = strings.Repeat("a", fd.Width)
	}
	if fd.Chars != "" && strings.Trim(v, fd.Chars) != "" {
		first := strings.Trim(fd.Chars, fd.NotFirst)
		v = strings.Repeat(first[:1], max(1, fd.Width))
	}
	return []byte(v)
}
