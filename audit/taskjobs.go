package audit

import (
	"fmt"
	"slices"
	"strings"

	"jobwire/codec"
)

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
