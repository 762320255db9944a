package audit

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"jobwire/codec"
)

// protocolFaults contains what the fault profiles need to know of a protocol.
type protocolFaults struct {
	protocol *codec.Protocol
	wake     *codec.Type // a message that a worker may receive at any time; nil if there is none
	// wake is also the reply "no job". If it is added to such a reply, the worker asks for a job again and again
	wakeMeansNoJob bool
	refusal        *codec.Message       // an error that may be a reply; nil if there is none
	replies        map[*codec.Type]bool // types of replies to requests
	// a message that ends a job, and may arrive in any order of jobs; nil if there is none
	ends *codec.Type
	// a report of progress that may arrive at any time before the end of a job; nil if there is none
	progress *codec.Type
	hasRarer bool   // a reply of another type could stand for some replies
	renames  bool   // the server chooses the IDs of jobs
	numbers  bool   // job IDs are numbers
	jobKey   string // see Effects
}

// newProtocolFaults finds the message types that fault profiles use by their effects and replies in the definition of
// the protocol.
func newProtocolFaults(p *codec.Protocol) *protocolFaults {
	pf := &protocolFaults{protocol: p, replies: map[*codec.Type]bool{}, jobKey: effects[p].JobKey}
	if words := p.Refusal; words != nil {
		pf.refusal = &codec.Message{Type: p.TypeNamed(words[0])}
		for _, w := range words[1:] {
			pf.refusal.Args = append(pf.refusal.Args, []byte(w))
		}
	}
	for _, t := range p.Types {
		for _, a := range t.Answers {
			pf.replies[a] = true
			pf.hasRarer = pf.hasRarer || rarer(t, a) != nil
		}
		for i := range t.Fields {
			if f := &t.Fields[i]; chosen(f) {
				pf.renames, pf.numbers = true, pf.numbers || f.Kind == codec.Number
			}
		}
	}
	for _, t := range p.Types {
		switch {
		case t.Res == 0:
		case t.Does == codec.Wake:
			pf.wake, pf.wakeMeansNoJob = t, pf.replies[t]
		case t.Does == codec.Complete && t.Has(codec.JobID) && !pf.replies[t]:
			pf.ends = t
		case t.Does == codec.Status && t.Has(codec.JobID) && !pf.replies[t]:
			pf.progress = t
		}
	}
	return pf
}

// mayRefuse reports whether refusal may be the reply to a request.
func (pf *protocolFaults) mayRefuse(t *codec.Type) bool {
	return pf.refusal != nil && slices.Contains(t.Answers, pf.refusal.Type)
}

// rarer returns another type of reply that says what happened to a job, could stand for the usual reply to a request,
// and has no field that the usual reply has not; or nil.
func rarer(asked, usual *codec.Type) *codec.Type {
	if asked == nil || usual.Does == codec.Refuse || usual.Does == codec.NoJob {
		return nil
	}
	for _, t := range asked.Answers {
		known := !slices.ContainsFunc(t.Fields, func(f codec.Field) bool { return named(usual, f.Name) < 0 })
		switch t.Does {
		case codec.Accept, codec.Assign, codec.Bury:
			if t != usual && known {
				return t
			}
		}
	}
	return nil
}

// named returns the index of the field with a name, or -1.
func named(t *codec.Type, name string) int {
	return slices.IndexFunc(t.Fields, func(f codec.Field) bool { return f.Name == name })
}

// head returns the length of the first part of a message of the server: its header, or its first line.
func (pf *protocolFaults) head(raw []byte) int {
	var f codec.Frame
	if _, err := pf.nonStrictSession().Decode(codec.Server, raw, &f); err == nil && f.Head > 0 && f.Type.End == "" {
		return f.Spans[f.Head-1].Next
	}
	return bytes.IndexByte(raw, '\n') + 1
}

func (pf *protocolFaults) nonStrictSession() codec.Session {
	return pf.protocol.NewSession(codec.Options{WaiveAll: true})
}

// encode encodes a message for the connection of another message, or returns nil.
func (pf *protocolFaults) encode(from codec.Side, m *codec.Message, other *codec.Frame) []byte {
	s := pf.nonStrictSession()
	// the first message may determine a property of all messages of a connection, so the session must see it
	s.Decode(other.From, other.Raw, &codec.Frame{})
	b, err := s.Append(nil, from, m)
	if err != nil {
		return nil
	}
	return b
}

// report returns a progress report about a job, for the connection of another message.
func (pf *protocolFaults) report(id []byte, other *codec.Frame) []byte {
	m := codec.Message{Type: pf.progress}
	for i := range pf.progress.Fields {
		arg := []byte(strconv.Itoa(i))
		if pf.progress.Fields[i].Means == codec.JobID {
			arg = id
		}
		m.Args = append(m.Args, arg)
	}
	return pf.encode(codec.Server, &m, other)
}

// chosen reports whether a field is a job ID that the server chooses.
func chosen(fd *codec.Field) bool { return fd.Means == codec.JobID && fd.Assigned }

// renamed returns a message with the job name replaced by the other one of its pair, or nil if the message does not
// name a job. asked is the type of the request that the message is or to which it is the reply, or nil.
func (pf *protocolFaults) renamed(f *codec.Frame, asked *codec.Type, largest uint64) []byte {
	var m codec.Message
	f.Message(&m)
	found := false
	for i := range m.Args {
		if fd := f.Type.FieldAt(i); fd != nil && chosen(fd) {
			m.Args[i], found = []byte(rename(fd, string(m.Args[i]), largest)), true
		}
	}
	if asked != nil && asked.Has(codec.JobID) && pf.jobKey != "" && len(f.Type.Repeat) > 1 { // the statistics of a job
		at := asked.At(codec.JobID)
		for i := 0; i+1 < len(m.Args); i += 2 {
			if string(m.Args[i]) == pf.jobKey {
				m.Args[i+1], found = []byte(rename(asked.FieldAt(at), string(m.Args[i+1]), largest)), true
			}
		}
	}
	if !found {
		return nil
	}
	return pf.encode(f.From, &m, f)
}

// rename exchanges job names in pairs of a short name and one of maximum length. As each name belongs to one pair, also
// names that the server has not assigned are the same for both sides. Small numbers and numbers near largest are pairs.
func rename(fd *codec.Field, name string, largest uint64) string {
	if fd.Kind == codec.Number {
		if n, err := strconv.ParseUint(name, 10, 64); err == nil && n <= largest {
			return strconv.FormatUint(largest-n, 10)
		}
		return name
	}
	short := strings.TrimRight(name, "x")
	if len(name) == fd.Max && len(short) < len(name) && len(short) > 1 && strings.HasSuffix(short, ".") {
		return strings.TrimSuffix(short, ".")
	}
	if n := fd.Max - len(name) - 1; n > 0 && name != "" {
		return name + "." + strings.Repeat("x", n)
	}
	return name
}
