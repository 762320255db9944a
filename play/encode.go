package play

import (
	"fmt"
	"strconv"
	"time"

	"jobwire/codec"
	"jobwire/codec/transcript"
)

// Encode returns the events of a successful run of a script, with the bytes of all messages of both sides. If a step
// has several choices, Encode uses the first. A name gets a value derived from it: "H:name:1" if the server chooses the
// value, or a number if the field is one. Without fill, a step with a wildcard is an error. With fill, a wildcard
// becomes the word any or another valid value of its field, and ... becomes the minimum of required arguments.
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
		case transcript.Raw, transcript.Urgent:
			ev.Frame = codec.Frame{From: st.From, Raw: c.Bytes}
		case transcript.Send:
			sess := sessions[st.Peer.Name]
			if sess == nil {
				// The script was checked when it was parsed.
				sess = s.Protocol.NewSession(codec.Options{WaiveAll: true})
				sessions[st.Peer.Name] = sess
			}
			if fill {
				filled := *c
				filled.Args = c.Fill(func(i int, fd *codec.Field) []byte {
					switch {
					case i < len(c.Args) && c.Args[i].Kind == transcript.Version:
						return []byte("1.0")
					case i < len(c.Args) && c.Args[i].Kind != transcript.Any:
						return nil
					case fd != nil && fd.Assigned:
						return []byte(word("any", fd))
					}
					return fd.Sample("any")
				})
				c = &filled
			}
			bindUnique(&bind, c, word)
			m, err := bind.Resolve(c, now.Add(at), true)
			if err != nil {
				return nil, fmt.Errorf("%s:%d: the message cannot be encoded: %w", s.File, st.Line, err)
			}
			raw, err := sess.Append(nil, st.From, &m)
			if err != nil {
				return nil, fmt.Errorf("%s:%d: the message cannot be encoded: %w", s.File, st.Line, err)
			}
			ev.Frame = codec.Frame{Type: c.Type, From: st.From, Raw: raw}
		}
		events = append(events, ev)
	}
	return events, nil
}
