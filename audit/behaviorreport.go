package audit

import (
	"fmt"
	"slices"
	"strings"

	"jobwire/audit/behavior"
	"jobwire/codec"
	"jobwire/internal/github"
	"jobwire/internal/verdict"
)

// stop records that the audit ends.
func (a *Auditor) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.behavior.Stop()
}

// task records that a driver is given the task of a step.
func (a *Auditor) task(s *Step) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.behavior.Task(!s.Batch)
	a.jobs.begin(s.Task)
}

// taskJobs follows the jobs that are created and performed during the tasks of a driver.
type taskJobs struct {
	task, queue string            // the present task, and the queue that it is about
	queues      map[string]string // by the ID of a job: the queue of the task that created it
	created     []string          // the IDs of the jobs that the server has created in the present task
	got         []string          // the IDs of the jobs that the server has assigned in the present task
	wrong       string            // what the driver did with a job of another queue, or ""
}

// begin records that the driver is given a task, whose second word is a queue if it creates or performs jobs.
func (k *taskJobs) begin(task string) {
	words := append(strings.Fields(task), "", "")
	queues := k.queues
	if queues == nil {
		queues = map[string]string{}
	}
	*k = taskJobs{task: words[0], queue: words[1], queues: queues}
}

// message records a message, which is about the job with the ID.
func (k *taskJobs) message(from codec.Side, t *codec.Type, id string) {
	switch {
	case !t.Has(codec.JobID):
	case from == codec.Server && (t.Does == codec.Accept || t.Does == codec.Bury):
		k.queues[id] = k.queue
		k.created = append(k.created, id)
	case t.Does == codec.Assign:
		k.got = append(k.got, id)
	case t.Does == codec.Delete && k.task == "work" && slices.Contains(k.got, id):
		if of := k.queues[id]; of != "" && of != k.queue {
			k.wrong = fmt.Sprintf("the driver took and deleted job %s of the queue %s, but its task is about the queue %s",
				id, of, k.queue)
		}
	}
}

// strayed returns what the driver did with a job of another queue than that of its task, or "".
func (a *Auditor) strayed() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.jobs.wrong
}

// newJob returns the ID of the only job that the server has created for the driver in the present task, or "".
func (a *Auditor) newJob() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.jobs.created) != 1 {
		return ""
	}
	return a.jobs.created[0]
}

// excuse removes the findings about jobs that the driver left, unless it completed all tasks and no fault was injected
// after which a task may fail: a driver that gives up a task may leave the job of this task.
func (r *run) excuse() {
	if r.verdict == verdict.Completed && !r.profile.Fails && !r.profile.Restarts {
		return
	}
	r.report.Behavior = slices.DeleteFunc(r.report.Behavior, func(f behavior.Finding) bool { return f.AboutJobs() })
}

// behaves adds the findings of a run.
func (o *Outcome) behaves(found []behavior.Finding) {
	for _, f := range found {
		k := slices.IndexFunc(o.Behavior, func(x behavior.Finding) bool { return x.Rule == f.Rule })
		if k < 0 {
			o.Behavior = append(o.Behavior, f)
		} else {
			o.Behavior[k].Count += f.Count
		}
	}
}

// observed returns what was observed, after the name of the client or worker if it is about one.
func observed(o *behavior.Observation) string {
	if o.Conn == 0 {
		return o.Detail
	}
	return fmt.Sprintf("%s %d: %s", o.Role, o.Conn, o.Detail)
}

// appendBehavior appends findings, each with the text of its rule and the first observation.
func appendBehavior(dst []byte, indent string, found []behavior.Finding) []byte {
	for i := range found {
		f, times := &found[i], ""
		if f.Count > 1 {
			times = fmt.Sprintf(", %d times", f.Count)
		}
		dst = fmt.Appendf(dst, "%srule %s (%s) not followed%s\n%s  %s\n\n%s  at %.3f s: %s\n\n", indent, f.Rule.ID,
			f.Rule.Level, times, indent, f.Rule.Text, indent, f.First.At.Seconds(), observed(&f.First))
	}
	return dst
}

// annotateBehavior adds annotations about findings. where begins their titles.
func annotateBehavior(out *github.Report, levels Levels, found []behavior.Finding, where string) {
	level := github.Warning
	if levels.contain(codec.Behavioral) {
		level = github.Error
	}
	for i := range found {
		f := &found[i]
		out.Add(level, fmt.Sprintf("%s: %s (%s)", where, f.Rule.ID, f.Rule.Level), f.Rule.Text,
			fmt.Sprintf("times: %d", f.Count), observed(&f.First))
	}
}

// jsonBehavior is a finding about behavior in a JSON report.
type jsonBehavior struct {
	Rule       codec.RuleID `json:"rule"`
	Level      codec.Level  `json:"level"`
	Count      int          `json:"count"`
	Text       string       `json:"text"`
	Connection int          `json:"connection"`
	Role       string       `json:"role,omitempty"`
	Seconds    float64      `json:"seconds"`
	Detail     string       `json:"detail"`
}

// behaviorJSON returns findings for a JSON report.
func behaviorJSON(found []behavior.Finding) []jsonBehavior {
	rows := []jsonBehavior{}
	for i := range found {
		f := &found[i]
		rows = append(rows, jsonBehavior{f.Rule.ID, f.Rule.Level, f.Count, f.Rule.Text, f.First.Conn, f.First.Role,
			f.First.At.Seconds(), f.First.Detail})
	}
	return rows
}
