package mutants

import (
	"slices"
	"strings"

	"jobwire/refserver/inject"
)

// Sets of message types.
const (
	grabs       = "GRAB_JOB GRAB_JOB_UNIQ GRAB_JOB_ALL"
	assignments = "JOB_ASSIGN JOB_ASSIGN_UNIQ JOB_ASSIGN_ALL"
	results     = "WORK_COMPLETE WORK_FAIL WORK_EXCEPTION"
)

func submission(typ string) bool { return strings.HasPrefix(typ, "SUBMIT_") }

// detached reports whether jobs that are submitted with the type have no client that waits.
func detached(typ string) bool {
	return strings.HasSuffix(typ, "_BG") || strings.HasSuffix(typ, "_BACKGROUND") || typ == "SUBMIT_JOB_EPOCH" ||
		typ == "SUBMIT_JOB_SCHED"
}

var record = inject.Record{
	Received: func(m *message) { m.Job = m.ByID(m.Arg(0)) },
	Passing: inject.Updates{
		"CAN_DO CAN_DO_TIMEOUT": func(m *message) {
			p := m.Peer
			p.Announced = append(p.Announced, m.Args[0])
			if !p.Does(m.Args[0]) {
				p.Can = append(p.Can, m.Args[0])
			}
		},
		"CANT_DO": func(m *message) {
			m.Peer.Can = slices.DeleteFunc(m.Peer.Can, func(fn string) bool { return fn == m.Args[0] })
		},
		"RESET_ABILITIES": func(m *message) { m.Peer.Can = nil },
		"PRE_SLEEP":       func(m *message) { m.Peer.Asleep, m.Peer.Woken = true, 0 },
		grabs:             func(m *message) { m.Peer.Asleep, m.Peer.Woken = false, 0 },
		"OPTION_REQ":      func(m *message) { m.Peer.Exceptions = m.Peer.Exceptions || m.Args[0] == "exceptions" },
	}.Update(),
	Passed: inject.Updates{
		results: func(m *message) {
			if j := m.ByID(m.Args[0]); j != nil && j.Worker == m.Peer && j.Ended == "" {
				j.Ended = m.Name
			}
		},
	}.Update(),
	Sent: func(m *message) {
		m.Job = m.ByID(m.Arg(0))
		sent(m)
	},
	Left: inject.Release,
}

var sent = inject.Updates{
	"JOB_CREATED": created,
	assignments: func(m *message) {
		if m.Job != nil {
			m.Job.Worker = m.Peer
			m.Job.Assigned++
		}
	},
	"NOOP": func(m *message) { m.Peer.Woken++ },
	"WORK_FAIL": func(m *message) {
		if m.Job != nil && m.Cause == inject.Time {
			m.Job.Ended = "timeout"
		}
	},
}.Update()

// created records a job, or a client that waits for one.
func created(m *message) {
	r := m.Request
	if r == nil || !submission(r.Name) {
		return
	}
	if m.Job == nil {
		m.Job = &job{
			ID: m.Args[0], Type: r.Name, Creator: m.Peer,
			Queue: r.Args[0], Unique: r.Args[1], Data: r.Args[len(r.Args)-1],
		}
		m.Jobs = append(m.Jobs, m.Job)
	}
	if !detached(r.Name) {
		m.Job.Clients = append(m.Job.Clients, m.Peer)
	}
}
