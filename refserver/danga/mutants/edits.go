package mutants

import (
	"encoding/binary"

	"jobwire/refserver/inject"
)

// answer is a condition: the message is a reply to a request about a job.
func answer(m *message) bool { return m.Cause == "job_status_req" || m.Cause == "job_complete_req" }

// incomplete reports a finished job as unfinished.
func incomplete(when inject.When) inject.Edit {
	return inject.Replace("job_complete_res", func(m *message) bool {
		return answer(m) && m.Job != nil && m.Job.Ended != "" && when(m)
	}, "job_complete_res", number(0), "\x00", "")
}

// assignsInstead assigns a worker a job that it should not get, in place of noop.
func assignsInstead(when inject.When, which func(p *peer, j *job) bool) inject.Edit {
	return inject.Out("noop", func(m *message) bool { return m.Cause == "job_assign_req" && when(m) }, func(m *message) {
		if j := m.Find(func(j *job) bool { return which(m.Peer, j) }); j != nil {
			m.Become("job_assign_res", j.Queue, j.Data)
		}
	})
}

// consume makes the machine forget the first job of a name. p, which is disconnecting, does it.
func consume(p *peer, name string) {
	p.GiveSilently("worker_connect", name)
	p.GiveSilently("job_assign_req")
	p.GiveSilently("job_complete_announce", "\x00", "")
}

// toWaiting sends a message to the applications that wait for a job.
func toWaiting(j *job, name string, args ...string) {
	for _, c := range j.Clients {
		c.Send(name, args...)
	}
}

func number(n uint32) string { return string(binary.BigEndian.AppendUint32(nil, n)) }

func numberOf(v string) uint32 { return binary.BigEndian.Uint32([]byte(v)) }

// unknown is the time remaining if it is unknown.
var unknown = number(1<<32 - 1)

// progress returns the three numbers of a report of progress.
func progress(v string) []string { return []string{v[:4], v[4:8], v[8:]} }
