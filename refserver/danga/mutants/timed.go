package mutants

import (
	"encoding/binary"
	"slices"
	"time"

	"jobwire/refserver/inject"
)

// timed are faults in which the server does something later without a message.
var timed = []mutantSpec{
	{Name: "job-follows-noop", About: "If a worker does not send job_assign_req soon after the server has woken it, the server sends it the job anyway.",
		KilledBy: "sleep.once sleep.no-push", Edit: inject.Out("noop", inject.CauseIs("job_create_req"), func(m *message) {
			m.Peer.Later(55*time.Millisecond, func() {
				if m.Peer.Idle && m.Job.Queued() {
					m.Peer.Send("job_assign_res", m.Job.Queue, m.Job.Data)
				}
			})
		})},
	{Name: "first-job-closes", About: "The server soon closes the connection of an application that has received its only result.",
		KilledBy: "transport.persistent retry.not-after-result complete.once", Edit: inject.On("job_complete_announce", nil, func(m *message) {
			m.Pass()
			for _, p := range m.Peers {
				if m.Job != nil && slices.Contains(m.Job.Clients, p) && len(p.Created) == 1 {
					p.Later(50*time.Millisecond, func() {
						if len(p.Created) == 1 {
							p.Close()
						}
					})
				}
			}
		})},
	{Name: "lonely-waiter-gets-status", About: "The server sends a job_status_res without progress to a waiting application while no worker is connected.",
		KilledBy: "create.sync", Edit: ifAlone(sync, "job_status_res", number(0), number(1), number(0))},
	{Name: "lonely-async-gets-result", About: "The server sends an incomplete job_complete_res to the application of a type 1 job while no worker is connected.",
		KilledBy: "create.async", Edit: ifAlone(async, "job_complete_res", number(0), "\x00", "")},
	{Name: "lonely-thrown-away-answered-twice", About: "The server sends job_create_res twice for a type 2 job while no worker is connected.",
		KilledBy: "create.thrown-away", Edit: ifAlone(throw, "job_create_res")},
}

// ifAlone sends an application a message after the reply to its only job of a type, if no other peer
// ever connected.
func ifAlone(typ string, name string, values ...string) inject.Edit {
	return inject.On("job_create_req", nil, func(m *message) {
		m.Pass()
		if m.Job.Type != typ || m.Job.Dups > 0 || m.Opened > 1 {
			return
		}
		m.Peer.Later(40*time.Millisecond, func() {
			if m.Opened == 1 && len(m.Peer.Created) == 1 && m.Peer.Last() == "job_create_req" {
				m.Peer.Send(name, values...)
			}
		})
	})
}

func number(n uint32) string { return string(binary.BigEndian.AppendUint32(nil, n)) }
