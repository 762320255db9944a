package fuzz

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"jobwire/codec"
	"jobwire/codec/transcript"
)

// Finding is a fault that was reproduced on new servers, or a crash that was not reproduced.
type Finding struct {
	Key   string // identifies the cause in all runs: findings with one key are one finding
	Name  string // of its files
	Fault *Fault
	Input *Input
	Log   *Log // what the server was sent until the fault was observed
	Count int  // how often it was observed; known at the end of the run

	// The fault appeared in Shown of Tried executions on new servers.
	Shown, Tried int

	// Reproduced says that the fault appeared on new servers. Otherwise the server crashed once, and Input joins the
	// Inputs inputs that ran last.
	Reproduced bool
	Inputs     int

	Record *Record            // of the last execution
	Script *transcript.Script // nil if it cannot be written
	Text   []byte             // the script in one-line notation

	// Plays says that the script fails on servers with the fault and passes on the reference server.
	Plays bool

	// LosesJob says that the server with the fault does not assign a job or does not report its end, and a correct server does.
	LosesJob bool

	keys map[string]bool // of its observations
}

// key identifies a finding. The stack alone identifies a crash that has one. The oracle and what the messages of the smallest
// input do, in any order, identify most other findings.
func key(p *codec.Protocol, c *Input, f *Fault) string {
	id := f.Oracle + "|" + string(f.Rule) + "|" + f.Law
	if len(f.Stack) > 0 {
		return id
	}
	last := f.Step >= 0 && f.Step < len(c.Steps)
	switch {
	case f.Oracle == Framing || f.Oracle == HangConn && f.Rule != "":
		return id // the rule, and the field of a reply, are the cause
	case f.Oracle == HangConn || f.Oracle == HangAll:
		// The first message that the server did not answer counts, even if it is illegal.
		if last {
			return fmt.Sprintf("%s|%s %v", f.Oracle, family(p, &c.Steps[f.Step]), slices.ContainsFunc(c.Steps, func(s Step) bool { return slices.Contains(leaves, s.Verb) }))
		}
	case f.Refusal != "" && last:
		// The server rejects for one reason what senders of one role send about one kind of object.
		return fmt.Sprintf("%s|%s|%s", id, f.Refusal, family(p, &c.Steps[f.Step]))
	}
	does := behavior(p, c)
	if f.Law == closedLaw && last {
		at := f.Step
		for at > 0 && (does[at] == "" || c.Steps[at].Conn != c.Steps[f.Step].Conn) {
			at-- // the bytes of the step belong to an earlier message
		}
		if n := sizeClass(&c.Steps[at]); n > 0 && c.Steps[at].Verb == transcript.Send {
			return fmt.Sprintf("%s|%d", id, n)
		}
		return id + "|" + does[at]
	}
	if f.Oracle == Disclosure {
		id = f.Oracle // one cause shows in several fields
	}
	slices.Sort(does)
	return id + strings.ReplaceAll("|"+strings.Join(slices.Compact(does), " "), "| ", "|")
}

// behavior returns what each step of an input does: the broken rule, the effect of the message on a job, or the action. Raw bytes
// may be the beginning of a message that the bytes of later steps complete; "" stands for these steps, and for those after bytes
// of which no server can tell where they end.
func behavior(p *codec.Protocol, c *Input) []string {
	does := make([]string, len(c.Steps))
	type stream struct {
		session codec.Session
		pending []byte
		lost    bool
	}
	streams := make([]stream, c.conns())
	for i := range c.Steps {
		s := &c.Steps[i]
		k := &streams[s.Conn]
		if slices.Contains(leaves, s.Verb) {
			does[i] = "leaves"
			*k = stream{}
			continue
		}
		if s.Verb != transcript.Raw && len(k.pending) == 0 && !k.lost {
			does[i] = effect(p, s)
			continue
		}
		if k.session == nil {
			k.session = p.NewSession(codec.Options{})
		}
		k.pending = append(k.pending, plainBytes(p, s)...)
		for len(k.pending) > 0 && !k.lost {
			var f codec.Frame
			n, err := k.session.Decode(codec.Peer, k.pending, &f)
			if err == codec.ErrShort {
				break
			}
			e, bad := err.(*codec.Error)
			if bad && does[i] == "" {
				does[i] = string(e.Rule)
			} else if does[i] == "" && f.Type != nil {
				does[i] = f.Type.Does.String()
			}
			k.lost = bad && e.Fatal || n > len(k.pending)
			k.pending = k.pending[min(n, len(k.pending)):]
		}
	}
	return does
}

// plainBytes returns the bytes of a step, as far as they can be encoded.
func plainBytes(p *codec.Protocol, s *Step) []byte {
	if s.Type == nil {
		return s.Bytes
	}
	m := codec.Message{Type: s.Type, CRLF: s.CRLF}
	for _, a := range s.Args {
		m.Args = append(m.Args, a.Value)
	}
	b, _ := p.NewSession(codec.Options{WaiveAll: true}).Append(nil, codec.Peer, &m)
	return b
}

// effect returns what a step does: the broken rule, the effect of the message on a job, or the action.
func effect(p *codec.Protocol, s *Step) string {
	if slices.Contains(leaves, s.Verb) {
		return "leaves"
	}
	name := class(p, s)
	if s.Type != nil && name == s.Type.Name {
		return s.Type.Does.String()
	}
	return name
}

// family returns what steps have in common that a server handles alike: the sender and the first field, or the broken rule of
// bytes that are no message.
func family(p *codec.Protocol, s *Step) string {
	if f := s.Type.FieldAt(0); f != nil {
		return fmt.Sprint(s.Type.Req, " ", f.Name)
	}
	return class(p, s)
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

// closedLaw is the law that a server breaks if it closes a connection without a reason. The message and its size
// identify such findings.
const closedLaw = "unexpected disconnect"

// lastInputs is how many inputs the transcript of a crash has that was not reproduced.
const lastInputs = 8

// crash reports a crash with a key at once, because it is a finding even if it cannot be reproduced.
func (f *Fuzzer) crash(m *candidate, key string) *Finding {
	seen := *m.fault
	seen.Conn, seen.Step = -1, -1
	all := inputs(m.log.Entries[max(0, len(m.log.Entries)-lastInputs):])
	fd := &Finding{Key: key, Fault: &seen, Log: m.log, Count: 1, Shown: 1, Tried: 1, Inputs: len(all), keys: map[string]bool{m.key: true}}
	if len(all) == 1 {
		fd.Input = all[0].clone()
	} else {
		fd.Input = traitsOf(f.cfg.Protocol).join(all)
	}
	if slices.Contains(f.cfg.KnownAs, fd.Key) {
		return fd
	}
	f.note(func(s *Stats) { s.Findings++ })
	f.write(fd)
	if f.cfg.Found != nil {
		f.cfg.Found(fd)
	}
	return fd
}

// write names a finding that was not run again and writes its transcript.
func (f *Fuzzer) write(fd *Finding) {
	fd.Name = nameOf(f.cfg.Protocol, fd)
	w := transcriptWriter{p: f.cfg.Protocol, d: traitsOf(f.cfg.Protocol), fd: fd, short: true}
	fd.Script = w.write()
	fd.Text = text(fd.Script)
}

// nameOf returns the name of a finding's files.
func nameOf(p *codec.Protocol, fd *Finding) string {
	h := fnv.New32a()
	h.Write([]byte(fd.Key))
	return fmt.Sprintf("%s-%s-%08x", p.Name, fd.Fault.Oracle, h.Sum32())
}
