package fuzz

import (
	"fmt"
	"slices"
	"strings"

	"jobwire/codec"
	"jobwire/codec/transcript"
)

// Finding is a fault that was reproduced on new servers, or a crash that was not reproduced.
type Finding struct {
	Key   string // identifies the finding in all runs
	Name  string // of its files
	Fault *Fault
	Input *Input

	// The fault appeared in Shown of Tried executions on new servers.
	Shown, Tried int

	// Reproduced says that the fault appeared on new servers. Otherwise the server crashed once, and Input joins the
	// Inputs inputs that were running, or the last ones.
	Reproduced bool
	Inputs     int

	Record *Record            // of the last execution
	Script *transcript.Script // nil if it cannot be written
	Text   []byte             // the script in one-line notation

	// Plays says that the script fails on servers with the fault and passes on the reference server.
	Plays bool
}

// key identifies a finding by its oracle and the message types of its input. A hang is identified by the message that
// caused it, and by whether a peer had disconnected.
func key(p *codec.Protocol, c *Input, f *Fault) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s|%s|%s|%s|", f.Oracle, f.Rule, f.Law, normalize(lastLine(f.Output)))
	if (f.Oracle == HangConn || f.Oracle == HangAll) && f.Step >= 0 && f.Step < len(c.Steps) {
		fmt.Fprintf(&b, "%s %v", family(p, &c.Steps[f.Step]), slices.ContainsFunc(c.Steps, func(s Step) bool { return slices.Contains(leaves, s.Verb) }))
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

// family returns what steps have in common that a server handles alike: the broken rule, or the sender and the first field.
func family(p *codec.Protocol, s *Step) string {
	name := class(p, s)
	if f := s.Type.FieldAt(0); f != nil && name == s.Type.Name {
		return fmt.Sprint(s.Type.Req, " ", f.Name)
	}
	return name
}

// sizeClass returns the size class of a step.
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

// closedLaw is the law that a server breaks if it closes a connection without a reason. The message and its size tell
// such findings apart.
const closedLaw = "unexpected disconnect"

func lastLine(s string) string {
	lines := strings.Split(s, "\n")
	return lines[len(lines)-1]
}

// bucketSize is how many findings about one rule or law are reported. Most servers that break a rule break it often.
const bucketSize = 3

// bucket returns what findings with the same cause most likely have in common.
func bucket(p *codec.Protocol, c *Input, v *Fault) string {
	h := v.Oracle + "|" + string(v.Rule) + "|" + v.Law
	if v.Law == closedLaw && v.Step >= 0 && v.Step < len(c.Steps) {
		h += fmt.Sprint("|", class(p, &c.Steps[v.Step]), sizeClass(&c.Steps[v.Step]))
	}
	return h
}

// bucketFull reports whether enough findings of the bucket were reported. Crashes and hangs have no such limit.
func (f *Fuzzer) bucketFull(c *Input, v *Fault) bool {
	most := bucketSize
	if v.Law == closedLaw {
		most = 1
	}
	return slices.Contains([]string{Law, Framing, Disclosure, Memory, Descriptors, Processor}, v.Oracle) && f.buckets[bucket(f.cfg.Protocol, c, v)] >= most
}

// tell makes a finding of a fault and reports it, unless it is a duplicate.
func (f *Fuzzer) tell(c *Input, v *Fault, shown, tried int) {
	k := key(f.cfg.Protocol, c, v)
	f.note(func() { f.causes[signature(v)] = true })
	if f.known[k] || f.bucketFull(c, v) {
		f.again.Add(1)
		return
	}
	f.note(func() {
		f.known[k] = true
		f.buckets[bucket(f.cfg.Protocol, c, v)]++
		f.stats.Findings++
	})
	fd := &Finding{Key: k, Fault: v, Input: c, Shown: shown, Tried: tried, Reproduced: true, Inputs: 1}
	fd.Name = f.nameOf(fd)
	f.describe(fd)
	if f.cfg.Found != nil {
		f.cfg.Found(fd)
	}
}
