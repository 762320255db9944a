package triage

import (
	"bytes"
	"slices"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/fuzz/exec"
	"jobwire/fuzz/input"
)

// marker is the data that another client sends before an input, to test whether the server discloses it.
const marker = "disclosed.marker"

// disclosureOf returns the fault v as a disclosure if there is evidence that its foreign data is one, and otherwise v.
func (e *examiner) disclosureOf(in *input.Input, v *exec.Fault) *exec.Fault {
	if v.Unsent.Data == nil || !e.discloses(in, v) {
		return v
	}
	proved := *v
	proved.Oracle, proved.Rule, proved.Law, proved.Text, proved.Proved = exec.Disclosure, "", v.Unsent.Does, v.Unsent.Text, true
	return &proved
}

// discloses reports whether there is evidence that the foreign data of a fault comes from another client or from the
// memory of the server: it differs between newly started servers that receive the same input, or it is what another
// client sent before. If there is none, for example because the server always sends the same text, the reply is wrong,
// but discloses nothing.
func (e *examiner) discloses(in *input.Input, v *exec.Fault) bool {
	test := e.replay.test(v)
	for range minReproductions {
		if e.cfg.Fixed || v.Unsent.Barrier {
			break // the data may differ for another reason, such as what the server received before
		}
		if got := test(in); v.Same(got) && got.Unsent.Data != nil && !bytes.Equal(got.Unsent.Data, v.Unsent.Data) {
			return true
		}
	}
	return e.replay.revealsOther(in)
}

// revealsOther reports whether an input makes a server send data that another client sent before.
func (l *replayer) revealsOther(in *input.Input) bool {
	l.used = true
	if l.ready() != nil {
		return false
	}
	defer func() { l.used = true }()
	prefixes := [2]string{input.PrefixOf('A', 1), input.PrefixOf('A', 2)}
	if l.cfg.Fixed {
		prefixes = [2]string{l.triage.run.Prefix(), l.triage.run.Prefix()}
	}
	l.x.Ping()
	l.x.Execute(marked(in), prefixes[0])
	nonces := l.x.Nonces()
	f := l.x.Execute(in, prefixes[1]).Fault
	if f == nil || f.Unsent.Data == nil {
		return false
	}
	isData := func(nonce []byte) bool { return bytes.Equal(f.Unsent.Data, nonce) }
	return slices.ContainsFunc(nonces, isData) || bytes.Contains(f.Unsent.Data, []byte(marker))
}

// marked returns a copy of an input whose payloads and unique IDs are the marker.
func marked(in *input.Input) *input.Input {
	in = in.Clone()
	in.Steps = slices.DeleteFunc(in.Steps, func(s input.Step) bool { return s.Verb == transcript.Raw })
	for i := range in.Steps {
		for n := range in.Steps[i].Args {
			if f := in.Steps[i].Type.FieldAt(n); f != nil && (f.Means == codec.Payload || f.Means == codec.UniqueID) {
				in.Steps[i].Args[n] = input.Arg{Value: []byte(marker)}
			}
		}
	}
	return in
}
