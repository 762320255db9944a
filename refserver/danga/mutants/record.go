package mutants

import (
	"slices"
	"strings"

	"jobwire/refserver/inject"
)

// Job types as they are in packets.
const (
	sync  = "\x00"
	async = "\x01"
	throw = "\x02"
)

var record = inject.Record{
	Received: inject.Updates{
		"worker_connect": func(m *message) {
			m.Peer.Can, m.Peer.Goodbye, m.Job = slices.Clone(m.Args), false, m.Peer.Job
			m.Peer.Announced = append(m.Peer.Announced, m.Args...)
		},
		"worker_disconnect": func(m *message) {
			p := m.Peer
			m.Job = p.Job
			loseJob(p)
			p.Can, p.Goodbye, p.Asleep = nil, true, false
		},
		"worker_sleep":   func(m *message) { m.Job, m.Peer.Asleep = m.Peer.Job, m.Peer.Job == nil },
		"job_create_req": create,
		"job_assign_req": func(m *message) {
			m.Job, m.Peer.Asleep, m.Peer.Idle = m.Peer.Job, false, false
		},
		"job_status_announce": func(m *message) {
			if m.Job = m.Peer.Job; m.Job != nil {
				m.Job.Reports++
				if m.Job.Progress = strings.Join(m.Args, ""); m.Job.Reports == 1 {
					m.Job.First = m.Job.Progress
				}
			}
		},
		"job_complete_announce": func(m *message) {
			p, j := m.Peer, m.Peer.Job
			if m.Job = j; j != nil {
				j.Ended, j.Code, j.Result, j.Worker = m.Name, m.Args[0][0], m.Args[1], nil
				p.Done, p.Job = append(p.Done, j), nil
			}
		},
		"job_status_req job_complete_req": func(m *message) { m.Job = m.ByID(m.Args[0]) },
	}.Update(),
	Sent: inject.Updates{
		"job_create_res": func(m *message) {
			if len(m.Args) > 0 && m.Args[0] != "" && m.Job != nil {
				m.Job.ID = m.Args[0]
			}
		},
		"job_assign_res": func(m *message) {
			p := m.Peer
			if j := m.Find(func(j *job) bool { return j.Queued() && j.Queue == m.Args[0] && j.Data == m.Args[1] }); j != nil {
				j.Worker, p.Job = p, j
				j.Assigned++
			}
			p.Refused = 0
		},
		"noop": func(m *message) {
			if p := m.Peer; p.Asleep {
				p.Asleep, p.Idle = false, true
				p.Woken++
			} else {
				p.Refused++
			}
		},
	}.Update(),
	Ended: func(p *peer) {
		for _, j := range p.Created {
			j.Clients = slices.DeleteFunc(j.Clients, func(c *peer) bool { return c == p })
			j.Orphan = j.Orphan || j.Creator == p && j.Worker != nil
		}
	},
	Left: loseJob,
}

// create records a job, or a duplicate of one.
func create(m *message) {
	a := m.Args
	j := m.Find(func(j *job) bool { return a[1] != "" && j.Ended == "" && j.Queue == a[0] && j.Unique == a[1] })
	if j == nil {
		j = &job{Queue: a[0], Unique: a[1], Type: a[3], Creator: m.Peer, Data: a[4]}
		m.Jobs = append(m.Jobs, j)
	} else {
		j.Dups++
	}
	j.LastData = a[4]
	m.Peer.Created = append(m.Peer.Created, j)
	if a[3] == sync {
		j.Clients = append(j.Clients, m.Peer)
	}
	m.Job = j
}

// loseJob records that a worker no longer has its job.
func loseJob(p *peer) {
	if j := p.Job; j != nil {
		j.Worker, p.Job = nil, nil
		j.Lost++
	}
}
