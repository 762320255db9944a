package fuzz

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"jobwire/codec"
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

// key tells findings apart: by what the oracle says, and the types that it takes. A hang is of what
// the server was busy with, and of whether somebody had left: what else was said differs from one
// conversation to the next.
func key(p *codec.Protocol, c *Conv, f *Fault) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s|%s|%s|%s|", f.Oracle, f.Rule, f.Law, blur(lastLine(f.Words)))
	if (f.Oracle == HangConn || f.Oracle == HangAll) && f.Step >= 0 && f.Step < len(c.Steps) {
		fmt.Fprintf(&b, "%s %v", family(p, &c.Steps[f.Step]), slices.ContainsFunc(c.Steps, func(s Step) bool { return slices.Contains(goings, s.Verb) }))
		return b.String()
	}
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

// family is what steps have in common that a server handles alike: the broken rule, or who may send
// a message that is about the same.
func family(p *codec.Protocol, s *Step) string {
	name := class(p, s)
	if f := argField(s.Type, 0); f != nil && name == s.Type.Name {
		return fmt.Sprint(s.Type.Req, " ", f.Name)
	}
	return name
}

// sizeClass tells a step that is long for a server from one that is short.
func sizeClass(s *Step) (n int) {
	longest := len(s.Bytes)
	for _, a := range s.Args {
		longest = max(longest, len(a.Value))
	}
	for _, bound := range []int{64, 512, 4096, 32 << 10} {
		if longest >= bound {
			n++
		}
	}
	return n
}

// closedLaw is what a model says of a connection that the server closed for no reason. Servers do that
// for many, which the message tells apart, and how long it is.
const closedLaw = "connection closed"

func lastLine(s string) string {
	lines := strings.Split(s, "\n")
	return lines[len(lines)-1]
}

// maxHabit is how often a rule or a law that is broken is told, by different conversations: most
// servers that break one do so throughout.
const maxHabit = 3

// habit is what findings have in common that are of the same cause most likely.
func habit(p *codec.Protocol, c *Conv, v *Fault) string {
	h := v.Oracle + "|" + string(v.Rule) + "|" + v.Law
	if v.Law == closedLaw && v.Step >= 0 && v.Step < len(c.Steps) {
		h += fmt.Sprint("|", class(p, &c.Steps[v.Step]), sizeClass(&c.Steps[v.Step]))
	}
	return h
}

// habitual reports whether a habit was told often enough. What hurts a server is told apart by
// what it takes.
func (f *Fuzzer) habitual(c *Conv, v *Fault) bool {
	most := maxHabit
	if v.Law == closedLaw {
		most = 1
	}
	return has([]string{Law, Framing, Disclosure, Memory, Descriptors, Processor}, v.Oracle) && f.habits[habit(f.cfg.Protocol, c, v)] >= most
}

// tell makes a finding of a fault and hands it on, unless it was told before.
func (f *Fuzzer) tell(c *Conv, v *Fault, shown, tried int) {
	k := key(f.cfg.Protocol, c, v)
	if f.known[k] || f.habitual(c, v) {
		f.again.Add(1)
		return
	}
	f.note(func() {
		f.known[k] = true
		f.habits[habit(f.cfg.Protocol, c, v)]++
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
