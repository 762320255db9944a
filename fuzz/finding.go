package fuzz

import (
	"fmt"
	"hash/fnv"
	"strings"

	"jobwire/codec/transcript"
)

// Finding is a fault that was shown on fresh servers.
type Finding struct {
	Key   string // tells findings apart, from run to run
	Name  string // of its files
	Fault *Fault
	Conv  *Conv

	// Shown of Tried performances on fresh servers had it.
	Shown, Tried int

	Record *Record            // of the last of them
	Script *transcript.Script // nil if none can be written
	Text   []byte             // the script in line form

	// Plays says that whoever plays the script sees the fault: servers that have it do not
	// play it through, and the reference does.
	Plays bool
}

// key tells findings apart: by what the oracle says, and the types that it takes.
func key(c *Conv, f *Fault) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s|%s|%s|%s|", f.Oracle, f.Rule, f.Law, blur(lastLine(f.Words)))
	for i := range c.Steps {
		s := &c.Steps[i]
		if s.Type != nil {
			b.WriteString(s.Type.Name)
		} else {
			b.WriteString(s.Verb.String())
		}
		b.WriteByte(' ')
	}
	return b.String()
}

func lastLine(s string) string {
	lines := strings.Split(s, "\n")
	return lines[len(lines)-1]
}

// maxHabit is how often a rule or a law that is broken is told, by different conversations: most
// servers that break one do so throughout.
const maxHabit = 3

// habit is what findings have in common that are of the same cause most likely.
func habit(v *Fault) string { return v.Oracle + "|" + string(v.Rule) + "|" + v.Law }

// habitual reports whether a habit was told often enough. What hurts a server is told apart by
// what it takes.
func (f *Fuzzer) habitual(v *Fault) bool {
	return has([]string{Law, Framing, Disclosure, Memory, Descriptors, Processor}, v.Oracle) && f.habits[habit(v)] >= maxHabit
}

// tell makes a finding of a fault and hands it on, unless it was told before.
func (f *Fuzzer) tell(c *Conv, v *Fault, shown, tried int) {
	k := key(c, v)
	if f.known[k] || f.habitual(v) {
		f.again.Add(1)
		return
	}
	f.note(func() {
		f.known[k] = true
		f.habits[habit(v)]++
		f.stats.Findings++
	})
	h := fnv.New32a()
	h.Write([]byte(k))
	fd := &Finding{Key: k, Fault: v, Conv: c, Shown: shown, Tried: tried}
	fd.Name = fmt.Sprintf("%s-%s-%08x", f.cfg.Protocol.Name, v.Oracle, h.Sum32())
	f.describe(fd)
	if f.cfg.Found != nil {
		f.cfg.Found(fd)
	}
}
