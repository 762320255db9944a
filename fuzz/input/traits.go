package input

import (
	"bytes"
	"slices"
	"strings"
	"sync"

	"jobwire/codec"
	"jobwire/codec/transcript"
)

// Traits are the properties of a protocol that the fuzzer derives from the protocol's contract.
type Traits struct {
	protocol *codec.Protocol
	Preamble []Step   // the first messages of each connection on a shared server
	unsafe   []string // words, in lower case, that raw bytes must not contain, because they shut down the server
	// first words, in lower case, of commands with a job number, which could be the number of another input's job
	numbered   []string
	HasNumbers bool // the server numbers jobs
	OpenLists  bool // a name may contain characters that make a text list ambiguous
	computes   bool // a peer can send commands whose replies contain values that no peer has sent
	InOrder    bool // every request has one reply, in the order of the requests
	Pushes     bool // the server sends messages without a request
	attached   bool // some requests block until their job has ended
	Reuse      bool // another input may use the same names if no job is queued or running under them
}

var allTraits sync.Map // by protocol

// TraitsOf returns the traits of a protocol.
func TraitsOf(p *codec.Protocol) *Traits {
	if d, ok := allTraits.Load(p); ok {
		return d.(*Traits)
	}
	d := &Traits{protocol: p, unsafe: p.Unsafe, InOrder: true, Reuse: true}
	for _, t := range p.Types {
		i := t.At(codec.JobID)
		switch {
		case t.Does == codec.Shutdown && t.Word != "":
			d.unsafe = append(slices.Clip(d.unsafe), strings.ToLower(t.Word))
		case t.Req != 0 && i >= 0 && t.FieldAt(i).Assigned && t.FieldAt(i).Kind == codec.Number:
			d.HasNumbers = true
			d.numbered = append(d.numbered, strings.ToLower(t.Word+t.Sep))
		case t.Res != 0 && slices.ContainsFunc(t.Repeat,
			func(f codec.Field) bool { return isName(&f) && f.Kind == codec.Text && f.Chars == "" }):
			d.OpenLists = true
		}
		d.Pushes = d.Pushes || t.Push
		d.InOrder = d.InOrder && (t.Req == 0 || len(t.Answers) == 0 || t.Ordered)
		d.computes = d.computes || t.AnyCommand
		d.attached = d.attached || t.Blocks == codec.Attached
		d.Reuse = d.Reuse && t.Does != codec.Wait && !p.Unowned
	}
	if p.DefaultQueue != "" {
		d.addPreamble(codec.Use, names[0])
		d.addPreamble(codec.Register, names[0])
		d.addPreamble(codec.Unregister, p.DefaultQueue)
	}
	allTraits.Store(p, d)
	return d
}

// addPreamble adds to the preamble the message type that has the effect and whose only argument is a name, if there is
// such a type.
func (tr *Traits) addPreamble(does codec.Effect, name string) {
	for _, t := range tr.protocol.Types {
		if t.Does == does && t.NumArgs() == 1 && t.At(codec.Queue) == 0 {
			tr.Preamble = append(tr.Preamble, Step{Type: t, Args: []Arg{{Value: []byte(name)}}})
			return
		}
	}
}

// isName reports whether the values of a field are names of queues. If several inputs share a server, each input adds a
// prefix to its names.
func isName(f *codec.Field) bool { return f != nil && f.Means == codec.Queue }

// isKey reports whether the values of a field identify an object that several peers refer to, such as a unique ID.
func isKey(f *codec.Field) bool {
	return f != nil && (f.Means == codec.UniqueID || f.Means == codec.JobID && !f.Assigned ||
		f.Means == codec.PriorityOf && f.Values != nil)
}

// names are the names that all peers of an input use.
var names = []string{"a", "b", "c"}

// Placeholder is the beginning of the names in inputs. If several inputs share a server, the prefix of the input
// replaces the placeholder in all bytes. Prefixes have the same length as the placeholder.
const Placeholder = "ZZZZZZZ"

// placed adds the placeholder to a value that is one of names in a field for names. It returns other values unchanged.
func placed(f *codec.Field, v []byte) []byte {
	if isName(f) && slices.Contains(names, string(v)) {
		return append([]byte(Placeholder), v...)
	}
	return v
}

// Own adds the prefix to a name that has no placeholder. It returns other values unchanged.
func (tr *Traits) Own(f *codec.Field, v []byte, prefix string) []byte {
	if prefix == "" || !isName(f) || bytes.Contains(v, []byte(Placeholder)) || len(v)+len(prefix) > 100 ||
		len(v) > 0 && string(v) == tr.protocol.DefaultQueue {
		return v
	}
	return append([]byte(prefix), v...)
}

// NamesOthers reports whether a request contains names without the prefix, which other inputs may use too.
// Unregistering from the default queue does not count, because it affects only the connection.
func (tr *Traits) NamesOthers(f *codec.Frame, prefix string) bool {
	if prefix == "" || f.Type == nil {
		return false
	}
	for i := range f.Spans {
		v := f.Value(i)
		if isName(f.Spans[i].Field) && !bytes.HasPrefix(v, []byte(prefix)) &&
			(f.Type.Does != codec.Unregister || string(v) != tr.protocol.DefaultQueue) {
			return true
		}
	}
	return false
}

// after returns b, preceded by the last bytes of sent.
func after(sent, b []byte) []byte {
	const longest = 32 // the longest word that is searched for
	return slices.Concat(sent[max(0, len(sent)-longest):], b)
}

// NamesNumbers reports whether b contains a command with a job number. sent are the bytes that the connection has sent
// before b.
func (tr *Traits) NamesNumbers(sent, b []byte) bool { return containsWord(tr.numbered, sent, b) }

// IsUnsafe reports whether b contains a word that could shut down the server. sent are the bytes that the connection
// has sent before b.
func (tr *Traits) IsUnsafe(sent, b []byte) bool { return containsWord(tr.unsafe, sent, b) }

// containsWord reports whether b contains one of the words, or the end of a word that begins in sent.
func containsWord(words []string, sent, b []byte) bool {
	if len(words) == 0 {
		return false
	}
	low := bytes.ToLower(after(sent, b))
	before := len(low) - len(b)
	return slices.ContainsFunc(words, func(w string) bool { return bytes.Contains(low[max(0, before-len(w)+1):], []byte(w)) })
}

// IsSafe reports whether b is exactly the legal message of a step, which may contain unsafe words in its arguments. If
// a field allows only its examples, other values are not safe.
func (tr *Traits) IsSafe(s *Step, b []byte) bool {
	if s.Verb != transcript.Send || s.Type.Does == codec.Shutdown {
		return false
	}
	var f codec.Frame
	if n, err := tr.protocol.NewSession(codec.Options{}).Decode(codec.Peer, b, &f); err != nil || n != len(b) ||
		f.Type != s.Type {
		return false
	}
	for i, a := range s.Args {
		if f := s.Type.FieldAt(i); f != nil && f.Only && !slices.Contains(f.Examples, string(a.Value)) {
			return false
		}
	}
	return true
}

// IsBinary reports whether b begins with a binary message, whose length is known even if the message is illegal.
func (tr *Traits) IsBinary(b []byte) bool {
	return tr.protocol.Binary != nil && tr.protocol.Binary(b)
}

// changesQueue reports whether messages of the type may change a queue in a way that outlasts its jobs.
func changesQueue(t *codec.Type) bool {
	switch t.Does {
	case codec.Pause:
		return true
	case codec.Configure:
		return t.Has(codec.Queue)
	case codec.Submit:
		return t.Has(codec.StartTime) || t.Has(codec.Schedule)
	}
	return false
}

// ChangesQueues reports whether an input may change a queue in a way that outlasts its jobs.
func ChangesQueues(in *Input) bool {
	if in.Mode == Burst {
		return true
	}
	for i := range in.Steps {
		if s := &in.Steps[i]; s.Verb == transcript.Raw || s.Type != nil && changesQueue(s.Type) {
			return true
		}
	}
	return false
}

// ListsAll reports whether messages of the type request a list that contains objects of all users of the server.
func ListsAll(t *codec.Type) bool {
	return t.Does == codec.Query && !t.Has(codec.Queue) && !t.Has(codec.JobID) &&
		slices.ContainsFunc(t.Answers, func(a *codec.Type) bool { return len(a.Repeat) > 0 })
}

// MayWait reports whether the server may wait for another peer before it replies to a message of the type.
func MayWait(t *codec.Type) bool { return t.Blocks == codec.Always || t.Blocks == codec.UnlessZero }

// Blocks reports whether the server may wait before it replies to a request, or to a barrier after the request. This
// includes requests that subscribe to messages, because they change the form of later replies.
func (tr *Traits) Blocks(f *codec.Frame) bool {
	if t := tr.protocol.Behavior(f); t != f.Type {
		return t.Blocks != codec.Never || t.Does == codec.Configure
	}
	return f.Blocks() || slices.ContainsFunc(f.Type.Answers, func(t *codec.Type) bool { return t.Push })
}

// Unblocks reports whether a message of the server ends the wait of a blocked request, in a protocol in which replies
// have no order.
func (tr *Traits) Unblocks(f *codec.Frame) bool {
	switch f.Type.Does {
	case codec.Complete, codec.Fail, codec.Exception:
		return tr.attached
	}
	return f.Type.Ordered
}

// IsFromPeers reports whether a value in a message of the server must be a value that a peer has sent, such as a name
// or a payload.
func (tr *Traits) IsFromPeers(f *codec.Field, v []byte) bool {
	switch f.Means {
	case codec.Queue, codec.UniqueID, codec.Payload, codec.OptionName:
		return !tr.computes && string(v) != tr.protocol.DefaultQueue
	}
	return false
}
