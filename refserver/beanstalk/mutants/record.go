package mutants

import (
	"cmp"

	"jobwire/refserver/inject"
)

var record = inject.Record{
	Received: func(m *message) {
		m.Peer.Tube = cmp.Or(m.Peer.Tube, "default")
		m.Job = m.ByID(m.Arg(0))
	},
	Sent: func(m *message) {
		if m.Job = m.ByID(m.Arg(0)); len(m.Args) == 0 || m.Name == "stats-reply" {
			m.Job = m.ByID(m.Peer.Request.Arg(0))
		}
		sent(m)
	},
	Left: func(p *peer) {
		for _, j := range p.Jobs() {
			j.Worker, j.State = nil, "ready"
		}
	},
}

// sent records the information about jobs in replies.
var sent = inject.Updates{
	"USING": func(m *message) { m.Peer.Tube = m.Args[0] },
	"INSERTED": func(m *message) {
		put := m.Peer.Request.Args
		j := &job{ID: m.Args[0], Args: put, Data: put[3], Queue: m.Peer.Tube, Creator: m.Peer, State: state(put[1])}
		m.Jobs = append(m.Jobs, j)
	},
	"RESERVED": func(m *message) {
		if j := m.Job; j != nil {
			moved(m, "reserved")
			j.Worker = m.Peer
			j.Assigned++
		}
	},
	"RELEASED":   func(m *message) { moved(m, state(m.Peer.Request.Arg(2))) },
	"BURIED":     func(m *message) { moved(m, "buried") },
	"KICKED_JOB": func(m *message) { moved(m, "ready") },
	"DELETED":    func(m *message) { moved(m, "deleted") },
}.Update()

// state returns the state of a job with the delay.
func state(delay string) string {
	if delay != "0" {
		return "delayed"
	}
	return "ready"
}

// moved records the new state of a job that no worker has any more.
func moved(m *message, state string) {
	if j := m.Job; j != nil {
		j.Worker, j.Before, j.State, j.Last = nil, j.State, state, m.Name
	}
}
