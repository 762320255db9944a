package fuzz

import (
	"fmt"
	"hash/fnv"
	"slices"
)

// lastInputs is how many inputs are saved with a crash that was not reproduced: those that were running, or the last ones.
const lastInputs = 8

// signature returns what crashes with the same cause most likely have in common.
func signature(v *Fault) string { return v.Oracle + "|" + v.Law }

// observe notes a crash, which is a finding even if it is not reproduced.
func (f *Fuzzer) observe(v *Fault, inputs []*Input) {
	sign := signature(v)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.causes[sign] || slices.ContainsFunc(f.deaths, func(fd *Finding) bool { return signature(fd.Fault) == sign }) {
		return
	}
	seen := *v
	seen.Conn, seen.Step = -1, -1
	inputs = inputs[max(0, len(inputs)-lastInputs):]
	fd := &Finding{Key: "not reproduced|" + sign, Fault: &seen, Shown: 1, Tried: 1, Inputs: len(inputs)}
	if len(inputs) == 1 {
		fd.Input = inputs[0].clone()
	} else {
		fd.Input = traitsOf(f.cfg.Protocol).join(inputs)
	}
	f.deaths = append(f.deaths, fd)
}

// leftOver reports, at the end of the run, the crashes that were not reproduced and the candidates that were not examined.
func (f *Fuzzer) leftOver() {
	for _, fd := range f.deaths {
		if f.causes[signature(fd.Fault)] || f.known[fd.Key] {
			continue
		}
		f.note(func() { f.stats.Findings++ })
		f.write(fd)
		if f.cfg.Found != nil {
			f.cfg.Found(fd)
		}
	}
	for _, m := range f.triageQueue.candidates {
		f.note(func() { f.stats.Unexamined++ })
		if len(m.observations) == 0 || f.cfg.Candidate == nil {
			continue
		}
		s := m.observations[0]
		fd := &Finding{Key: m.key, Fault: explainedBy(s.fault, m.whole), Input: s.input, Inputs: 1}
		f.write(fd)
		f.cfg.Candidate(fd)
	}
}

// write names a finding that was not run again and writes its transcript.
func (f *Fuzzer) write(fd *Finding) {
	fd.Name = f.nameOf(fd)
	w := transcriptWriter{p: f.cfg.Protocol, d: traitsOf(f.cfg.Protocol), fd: fd, short: true}
	fd.Script = w.write()
	fd.Text = text(fd.Script)
}

// nameOf returns the name of a finding's files.
func (f *Fuzzer) nameOf(fd *Finding) string {
	h := fnv.New32a()
	h.Write([]byte(fd.Key))
	return fmt.Sprintf("%s-%s-%08x", f.cfg.Protocol.Name, fd.Fault.Oracle, h.Sum32())
}
