package fuzz

import (
	"bytes"
	"slices"
	"strings"
	"sync"

	"jobwire/codec"
	"jobwire/codec/transcript"
)

// contractTraits are the properties of a protocol that the fuzzer derives from the protocol's contract.
type contractTraits struct {
	protocol *codec.Protocol
	barrier  codec.Barrier // the first of Protocol.Barriers that the server answers; see [Config.calibrate]
	request  *codec.Type   // the request of the barrier
	reply    *codec.Type   // the reply to the barrier
	nonced   bool          // the reply contains the nonce of the request

	preamble []Step   // the first messages of each connection on a shared server
	unsafe   []string // words, in lower case, that raw bytes must not contain, because they shut down the server
	// first words, in lower case, of commands with a job number, which could be the number of another input's job
	numbered   []string
	hasNumbers bool // the server numbers jobs
	openLists  bool // a name may contain characters that make a text list ambiguous
	computes   bool // a peer can send commands whose replies contain values that no peer has sent
	inOrder    bool // every request has one reply, in the order of the requests
	attached   bool // some requests block until their job has ended
	reuse      bool // another input may use the same names if no job is queued or running under them
}

var allTraits sync.Map // by protocol

func traitsOf(p *codec.Protocol) *contractTraits {
	if d, ok := allTraits.Load(p); ok {
		return d.(*contractTraits)
	}
	d := &contractTraits{protocol: p, unsafe: p.Unsafe, inOrder: true, reuse: true}
	if len(p.Barriers) > 0 {
		d = d.with(p.Barriers[0])
	}
	for _, t := range p.Types {
		i := t.At(codec.JobID)
		switch {
		case t.Does == codec.Shutdown && t.Word != "":
			d.unsafe = append(slices.Clip(d.unsafe), strings.ToLower(t.Word))
		case t.Req != 0 && i >= 0 && t.FieldAt(i).Assigned && t.FieldAt(i).Kind == codec.Number:
			d.hasNumbers = true
			d.numbered = append(d.numbered, strings.ToLower(t.Word+t.Sep))
		case t.Res != 0 && slices.ContainsFunc(t.Repeat,
			func(f codec.Field) bool { return isName(&f) && f.Kind == codec.Text && f.Chars == "" }):
			d.openLists = true
		}
		d.inOrder = d.inOrder && (t.Req == 0 || len(t.Answers) == 0 || t.Ordered)
		d.computes = d.computes || t.AnyCommand
		d.attached = d.attached || t.Blocks == codec.Attached
		d.reuse = d.reuse && t.Does != codec.Wait && !p.Unowned
	}
	if p.DefaultQueue != "" {
		d.addPreamble(codec.Use, names[0])
		d.addPreamble(codec.Register, names[0])
		d.addPreamble(codec.Unregister, p.DefaultQueue)
	}
	allTraits.Store(p, d)
	return d
}

// with returns the traits with another barrier.
func (d *contractTraits) with(b codec.Barrier) *contractTraits {
	other := *d
	other.barrier, other.request, other.reply = b, d.protocol.TypeNamed(b.Request[0]), d.protocol.TypeNamed(b.Reply[0])
	other.nonced = slices.ContainsFunc(b.Reply, func(s string) bool { return strings.Contains(s, codec.Nonce) })
	return &other
}

// addPreamble adds to the preamble the message type that has the effect and whose only argument is a name, if there is
// such a type.
func (d *contractTraits) addPreamble(does codec.Effect, name string) {
	for _, t := range d.protocol.Types {
		if t.Does == does && t.NumArgs() == 1 && t.At(codec.Queue) == 0 {
			d.preamble = append(d.preamble, Step{Type: t, Args: []Arg{{Value: []byte(name)}}})
			return
		}
	}
}

// barrierMessage returns a barrier request that contains the nonce.
func (d *contractTraits) barrierMessage(nonce []byte) codec.Message {
	m := codec.Message{Type: d.request}
	for _, a := range d.barrier.Request[1:] {
		m.Args = append(m.Args, []byte(strings.ReplaceAll(a, codec.Nonce, string(nonce))))
	}
	return m
}

// answersBarrier reports whether a message is the reply to the barrier request with the nonce.
func (d *contractTraits) answersBarrier(f *codec.Frame, nonce []byte) bool {
	if d.nonced {
		return bytes.Contains(f.Raw, nonce)
	}
	for i, v := range d.barrier.Reply[1:] {
		if string(f.Arg(i)) != v {
			return false
		}
	}
	return f.Type == d.reply
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

// placeholder is the beginning of the names in inputs. If several inputs share a server, the prefix of the input
// replaces the placeholder in all bytes. Prefixes have the same length as the placeholder.
const placeholder = "ZZZZZZZ"

// placed adds the placeholder to a value that is one of names in a field for names. It returns other values unchanged.
func placed(f *codec.Field, v []byte) []byte {
	if isName(f) && slices.Contains(names, string(v)) {
		return append([]byte(placeholder), v...)
	}
	return v
}

// own adds the prefix to a name that has no placeholder. It returns other values unchanged.
func (d *contractTraits) own(f *codec.Field, v []byte, prefix string) []byte {
	if prefix == "" || !isName(f) || bytes.Contains(v, []byte(placeholder)) || len(v)+len(prefix) > 100 ||
		len(v) > 0 && string(v) == d.protocol.DefaultQueue {
		return v
	}
	return append([]byte(prefix), v...)
}

// namesOthers reports whether a request contains names without the prefix, which other inputs may use too.
// Unregistering from the default queue does not count, because it affects only the connection.
func (d *contractTraits) namesOthers(f *codec.Frame, prefix string) bool {
	if prefix == "" || f.Type == nil {
		return false
	}
	for i := range f.Spans {
		v := f.Value(i)
		if isName(f.Spans[i].Field) && !bytes.HasPrefix(v, []byte(prefix)) &&
			(f.Type.Does != codec.Unregister || string(v) != d.protocol.DefaultQueue) {
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

// namesNumbers reports whether b contains a command with a job number. sent are the bytes that the connection has sent
// before b.
func (d *contractTraits) namesNumbers(sent, b []byte) bool { return containsWord(d.numbered, sent, b) }

// isUnsafe reports whether b contains a word that could shut down the server. sent are the bytes that the connection
// has sent before b.
func (d *contractTraits) isUnsafe(sent, b []byte) bool { return containsWord(d.unsafe, sent, b) }

// containsWord reports whether b contains one of the words, or the end of a word that begins in sent.
func containsWord(words []string, sent, b []byte) bool {
	if len(words) == 0 {
		return false
	}
	low := bytes.ToLower(after(sent, b))
	before := len(low) - len(b)
	return slices.ContainsFunc(words, func(w string) bool { return bytes.Contains(low[max(0, before-len(w)+1):], []byte(w)) })
}

// isSafe reports whether b is exactly the legal message of a step, which may contain unsafe words in its arguments. If
// a field allows only its examples, other values are not safe.
func (d *contractTraits) isSafe(s *Step, b []byte) bool {
	if s.Verb != transcript.Send || s.Type.Does == codec.Shutdown {
		return false
	}
	var f codec.Frame
	if n, err := d.protocol.NewSession(codec.Options{}).Decode(codec.Peer, b, &f); err != nil || n != len(b) ||
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

// isBinary reports whether b begins with a binary message, whose length is known even if the message is illegal.
func (d *contractTraits) isBinary(b []byte) bool {
	return d.protocol.Binary != nil && d.protocol.Binary(b)
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

// changesQueues reports whether an input may change a queue in a way that outlasts its jobs.
func changesQueues(c *Input) bool {
	if c.Mode == Burst {
		return true
	}
	for i := range c.Steps {
		if s := &c.Steps[i]; s.Verb == transcript.Raw || s.Type != nil && changesQueue(s.Type) {
			return true
		}
	}
	return false
}

// listsAll reports whether messages of the type request a list that contains objects of all users of the server.
func listsAll(t *codec.Type) bool {
	return t.Does == codec.Query && !t.Has(codec.Queue) && !t.Has(codec.JobID) &&
		slices.ContainsFunc(t.Answers, func(a *codec.Type) bool { return len(a.Repeat) > 0 })
}

// mayWait reports whether the server may wait for another peer before it replies to a message of the type.
func mayWait(t *codec.Type) bool { return t.Blocks == codec.Always || t.Blocks == codec.UnlessZero }

// blocks reports whether the server may wait before it replies to a request, or to a barrier after the request. This
// includes requests that subscribe to messages, because they change the form of later replies.
func (d *contractTraits) blocks(f *codec.Frame) bool {
	if t := d.protocol.Behavior(f); t != f.Type {
		return t.Blocks != codec.Never || t.Does == codec.Configure
	}
	return f.Blocks() || slices.ContainsFunc(f.Type.Answers, func(t *codec.Type) bool { return t.Push })
}

// unblocks reports whether a message of the server ends the wait of a blocked request, in a protocol in which replies
// have no order.
func (d *contractTraits) unblocks(f *codec.Frame) bool {
	switch f.Type.Does {
	case codec.Complete, codec.Fail, codec.Exception:
		return d.attached
	}
	return f.Type.Ordered
}

// isFromPeers reports whether a value in a message of the server must be a value that a peer has sent, such as a name
// or a payload.
func (d *contractTraits) isFromPeers(f *codec.Field, v []byte) bool {
	switch f.Means {
	case codec.Queue, codec.UniqueID, codec.Payload, codec.OptionName:
		return !d.computes && string(v) != d.protocol.DefaultQueue
	}
	return false
}
