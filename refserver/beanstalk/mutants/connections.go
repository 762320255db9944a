package mutants

import (
	"time"

	"jobwire/codec"
	"jobwire/refserver/inject"
)

// connections are faults in the time and order in which the server handles commands, and between connections.
var connections = []mutantSpec{
	{Name: "hang-up-unnoticed", About: "After a client has disconnected without quit, the server does not serve the next connection.",
		KilledBy: "connection.close", Edit: func(s *inject.Server) {
			hung := false
			s.On(inject.Closed, func(m *message) { hung = hung || m.Peer.ReceivedCount == 1 && m.Peer.Asked() == "use" })
			s.On("list-tube-used", func(m *message) {
				if m.Peer.ReceivedCount > 1 || m.Peer.ID() == 1 {
					return
				}
				m.Drop()
				// The server may notice the end of the other connection only now.
				m.Peer.Later(40*time.Millisecond, func() {
					if !hung {
						m.Peer.Inject("list-tube-used")
					}
				})
			})
		}},
	{Name: "idle-client-greeted", About: "The server sends a greeting to a client that does not send a request soon.",
		KilledBy: "connection.nothing-unasked", Edit: func(s *inject.Server) {
			begun := false
			s.Decode = func(session codec.Session, p []byte, f *codec.Frame) (int, error) {
				begun = true
				return session.Decode(codec.Peer, p, f)
			}
			s.On(inject.Opened, func(m *message) {
				m.Peer.Later(50*time.Millisecond, func() {
					if !begun {
						m.Peer.Send("OK 0\r\n\r\n")
					}
				})
			})
		}},
	{Name: "body-blocks-others", About: "The server does not serve other clients while a body is arriving.",
		KilledBy: "connection.independent-body", Edit: inject.Blocked("list-tube-used", inBody)},
	{Name: "reserve-does-not-hold", About: "The server executes commands that follow a waiting reserve at once instead of after the reserve has ended.",
		KilledBy: "connection.after-reserve connection.put-after-reserve", Edit: inject.On("reserve", nil, func(m *message) { m.Pass(); m.Peer.Resume() })},
	{Name: "half-closed-not-answered", About: "The server sends no more replies to a client that half-closes the connection immediately after reserve.",
		KilledBy: "half-closed.with-a-job", Edit: func(s *inject.Server) {
			pending := map[*peer]bool{}
			s.On(inject.HalfClosed, func(m *message) {
				if !pending[m.Peer] {
					return
				}
				delete(pending, m.Peer)
				m.Peer.Ignored = true
				m.Peer.Resume()
				m.Drop()
			})
			s.On("reserve", func(m *message) {
				if m.Find(func(j *job) bool { return j.Creator == m.Peer && j.State == "ready" }) == nil {
					return
				}
				pending[m.Peer] = true
				m.Drop()
				m.Peer.Pause()
				m.Peer.Later(30*time.Millisecond, func() {
					if pending[m.Peer] {
						delete(pending, m.Peer)
						m.Peer.Resume()
						m.Peer.Inject("reserve")
					}
				})
			})
		}},
}
