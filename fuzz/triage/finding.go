package triage

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/fuzz/exec"
	"jobwire/fuzz/input"
	"jobwire/fuzz/transcribe"
)

// Finding is a failure that was reproduced on new servers, or a crash that was not reproduced.
type Finding struct {
	Key   string // identifies the failure in all runs: findings with the same key are duplicates
	Name  string // the beginning of the names of its files
	Fault *exec.Fault
	Input *input.Input
	Log   *input.Log // the inputs of the server until the fault was observed
	Of    *Finding   // the finding with the same cause that was found first; nil if this is the first
	Count int        // number of observations; known at the end of the run

	// The fault appeared in Shown of Tried executions on new servers.
	Shown, Tried int

	// Reproduced says that the fault appeared on new servers. If it is false, the server has crashed once, and Input
	// combines the last inputs before the crash. Inputs is the number of these inputs.
	Reproduced bool
	Inputs     int

	Record *exec.Record       // of the last execution
	Script *transcript.Script // nil if the finding cannot be expressed as a transcript
	Text   []byte             // the script in one-line notation

	// Plays says that the script fails on the server with the fault and passes on the reference server.
	Plays bool

	// FailsAt is the index of the step of Script that fails on the server, if Plays is set. It is -1 if all steps pass,
	// and the process of the server shows the fault.
	FailsAt int

	// Jobs is negative if the server with the fault does not assign a job or does not report its end, where a correct
	// server does, and positive if it does one of them again.
	Jobs int

	cause cause
}

// lastInputs is the number of inputs in the transcript of a crash that was not reproduced.
const lastInputs = 8

// newCrash returns and reports a finding for a crash that is not reproduced yet.
func (t *Triage) newCrash(candidate *Candidate, key string) *Finding {
	seen := *candidate.Fault
	seen.Conn, seen.Step = -1, -1
	all := candidate.Log.Last(lastInputs).Entries
	fd := &Finding{Key: key, Fault: &seen, Log: candidate.Log, Shown: 1, Tried: 1, Inputs: len(all)}
	if len(all) == 1 {
		fd.Input = all[0].Input.Clone()
	} else {
		fd.Input = input.TraitsOf(t.cfg.Protocol).Join(all)
	}
	if slices.Contains(t.cfg.KnownAs, fd.Key) {
		return fd
	}
	t.update(func(c *Counts) { c.Findings++ })
	t.write(fd)
	if t.cfg.Found != nil {
		t.cfg.Found(fd)
	}
	return fd
}

// write sets the name and the transcript of a finding without another execution.
func (t *Triage) write(fd *Finding) {
	fd.Name = nameOf(t.cfg.Protocol, fd)
	fd.Fault = withoutProbes(t.cfg.Barrier, fd.Input, fd.Fault)
	failure := transcribe.Failure{Name: fd.Name, Barrier: t.cfg.Barrier, Input: fd.Input, Fault: fd.Fault}
	fd.Script = failure.Script(transcribe.Forms[0])
	fd.Text = transcribe.Text(fd.Script)
}

// nameOf returns the name of a finding, which its files have, such as "gearman-signal-1a2b3c4d".
func nameOf(p *codec.Protocol, fd *Finding) string {
	h := fnv.New32a()
	h.Write([]byte(fd.Key))
	return fmt.Sprintf("%s-%s-%08x", p.Name, fd.Fault.Oracle, h.Sum32())
}

// withoutProbes returns a fault whose text does not mention the barriers, which the executor adds to the messages of an
// input. If the input has such a request itself, the text may be about that one and stays as it is.
func withoutProbes(b *exec.Barrier, in *input.Input, f *exec.Fault) *exec.Fault {
	if b == nil || in == nil || slices.ContainsFunc(in.Steps, func(s input.Step) bool {
		return s.Type != nil && slices.Contains(s.Type.Answers, b.Reply)
	}) {
		return f
	}
	clean := *f
	clean.Text = strings.ReplaceAll(f.Text, "reply to "+b.Message(nil).Type.Name+" ", "reply to a further request ")
	if wanted, got, ok := strings.Cut(strings.TrimPrefix(clean.Text, "expected "), ", got "); ok &&
		f.Law == "unexpected message" {
		all := slices.DeleteFunc(strings.Split(wanted, " or "), func(one string) bool {
			name, _, _ := strings.Cut(one, " ")
			return name == b.Reply.Name
		})
		clean.Text = "expected " + cmp.Or(strings.Join(all, " or "), "no message") + ", got " + got
	}
	return &clean
}
