package model

import (
	"time"

	"jobwire/codec"
	"jobwire/codec/transcript"
)

// step records a message, with names for what the server chose.
func (t *Talk) step(conn int, f *codec.Frame) transcript.Step {
	c := f.Clone()
	st := transcript.Record(t.actor(conn), &c)
	ch := &st.Choices[0]
	ch.Bytes = nil
	var m codec.Message
	c.Message(&m)
	k := 0
	for i := range c.Spans {
		fd := c.Spans[i].Field
		if fd.Derived() {
			continue
		}
		if k < len(ch.Args) {
			if fd.Assigned {
				if name := t.names[fd.Name+string(c.Value(i))]; name != "" {
					ch.Args[k] = transcript.Arg{Kind: transcript.Name, Name: name}
				}
			}
			if fd.Name == "Epoch time" || fd.Name == "Scheduled" || fd.Name == "System date" {
				if n, bad := codec.ParseNumber(c.Value(i)); bad < 0 && n > 1000 && n < 1<<33 {
					ch.Args[k] = transcript.Arg{Kind: transcript.Now, Delta: int64(n) - time.Now().Unix()}
				}
			}
		}
		k++
	}
	return st
}

// Script returns what has happened as a transcript. Waiting is noted before the step
// that it delays.
func (t *Talk) Script() *transcript.Script {
	s := &transcript.Script{Protocol: t.d.p}
	var wait time.Duration
	for _, st := range t.Steps {
		if len(st.Choices) == 0 {
			wait += st.After
			continue
		}
		if wait > 0 {
			if st.From == codec.Server {
				st.Within = wait + 2*time.Second
			} else {
				st.After = wait
			}
			wait = 0
		}
		s.Steps = append(s.Steps, st)
	}
	return s
}
