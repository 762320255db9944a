package mutants

import (
	"slices"
	"strings"
	"time"

	"jobwire/codec"
	"jobwire/refserver/inject"
)

// connections are faults in the order of commands on a connection, and between connections.
var connections = []row{
	{Name: "hang-up-unnoticed", About: "After a client has disconnected without quit, the server does not serve the next connection.",
		Kills: "connection.close", Edit: func(s *inject.Server) {
			hung := false
			s.On(inject.Closed, func(m *message) { hung = hung || m.Peer.Heard == 1 && m.Peer.Asked() == "use" })
			s.On("list-tube-used", func(m *message) {
				if m.Peer.Heard > 1 || m.Peer.ID() == 1 {
					return
				}
				m.Drop()
				// The server may notice the end of the other connection only now.
				m.Peer.Later(40*time.Millisecond, func() {
					if !hung {
						m.Peer.Give("list-tube-used")
					}
				})
			})
		}},
	{Name: "idle-client-greeted", About: "The server sends a greeting to a client that does not send a request soon.",
		Kills: "connection.nothing-unasked", Edit: func(s *inject.Server) {
			begun := false
			s.Decode = func(session codec.Session, p []byte, f *codec.Frame) (int, error) {
				begun = true
				return session.Decode(codec.Peer, p, f)
			}
			s.On(inject.Opened, func(m *message) {
				m.Peer.Later(30*time.Millisecond, func() {
					if !begun {
						m.Peer.Send("OK 0\r\n\r\n")
					}
				})
			})
		}},
	{Name: "wait-blocks-others", About: "The server does not reply to list-tube-used of other clients while a worker waits in reserve.",
		Kills: "connection.independent stats.connections", Edit: inject.Ignore("list-tube-used", func(m *message) bool {
			return slices.ContainsFunc(m.Peers, func(p *peer) bool { return p != m.Peer && p.Waits && p.Asked() == "reserve" })
		})},
	{Name: "body-blocks-others", About: "The server does not serve other clients while a body is arriving.",
		Kills: "connection.independent-body", Edit: inject.Blocked("list-tube-used", inBody)},
	{Name: "reserve-does-not-hold", About: "The server executes commands that follow a waiting reserve at once.",
		Kills: "connection.behind-reserve connection.put-behind-reserve", Edit: inject.On("reserve", nil, func(m *message) { m.Pass(); m.Peer.Resume() })},
}

// bodies are faults in the bodies of jobs.
var bodies = []row{
	{Name: "body-ends-at-nul", About: "The server truncates a body at its first NUL.",
		Kills: "body.all-kinds-of-bytes", Edit: inject.Change("put", 3, nil, inject.ToNUL)},
	{Name: "empty-body-refused", About: "The server rejects an empty body.",
		Kills: "body.empty", Edit: inject.Answer("put", func(m *message) bool { return m.Args[3] == "" }, "BAD_FORMAT")},
	{Name: "quit-in-a-body", About: "The server closes the connection if a body starts with \"quit\".",
		Kills: "body.like-commands", Edit: inject.Hangup("put", func(m *message) bool { return strings.HasPrefix(m.Args[3], "quit\r\n") })},
	{Name: "body-of-line-ends-trimmed", About: "The server stores an empty body for a body that consists of line ends.",
		Kills: "body.line-ends-only", Edit: inject.Change("put", 3, func(m *message) bool { return strings.Trim(m.Args[3], "\r\n") == "" }, inject.To(""))},
	{Name: "large-body-cut-off", About: "The server truncates a body at 65000 bytes.",
		Kills: "body.large", Edit: inject.Change("put", 3, nil, inject.AtMost(65000))},
}
