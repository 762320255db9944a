package triage

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"jobwire/codec"
	"jobwire/fuzz/exec"
	"jobwire/fuzz/input"
	"jobwire/fuzz/model"
)

// Severity classifies a fault by what any client can do to the server with it. The first severity is the most severe.
type Severity int

// The severities.
const (
	RemoteCrash        Severity = iota // the process of the server ends, or its memory is corrupted
	MemoryDisclosure                   // replies contain data of other clients or of the memory of the server
	DenialOfService                    // the server no longer replies to other clients
	LostJob                            // a job is not assigned, or its end is not reported
	ChangedJob                         // a job has other data than the client submitted
	DuplicateJob                       // a job is assigned, or its end is reported, once more than it should be
	RequestSmuggling                   // the server executes the data in a message as requests
	ResourceExhaustion                 // the server uses more and more memory, file descriptors or CPU time
	UndefinedBehavior                  // a sanitizer has reported undefined behavior, after which the server goes on
	ConnectionHang                     // the server no longer replies on the connection that sent the messages
	WrongAnswer                        // a reply or its absence breaks a rule that the specification requires
	// a reply differs from what the specification recommends, from an extension, or from jobwire's interpretation
	Cosmetic
)

var severities = []struct{ name, level string }{
	{"remote crash", "critical"}, {"memory disclosure", "critical"}, {"denial of service", "critical"},
	{"lost job", "high"}, {"changed job", "high"}, {"duplicate job", "high"},
	{"request smuggling", "high"},
	{"resource exhaustion", "high"}, {"undefined behavior", "medium"}, {"connection hang", "medium"},
	{"wrong answer", "medium"}, {"cosmetic", "low"},
}

// String returns the name, such as "remote crash".
func (s Severity) String() string { return severities[s].name }

// Level returns critical, high, medium or low.
func (s Severity) Level() string { return severities[s].level }

// oracles maps each oracle to the severity and the title of its faults.
var oracles = map[string]struct {
	severity Severity
	title    string
}{
	exec.Signal:      {RemoteCrash, "server crash"},
	exec.Sanitizer:   {RemoteCrash, "memory error reported by a sanitizer"},
	exec.Exit:        {RemoteCrash, "server exit"},
	exec.Disclosure:  {MemoryDisclosure, "disclosure of data that no client sent"},
	exec.HangAll:     {DenialOfService, "the server answers no client"},
	exec.Disturbed:   {DenialOfService, "the server disconnects other clients"},
	exec.Processor:   {ResourceExhaustion, "the server uses all time of a CPU core"},
	exec.Memory:      {ResourceExhaustion, "memory leak"},
	exec.LeakReport:  {ResourceExhaustion, "memory leak"},
	exec.Undefined:   {UndefinedBehavior, "undefined behavior"},
	exec.Descriptors: {ResourceExhaustion, "file descriptor leak"},
	exec.HangConn:    {ConnectionHang, "no reply to a request"},
	exec.Framing:     {WrongAnswer, "malformed reply"},
	exec.Law:         {WrongAnswer, "wrong reply"},
}

// FaultSeverity returns the severity that depends on the fault alone. Data that no peer has sent is a wrong answer,
// unless there is evidence that it comes from another client or from memory.
func FaultSeverity(f *exec.Fault) Severity {
	if f.Oracle == exec.Disclosure && !f.Proved {
		return WrongAnswer
	}
	return oracles[f.Oracle].severity
}

// Severity returns the severity of the finding about a server of the protocol p. It depends on what the fault does to
// jobs, and otherwise on the level of the broken rule.
func (fd *Finding) Severity(p *codec.Protocol) Severity {
	f := fd.Fault
	s := FaultSeverity(f)
	if fd.Input != nil && blocked(fd.Input, f) {
		return DenialOfService
	}
	if s != WrongAnswer {
		return s
	}
	r := p.Rule(f.Rule)
	switch {
	case f.Law == model.ChangedData:
		return ChangedJob
	case fd.Jobs < 0, fd.Input != nil && neverWoken(p, fd.Input, f):
		return LostJob
	case fd.Jobs > 0, fd.Input != nil && f.Law == closedLaw && hasJob(fd.Record, f):
		return DuplicateJob
	case f.Resync && f.Got != "":
		return RequestSmuggling
	case fd.Input != nil && forwards(p, fd.Input, f):
		return Cosmetic
	case r != nil && r.Level == codec.Should && f.Law == wrongContent: // a value is wrong
		return WrongAnswer
	case r != nil && slices.Contains([]codec.Level{codec.Should, codec.May, codec.Extension, codec.Interpretation}, r.Level):
		return Cosmetic
	}
	return s
}

// neverWoken reports whether the fault is that the server does not wake a worker that sleeps as all workers do, so that
// a job waits without a limit: the worker has not changed its registrations since, nor announced its sleep twice. Such
// workers soon ask for jobs again.
func neverWoken(p *codec.Protocol, in *input.Input, f *exec.Fault) bool {
	if f.Oracle != exec.Law || f.Got != "" || !expects(p, f, codec.Wake) {
		return false
	}
	asleep := false
	for i := range in.Steps {
		s := &in.Steps[i]
		if s.Conn != f.Conn || f.Step >= 0 && i > f.Step || s.Type == nil {
			continue
		}
		switch s.Type.Does {
		case codec.Sleep:
			if asleep {
				return false
			}
			asleep = true
		case codec.Register, codec.Unregister:
			if asleep {
				return false
			}
		case codec.Ask:
			asleep = false
		}
	}
	return asleep
}

// expects reports whether the fault is about an expected message with the effect.
func expects(p *codec.Protocol, f *exec.Fault, does codec.Effect) bool {
	name, _, _ := strings.Cut(strings.TrimPrefix(f.Text, "expected "), " ")
	t := p.TypeNamed(strings.TrimSuffix(name, ","))
	return t != nil && t.Does == does
}

// hasJob reports whether a worker on the connection of the fault has a job, which the server gives to another worker if
// it closes the connection.
func hasJob(r *exec.Record, f *exec.Fault) (has bool) {
	for i := 0; r != nil && i < len(r.Events); i++ {
		e := &r.Events[i]
		switch {
		case e.Conn != f.Conn:
		case e.From == codec.Peer && (slices.Contains(input.Leaves, e.Verb) || e.Type != nil && endsRun(e.Type)):
			has = false
		case e.From == codec.Server && e.Type != nil && e.Type.Does == codec.Assign:
			has = true
		}
	}
	return has
}

// endsRun reports whether a worker with a job no longer has it after it has sent a message of the type.
func endsRun(t *codec.Type) bool {
	return endsJob(t) || t.Does == codec.Delete || t.Does == codec.Release || t.Does == codec.Bury
}

// forwards reports whether the fault is only that the server sends an illegal value of a peer in a message of its own.
func forwards(p *codec.Protocol, in *input.Input, f *exec.Fault) bool {
	return f.Oracle == exec.Framing &&
		slices.ContainsFunc(behavior(p, in), func(a stepAction) bool { return slices.Contains(a.rules, f.Rule) })
}

// Impact returns one sentence that says what the finding means for users of a server of the protocol p.
func (fd *Finding) Impact(p *codec.Protocol) string {
	cause := fd.actions()
	switch fd.Severity(p) {
	case RemoteCrash:
		if !fd.Reproduced {
			return "The server process ended while clients sent messages."
		}
		return cause + " can end the server process, for all clients."
	case MemoryDisclosure:
		return "After " + lower(cause) + ", the server sends data of another client, or bytes from the memory of the server process."
	case DenialOfService:
		if fd.Fault.Oracle == exec.Disturbed {
			return cause + " can make the server close the connections of other clients, or stop answering them."
		}
		return cause + " can make the server stop answering all clients."
	case LostJob:
		return "After " + lower(cause) + ", the server does not assign a job, or does not report its end, where a correct server does."
	case ChangedJob:
		return "After " + lower(cause) + ", the server delivers a job with other data than the client submitted."
	case DuplicateJob:
		return "After " + lower(cause) + ", the server assigns a job again, or reports its end again, where a correct server does not."
	case RequestSmuggling:
		return cause + " can make the server execute the data in a message as requests, which may be data of others."
	case UndefinedBehavior:
		return cause + " can make the server do what its programming language does not define. The server goes on, but another build of it can crash."
	case ResourceExhaustion:
		switch fd.Fault.Oracle {
		case exec.Descriptors:
			return cause + ", repeated, can use up the file descriptors of the server: it keeps them open after all clients have disconnected."
		case exec.Processor:
			return cause + " can make the server use all time of a CPU core, even after all clients have disconnected."
		}
		return cause + ", repeated, can use up the memory of the machine: the server does not free it after all clients have disconnected."
	case ConnectionHang:
		return "After " + lower(cause) + ", the server does not answer on this connection any more."
	case Cosmetic:
		return "After " + lower(cause) + ", the server does not do what the specification recommends, or what jobwire assumes where the specification is silent."
	}
	return "After " + lower(cause) + ", the server does not do what the specification requires."
}

// actions returns the number of messages and connections in words, such as "3 messages on 2 connections".
func (fd *Finding) actions() string {
	if fd.Input == nil || len(fd.Input.Steps) == 0 {
		return "Messages of a client"
	}
	messages := 0
	for i := range fd.Input.Steps {
		if !slices.Contains(input.Leaves, fd.Input.Steps[i].Verb) {
			messages++
		}
	}
	plural := func(n int) string { return strings.Repeat("s", min(1, max(0, n-1))) }
	conns := fd.Input.Conns()
	return fmt.Sprintf("%d message%s on %d connection%s", messages, plural(messages), conns, plural(conns))
}

func lower(s string) string { return strings.ToLower(s[:1]) + s[1:] }

// extraJobs compares what the server with the fault sent about jobs with what a correct server sent: assignments, ends
// of jobs, and the records of jobs that a peer asked for. The result is negative if the server with the fault sent less
// on the connection of the fault, up to the step of the fault, and positive if it assigned a job, or reported an end,
// again.
func extraJobs(v *exec.Fault, correct, got *exec.Record) int {
	if v.Oracle != exec.Law || correct == nil || got == nil {
		return 0
	}
	count := func(r *exec.Record) (n, again int) {
		seen := map[string]bool{}
		for i := range r.Events {
			e := &r.Events[i]
			if e.From == codec.Peer && returnsJobs(e) {
				clear(seen) // the server may assign a job again
			}
			if e.From != codec.Server || e.Step > v.Step || !aboutJob(e.Type) {
				continue
			}
			if e.Conn == v.Conn {
				n++
			}
			if at := e.Type.At(codec.JobID); e.Type.Has(codec.JobID) && at < len(e.Args) && e.Type.Does != codec.Answer {
				job := fmt.Sprintf("%v %s", e.Type.Does, e.Args[at])
				if e.Type.Does != codec.Assign {
					job += fmt.Sprint(" ", e.Conn) // several clients may receive the end of one job
				}
				if seen[job] {
					again++
				}
				seen[job] = true
			}
		}
		return n, again
	}
	n, again := count(got)
	right, rightAgain := count(correct)
	if n < right {
		return n - right
	}
	return max(0, again-rightAgain)
}

// returnsJobs reports whether a worker gives a job back with the event, so that it may be assigned again.
func returnsJobs(e *exec.Event) bool {
	if slices.Contains(input.Leaves, e.Verb) {
		return true
	}
	return e.Type != nil && (e.Type.Does == codec.Release || e.Type.Does == codec.Bury || e.Type.Does == codec.Leave)
}

// aboutJob reports whether a message of the server gives a job to a peer, or its end or record.
func aboutJob(t *codec.Type) bool {
	if t == nil {
		return false
	}
	switch t.Does {
	case codec.Assign, codec.Complete, codec.Fail, codec.Exception:
		return true
	case codec.Answer:
		return t.Has(codec.JobID) && t.Has(codec.Payload)
	}
	return false
}

// Groups groups the findings about a server of the protocol p by cause. The most severe group comes first, and the most
// severe finding is the first of its group. Among equally severe findings, reproduced ones come first.
func Groups(p *codec.Protocol, all []*Finding) (groups [][]*Finding) {
	byCause := map[*Finding][]*Finding{}
	for _, fd := range all {
		first := cmp.Or(fd.Of, fd)
		byCause[first] = append(byCause[first], fd)
	}
	reproduced := map[bool]int{true: -1}
	order := func(a, b *Finding) int {
		return cmp.Or(cmp.Compare(a.Severity(p), b.Severity(p)),
			cmp.Compare(reproduced[a.Reproduced], reproduced[b.Reproduced]), cmp.Compare(a.Name, b.Name))
	}
	for _, group := range byCause {
		slices.SortFunc(group, order)
		groups = append(groups, group)
	}
	slices.SortFunc(groups, func(a, b []*Finding) int { return order(a[0], b[0]) })
	return groups
}
