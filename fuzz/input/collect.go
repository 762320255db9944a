package input

import (
	"bytes"
	"slices"

	"jobwire/codec"
	"jobwire/codec/transcript"
)

// Collect returns a copy of the input, followed by a worker that registers for the queues that the input names and
// requests as many jobs as the input submits, and one more. It returns nil if the input submits no job, if it has no
// room for another connection, or if the protocol has no request for a job that the server answers at once.
func (tr *Traits) Collect(in *Input) *Input {
	conn := in.Conns()
	var queues [][]byte
	jobs := 0
	for i := range in.Steps {
		s := &in.Steps[i]
		if s.Type == nil {
			continue
		}
		if s.Type.Does == codec.Submit {
			jobs++
		}
		for k, a := range s.Args {
			named := func(q []byte) bool { return bytes.Equal(q, a.Value) }
			if isName(s.Type.FieldAt(k)) && !slices.ContainsFunc(queues, named) {
				queues = append(queues, a.Value)
			}
		}
	}
	register := tr.first(func(t *codec.Type) bool {
		return t.Does == codec.Register && t.NumArgs() == 1 && t.At(codec.Queue) == 0
	})
	ask := tr.first(func(t *codec.Type) bool {
		return t.Does == codec.Ask && (t.NumArgs() == 0 && t.Blocks == codec.Never ||
			t.NumArgs() == 1 && t.At(codec.Timeout) == 0 && t.Blocks == codec.UnlessZero)
	})
	if jobs == 0 || conn >= MaxConns || register == nil || ask == nil {
		return nil
	}
	all := in.Clone()
	add := func(t *codec.Type, v []byte) {
		s := Step{ID: all.nextID(), Conn: conn, Verb: transcript.Send, Type: t}
		if t.NumArgs() > 0 {
			s.Args = []Arg{{Value: v}}
		}
		all.Steps = append(all.Steps, s)
	}
	for _, q := range queues {
		add(register, q)
	}
	for range jobs + 1 {
		add(ask, []byte("0"))
	}
	return all
}

// first returns the first type of requests for which is returns true, or nil.
func (tr *Traits) first(is func(*codec.Type) bool) *codec.Type {
	for _, t := range tr.protocol.Types {
		if t.Req != 0 && is(t) {
			return t
		}
	}
	return nil
}
