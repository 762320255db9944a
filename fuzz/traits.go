package fuzz

import (
	"bytes"
	"slices"
	"strings"
	"sync"

	"jobwire/codec"
	"jobwire/codec/transcript"
)

// contractTraits are what the fuzzer derives from the contract of a protocol.
type contractTraits struct {
	protocol *codec.Protocol
	barrier  *codec.Type // the request of Protocol.Barrier; nil if there is none
	reply    *codec.Type // to the barrier
	nonced   bool        // the reply contains the nonce of the request

	preamble   []Step   // what a connection first sends on a shared server
	unsafe     []string // words, in lower case, that no bytes may contain
	numbered   []string // beginnings of commands, in lower case, that name jobs by numbers, which all users share
	hasNumbers bool     // the server numbers jobs
	openLists  bool     // names may break the text lists that contain them
	computes   bool     // peers can have the server compute values
	inOrder    bool     // every request has one reply, in the order of the requests
	attached   bool     // some requests block until their job has ended
	reuse      bool     // a name can be reused if nothing is queued or running under it
}

var allTraits sync.Map // by protocol

func traitsOf(p *codec.Protocol) *contractTraits {
	if d, ok := allTraits.Load(p); ok {
		return d.(*contractTraits)
	}
	d := &contractTraits{protocol: p, unsafe: p.Unsafe, inOrder: true, reuse: true}
	if b := p.Barrier; b.Request != nil {
		d.barrier, d.reply = codec.Named(p.Types, b.Request[0]), codec.Named(p.Types, b.Reply[0])
		d.nonced = slices.ContainsFunc(b.Reply, func(s string) bool { return strings.Contains(s, codec.Nonce) })
	}
	for _, t := range p.Types {
		i := t.At(codec.JobID)
		switch {
		case t.Does == codec.Shutdown && t.Word != "":
			d.unsafe = append(slices.Clip(d.unsafe), strings.ToLower(t.Word))
		case t.Req != 0 && i >= 0 && t.FieldAt(i).Assigned && t.FieldAt(i).Kind == codec.Number:
			d.hasNumbers = true
			d.numbered = append(d.numbered, strings.ToLower(t.Word+t.Sep))
		case t.Res != 0 && slices.ContainsFunc(t.Repeat, func(f codec.Field) bool { return isName(&f) && f.Kind == codec.Text && f.Chars == "" }):
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

// addPreamble adds a message that has the effect and whose only argument is a name, if there is such a message.
func (d *contractTraits) addPreamble(does codec.Effect, name string) {
	for _, t := range d.protocol.Types {
		if t.Does == does && t.NumArgs() == 1 && t.At(codec.Queue) == 0 {
			d.preamble = append(d.preamble, Step{Type: t, Args: []Arg{{Value: []byte(name)}}})
			return
		}
	}
}

// barrierMessage returns the barrier with a nonce.
func (d *contractTraits) barrierMessage(nonce []byte) codec.Message {
	m := codec.Message{Type: d.barrier}
	for _, a := range d.protocol.Barrier.Request[1:] {
		m.Args = append(m.Args, []byte(strings.ReplaceAll(a, codec.Nonce, string(nonce))))
	}
	return m
}

// answersBarrier reports whether a message is the reply to the barrier with the nonce.
func (d *contractTraits) answersBarrier(f *codec.Frame, nonce []byte) bool {
	if d.nonced {
		return bytes.Contains(f.Raw, nonce)
	}
	for i, v := range d.protocol.Barrier.Reply[1:] {
		if string(f.Arg(i)) != v {
			return false
		}
	}
	return f.Type == d.reply
}

// isName reports whether the values of a field are names of queues. While several inputs run on one server, each input uses
// another prefix for its names.
func isName(f *codec.Field) bool { return f != nil && f.Means == codec.Queue }

// isKey reports whether the values of a field identify an object to which several peers refer.
func isKey(f *codec.Field) bool {
	return f != nil && (f.Means == codec.UniqueID || f.Means == codec.JobID && !f.Assigned || f.Means == codec.PriorityOf && f.Values != nil)
}

// names are the names that all peers of an input use.
var names = []string{"a", "b", "c"}

// placeholder is the beginning of names in inputs. If an input shares the server, the prefix of the input, which has the
// same length, replaces the placeholder in all bytes.
const placeholder = "ZZZZZZZ"

// placed returns a name in the form that inputs contain.
func placed(f *codec.Field, v []byte) []byte {
	if isName(f) && slices.Contains(names, string(v)) {
		return append([]byte(placeholder), v...)
	}
	return v
}

// own returns a name with a prefix, as it is sent.
func (d *contractTraits) own(f *codec.Field, v []byte, prefix string) []byte {
	if prefix == "" || !isName(f) || bytes.Contains(v, []byte(placeholder)) || len(v)+len(prefix) > 100 || len(v) > 0 && string(v) == d.protocol.DefaultQueue {
		return v
	}
	return append([]byte(prefix), v...)
}

// namesOthers reports whether a message that the executor sends has names that other inputs may use too. Unregistering from
// the default queue affects only the connection.
func (d *contractTraits) namesOthers(f *codec.Frame, prefix string) bool {
	if prefix == "" || f.Type == nil {
		return false
	}
	for i := range f.Spans {
		v := f.Value(i)
		if isName(f.Spans[i].Field) && !bytes.HasPrefix(v, []byte(prefix)) && (f.Type.Does != codec.Unregister || string(v) != d.protocol.DefaultQueue) {
			return true
		}
	}
	return false
}

// after returns b after the last bytes of sent.
func after(sent, b []byte) []byte {
	const longest = 32 // the longest word that is searched for
	return slices.Concat(sent[max(0, len(sent)-longest):], b)
}

// namesNumbers reports whether bytes name jobs by numbers. sent are the bytes before them.
func (d *contractTraits) namesNumbers(sent, b []byte) bool { return containsWord(d.numbered, sent, b) }

// isUnsafe reports whether bytes must not be sent. sent are the bytes before them.
func (d *contractTraits) isUnsafe(sent, b []byte) bool { return containsWord(d.unsafe, sent, b) }

// containsWord reports whether b contains a word or the end of a word that begins in sent, the bytes before b.
func containsWord(words []string, sent, b []byte) bool {
	if len(words) == 0 {
		return false
	}
	low := bytes.ToLower(after(sent, b))
	before := len(low) - len(b)
	return slices.ContainsFunc(words, func(w string) bool { return bytes.Contains(low[max(0, before-len(w)+1):], []byte(w)) })
}

// isSafe reports whether bytes are one legal message. For fields in which other values may do harm, only the examples of
// the contract are safe. The message may contain unsafe words.
func (d *contractTraits) isSafe(s *Step, b []byte) bool {
	if s.Verb != transcript.Send || s.Type.Does == codec.Shutdown {
		return false
	}
	var f codec.Frame
	if n, err := d.protocol.NewSession(codec.Options{}).Decode(codec.Peer, b, &f); err != nil || n != len(b) || f.Type != s.Type {
		return false
	}
	for i, a := range s.Args {
		if f := s.Type.FieldAt(i); f != nil && f.Only && !slices.Contains(f.Examples, string(a.Value)) {
			return false
		}
	}
	return true
}

// isBinary reports whether bytes begin a message whose end is known even if the message is illegal.
func (d *contractTraits) isBinary(b []byte) bool {
	return d.protocol.Binary != nil && d.protocol.Binary(b)
}

// changesQueue reports whether messages of a type have effects on a queue that outlast its jobs.
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

// changesQueues reports whether an input may have effects on a queue that outlast its jobs.
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

// listsAll reports whether a type requests a list of the objects of all users of the server.
func listsAll(t *codec.Type) bool {
	return t.Does == codec.Query && !t.Has(codec.Queue) && !t.Has(codec.JobID) && slices.ContainsFunc(t.Answers, func(a *codec.Type) bool { return len(a.Repeat) > 0 })
}

// mayWait reports whether the reply to messages of a type may come late.
func mayWait(t *codec.Type) bool { return t.Blocks == codec.Always || t.Blocks == codec.UnlessZero }

// blocks reports whether the reply to a request, or to a barrier after it, may come late. On a connection that has
// subscribed to pushed messages, replies have another form.
func (d *contractTraits) blocks(f *codec.Frame) bool {
	if t := d.protocol.Behavior(f); t != f.Type {
		return t.Blocks != codec.Never || t.Does == codec.Configure
	}
	return f.Blocks() || slices.ContainsFunc(f.Type.Answers, func(t *codec.Type) bool { return t.Push })
}

// unblocks reports whether a message ends the blocking of a request, in a protocol where replies have no order.
func (d *contractTraits) unblocks(f *codec.Frame) bool {
	switch f.Type.Does {
	case codec.Complete, codec.Fail, codec.Exception:
		return d.attached
	}
	return f.Type.Ordered
}

// isFromPeers reports whether a value that the server sends must be one that a peer has sent.
func (d *contractTraits) isFromPeers(f *codec.Field, v []byte) bool {
	switch f.Means {
	case codec.Queue, codec.UniqueID, codec.Payload, codec.OptionName:
		return !d.computes && string(v) != d.protocol.DefaultQueue
	}
	return false
}
