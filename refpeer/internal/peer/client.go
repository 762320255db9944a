package peer

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"jobwire/codec"
)

// Failure is the error of a task that failed although its connection still works.
type Failure struct {
	Code  string
	Words []string // of the answer, after "error"
}

func (f Failure) Error() string { return strings.Join(f.Words, " ") }

// FailedWith reports whether an error is a failure with one of the codes, or any failure if there are none.
func FailedWith(err error, codes ...string) bool {
	var f Failure
	return errors.As(err, &f) && (len(codes) == 0 || slices.Contains(codes, f.Code))
}

// works reports whether a connection still works after an error.
func works(err error) bool { return err == nil || FailedWith(err) }

// Call is a task that a client performs. It ends when the server has replied to all requests, and has reported the end
// of the job if the client waits for it.
type Call struct {
	Task
	Replies  map[string][]string // the arguments of the first reply of each type that reported success
	Events   []string            // the reports before the end of the job: the effect and the value of each
	Required bool                // a later request depends on its success; otherwise the connection does not work any more

	waiting  int  // requests without a reply
	open     bool // the server has accepted the job, and it has not ended
	attached bool // the client waits for the end of the job
	learned  bool // a reply has set the values of the job
	refused  error
	failed   error // takes precedence over successes
}

// Calls returns a call for each payload, with the other values of a task.
func Calls(t Task, payloads []string) []*Call {
	var all []*Call
	for _, p := range payloads {
		job := maps.Clone(t)
		job["PAYLOAD"] = p
		all = append(all, &Call{Task: job})
	}
	return all
}

// request is what a connection records about a request.
type request struct {
	call     *Call
	step     *Step
	attached bool // it submits a job whose end the server will report
}

func attached(m *codec.Message) bool {
	follows := get(m, codec.Attachment)
	return m.Type.Does == codec.Submit && !m.Type.Background && (follows == "" || follows == "0")
}

// ended reports whether the calls have ended.
func ended(calls ...*Call) bool {
	return !slices.ContainsFunc(calls, func(t *Call) bool { return t.waiting > 0 || t.open })
}

// err returns how a call has failed, or nil. Other refusals do not matter if a request has succeeded.
func (c *Call) err() error {
	if c.failed == nil && c.Replies == nil {
		return c.refused
	}
	return c.failed
}

// Send sends a sequence, without waiting for the replies.
func (c *Conn) Send(name string, call *Call) error {
	return c.send(c.program.Steps[name], call.Task, call)
}

// Request performs a sequence about a task.
func (c *Conn) Request(name string, t Task) (*Call, error) {
	call := &Call{Task: t}
	if !c.program.Sequential {
		return call, c.exchange(c.program.Steps[name], call)
	}
	return call, c.oneByOne(c.program.Steps[name], t)
}

// oneByOne performs the steps of a sequence one after the other, until one fails.
func (c *Conn) oneByOne(s Sequence, t Task) error {
	for i := range s {
		err := c.exchange(s[i:i+1], &Call{Task: t})
		if s[i].For != "" && FailedWith(err, s[i].For) && len(s[i].Cure) > 0 {
			if err = c.oneByOne(s[i].Cure, t); err == nil {
				err = c.exchange(s[i:i+1], &Call{Task: t})
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// exchange sends a sequence and waits for the end of the call.
func (c *Conn) exchange(s Sequence, call *Call) error {
	if err := c.send(s, call.Task, call); err != nil {
		return err
	}
	return c.finish(call)
}

// finish waits for the end of calls, and returns the first failure.
func (c *Conn) finish(calls ...*Call) error {
	if err := c.wait(func() bool { return ended(calls...) }); err != nil {
		return err
	}
	for _, t := range calls {
		if err := t.err(); err != nil {
			return err
		}
	}
	return nil
}

// wait handles messages of the server until ready returns true.
func (c *Conn) wait(ready func() bool) error {
	for !ready() {
		m, err := c.next()
		switch {
		case c.program.EOFEndsJob && IsDisconnect(err) && c.waiting.Len() == 0:
			c.Broken = true
			return nil
		case err == nil:
			err = c.handle(m)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// handle handles a message that a client receives. A message about a job without a request is a report, unless the job
// is unknown or has ended.
func (c *Conn) handle(m *codec.Message) error {
	if c.program.IgnoresErrors && m.Type.Does == codec.Refuse {
		return nil
	}
	if r, ok := c.waiting.Reply(m.Type); ok {
		return c.replied(&r, m)
	}
	switch m.Type.Does {
	case codec.Accept:
		return fmt.Errorf("%w: %s without a pending request", ErrProtocol, m.Type.Name)
	case codec.Refuse:
		if c.waiting.Len() == 0 { // otherwise, the refusal is the reply to a line that the server has not understood
			c.Broken = true // nothing says what the refusal is about
			return c.program.Refusal(m)
		}
	case codec.Data, codec.Warning, codec.Status:
		args := Texts(m)
		if i := m.Type.At(codec.JobID); i >= 0 {
			args = slices.Delete(args, i, i+1)
		}
		for _, t := range c.jobsOf(m) {
			if !c.program.Silent {
				t.Events = append(t.Events, m.Type.Does.String(), strings.Join(args[:min(2, len(args))], "/"))
			}
		}
	case codec.Complete, codec.Fail, codec.Exception:
		for _, t := range c.jobsOf(m) {
			t.open, t.Task["RESULT"] = false, get(m, codec.Payload)
			t.failed = cmp.Or(t.failed, outcome(m))
		}
		c.open = slices.DeleteFunc(c.open, func(t *Call) bool { return !t.open })
	}
	return nil
}

// jobsOf returns the calls whose job a message names. If it names none, the client waits for one job only.
func (c *Conn) jobsOf(m *codec.Message) []*Call {
	if c.program.MixesResults || !m.Type.Has(codec.JobID) {
		return c.open[:min(1, len(c.open)):1]
	}
	var all []*Call
	for _, t := range c.open {
		if t.Task["JOB_ID"] == get(m, codec.JobID) {
			all = append(all, t)
		}
	}
	return all
}

// outcome returns the failure that the end of a job reports, or nil.
func outcome(m *codec.Message) error {
	switch code := get(m, codec.Outcome); {
	case m.Type.Does == codec.Fail:
		return Failure{"failed", []string{"failed", "the job failed"}}
	case m.Type.Does == codec.Exception:
		return Failure{"exception", []string{"exception", get(m, codec.Payload)}}
	case code != "" && code != "0" && get(m, codec.Ended) != "0":
		return Failure{"failed", []string{"failed", code, get(m, codec.Payload)}}
	}
	return nil
}

// replied handles the reply to a request.
func (c *Conn) replied(r *codec.Request[request], m *codec.Message) error {
	t := r.Value.call
	t.waiting--
	if then := r.Value.step.Then; then != nil {
		t.failed = cmp.Or(t.failed, then(t.Task, m))
		return nil
	}
	if !succeeds(r.Type, m.Type) {
		refusal := c.program.Refusal(m)
		if t.Required {
			c.Broken = true
			return Failure{Words: refusal.Words} // its code is that of another request
		}
		if t.refused = cmp.Or(t.refused, error(refusal)); c.program.Protocol.IsGeneralError(m.Type) {
			t.failed = cmp.Or(t.failed, t.refused)
		}
		return nil
	}
	if t.Replies == nil {
		t.Replies = map[string][]string{}
	}
	if t.Replies[m.Type.Name] == nil {
		t.Replies[m.Type.Name] = Texts(m)
	}
	if !t.learned && m.Type.Has(codec.JobID) && (m.Type.Does == codec.Accept || m.Type.Has(codec.Payload)) {
		t.learned = true
		t.learn(m)
	}
	if m.Type.Does == codec.Accept && r.Value.attached {
		t.open, t.attached = true, true
		c.open = append(c.open, t)
		return c.Send("Created", t)
	}
	return nil
}

// succeeds reports whether a reply means that a request has succeeded.
func succeeds(request, reply *codec.Type) bool {
	switch reply.Does {
	case codec.Refuse, codec.NoJob, codec.Bury:
		return reply.Does == request.Does
	}
	return slices.Contains(request.Answers, reply)
}
