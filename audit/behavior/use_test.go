package behavior_test

import (
	"strings"
	"testing"
	"time"

	"jobwire/audit/behavior"
	"jobwire/codec"
	"jobwire/codec/gearman"
)

// TestUse checks what is reported about samples of a program's processes.
func TestUse(t *testing.T) {
	const interval = 200 * time.Millisecond
	busy := behavior.Sample{Ran: interval * 9 / 10, System: interval / 8}
	starved := behavior.Sample{Ran: interval / 4, System: interval / 8, Waited: interval * 3 / 4}
	for _, tt := range []struct {
		name, want string
		do         func(m *behavior.Monitor, sample func(n int, s behavior.Sample))
	}{
		{"polls while it waits", "processor", func(m *behavior.Monitor, sample func(int, behavior.Sample)) {
			waits(m)
			sample(20, busy)
		}},
		{"polls on a busy machine", "processor", func(m *behavior.Monitor, sample func(int, behavior.Sample)) {
			waits(m)
			sample(40, starved)
		}},
		{"polls while a message is incomplete", "processor", func(m *behavior.Monitor, sample func(int, behavior.Sample)) {
			waits(m)
			s := busy
			s.Pending = 100
			sample(20, s)
		}},
		{"polls after the server is gone", "processor", func(m *behavior.Monitor, sample func(int, behavior.Sample)) {
			waits(m)
			m.End(1, codec.Server, true, 0)
			sample(20, busy)
		}},
		{"needs more and more memory", "memory", func(m *behavior.Monitor, sample func(int, behavior.Sample)) {
			waits(m)
			for i := range 20 {
				sample(1, behavior.Sample{Resident: int64(i) << 23})
			}
		}},
		{"leaves descriptors", "descriptors", func(m *behavior.Monitor, sample func(int, behavior.Sample)) {
			for i := range 300 {
				m.Open(i, 0)
				m.End(i, codec.Peer, true, 0)
				sample(1, behavior.Sample{Descriptors: i, Threads: 4})
			}
		}},

		{"computes while it waits", "", func(m *behavior.Monitor, sample func(int, behavior.Sample)) {
			waits(m)
			sample(20, behavior.Sample{Ran: interval})
		}},
		{"waits for a processor on a busy machine", "", func(m *behavior.Monitor, sample func(int, behavior.Sample)) {
			waits(m)
			sample(100, behavior.Sample{Ran: interval / 50, System: interval / 100, Waited: interval})
		}},
		{"computes for a second on a busy machine", "", func(m *behavior.Monitor, sample func(int, behavior.Sample)) {
			waits(m)
			sample(20, starved)
			sample(100, behavior.Sample{})
		}},
		{"has two processes on a busy machine", "", func(m *behavior.Monitor, sample func(int, behavior.Sample)) {
			waits(m)
			for i := range 200 {
				s := starved
				s.Process = i / 10
				sample(1, s)
			}
		}},
		{"had waited for long before", "", func(m *behavior.Monitor, sample func(int, behavior.Sample)) {
			waits(m)
			sample(4, behavior.Sample{})
			sample(1, behavior.Sample{Waited: 100 * interval})
			sample(50, behavior.Sample{Ran: interval / 4, System: interval / 8})
		}},
		{"runs rarely on a busy machine", "", func(m *behavior.Monitor, sample func(int, behavior.Sample)) {
			waits(m)
			sample(100, behavior.Sample{Ran: interval / 4, System: interval / 8, Waited: interval / 2})
		}},
		{"polls for a second", "", func(m *behavior.Monitor, sample func(int, behavior.Sample)) {
			waits(m)
			sample(6, busy)
			sample(20, behavior.Sample{})
		}},
		{"copies a large message while it arrives", "", func(m *behavior.Monitor, sample func(int, behavior.Sample)) {
			waits(m)
			for s := busy; s.Pending < 2<<20; s.Pending += 1 << 17 {
				sample(1, s)
			}
			s := busy
			s.Pending = 2 << 20
			sample(12, s)
		}},
		{"computes without a request", "", func(m *behavior.Monitor, sample func(int, behavior.Sample)) {
			m.Open(1, 0)
			sample(20, busy)
		}},
		{"starts a pool of threads", "", func(m *behavior.Monitor, sample func(int, behavior.Sample)) {
			for i := range 300 {
				m.Open(i, 0)
				m.End(i, codec.Peer, true, 0)
				sample(1, behavior.Sample{Descriptors: 10, Threads: min(i, 100)})
			}
		}},
		{"keeps its connections open", "", func(m *behavior.Monitor, sample func(int, behavior.Sample)) {
			for i := range 300 {
				m.Open(i, 0)
				sample(1, behavior.Sample{Descriptors: 10 + i, Threads: 10 + i})
			}
		}},
	} {
		m := behavior.New(gearman.Protocol)
		at := time.Duration(0)
		tt.do(m, func(n int, s behavior.Sample) {
			for range n {
				at += interval
				s.At = at
				m.Sample(s)
			}
		})
		var got []string
		for _, f := range m.Findings(at) {
			if got = append(got, strings.TrimPrefix(string(f.Rule.ID), "behavior.")); f.Count != 1 {
				t.Errorf("%s: %s was reported %d times", tt.name, f.Rule.ID, f.Count)
			}
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s: expected %q, got %q", tt.name, tt.want, got)
		}
	}
}

// waits opens a connection with a request that has no reply.
func waits(m *behavior.Monitor) {
	m.Open(1, 0)
	f := codec.Frame{Type: gearman.Protocol.TypeNamed("GRAB_JOB"), From: codec.Peer}
	m.Message(1, &f, false, 0)
}
