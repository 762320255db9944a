package mutants

import (
	"slices"
	"strings"

	"jobwire/refserver/inject"
)

// events are faults of PUBLISH and of subscriptions.
var events = []row{
	{Name: "one-listener-is-none", About: "PUBLISH does not count the first subscriber.",
		Kills: "killed.behind-start killed.behind-finish event.delivered event.order event.order-pipelined event.other-function event.two-functions event.twice-subscribed event.unsubscribed-from-one event.listener-leaves event.any-bytes",
		Edit:  replaced("PUBLISH", integer(1), integer(0))},
	{Name: "one-listener-counted", About: "PUBLISH reports at most one subscriber.",
		Kills: "event.several-listeners", Edit: replaced("PUBLISH", integer(2), integer(1))},
	{Name: "last-event-kept", About: "SUBSCRIBE is followed by the last message of the channel.",
		Kills: "event.nobody", Edit: func(s *inject.Server) {
			last := map[string]string{}
			s.On("PUBLISH", func(m *message) {
				if m.Pass(); key("channel:")(m) && len(m.Args) == 2 {
					last[m.Args[0]] = event(m)
				}
			})
			s.On("SUBSCRIBE", func(m *message) {
				if m.Pass(); last[m.Args[0]] != "" {
					m.Peer.Send(last[m.Args[0]])
				}
			})
		}},
	{Name: "first-event-overtaken", About: "The server delays the first event for each subscriber.",
		Kills: "event.order event.order-pipelined event.several-listeners", Fault: "delay EVENT 60ms nth=1"},
	{Name: "events-for-one", About: "The server sends an event to only one subscriber.",
		Kills: "event.several-listeners", Edit: inject.On("PUBLISH", nil, func(m *message) {
			if all := listeners(m); len(all) > 1 {
				all[0].Send(event(m))
				m.Answer(integer(len(all)))
			}
		})},
	{Name: "one-channel-for-all", About: "A subscriber of one function's channel receives the events of all functions.",
		Kills: "event.other-function event.unsubscribed-from-one", Edit: toOthers(false, func(m *message, p *peer) int {
			if len(p.Channels) > 0 && !slices.Contains(p.Channels, m.Args[0]) {
				return 1
			}
			return 0
		})},
	{Name: "one-subscription-each", About: "A second SUBSCRIBE replaces the first subscription.",
		Kills: "event.two-functions", Edit: inject.Answer("PUBLISH", func(m *message) bool {
			return slices.ContainsFunc(listeners(m), func(p *peer) bool { return p.Channels[len(p.Channels)-1] != m.Args[0] })
		}, integer(0))},
	{Name: "subscribed-twice-told-twice", About: "A connection that subscribes twice receives each event twice.",
		Kills: "event.twice-subscribed", Edit: inject.Both(
			inject.On("SUBSCRIBE", nil, listed),
			toOthers(true, func(m *message, p *peer) int {
				return strings.Count(strings.Join(p.List, " ")+" ", m.Args[0]+" ") - 1
			}))},
	{Name: "unsubscribed-still-told", About: "The server still sends events after UNSUBSCRIBE, although PUBLISH does not count the connection.",
		Kills: "event.unsubscribed event.unsubscribed-from-one", Edit: inject.Both(
			inject.On("UNSUBSCRIBE", nil, listed),
			toOthers(false, func(m *message, p *peer) int {
				return min(1, strings.Count(strings.Join(p.List, " ")+" ", m.Args[0]+" "))
			}))},
	{Name: "unsubscribed-from-all", About: "UNSUBSCRIBE of one channel ends all subscriptions.",
		Kills: "event.unsubscribed-from-one", Edit: inject.On("UNSUBSCRIBE", nil, func(m *message) {
			for _, c := range slices.Clone(m.Peer.Channels) {
				if c != m.Args[0] {
					ask(m.Peer, "UNSUBSCRIBE", c)
				}
			}
		})},
	{Name: "lost-listener-counted", About: "PUBLISH still counts a subscriber that has disconnected.",
		Kills: "event.listener-leaves", Edit: func(s *inject.Server) {
			gone := map[string]int{}
			s.On(inject.Closed, func(m *message) {
				for _, c := range m.Peer.Channels {
					gone[c]++
				}
			})
			retold("PUBLISH", func(m *message, reply string) string {
				if n := gone[m.Args[0]]; n > 0 {
					return integer(whole(reply) + n)
				}
				return reply
			})(s)
		}},
	{Name: "events-end-at-nul", About: "The server truncates a published message at its first NUL.",
		Kills: "event.any-bytes", Edit: inject.Change("PUBLISH", 1, args(2), inject.UpTo("\x00"))},
	{Name: "events-wake-who-waits", About: "An event ends the BRPOP of connections that wait for jobs or locks of its function.",
		Kills: "cycle.normal killed.behind-finish event.not-to-others", Edit: inject.On("PUBLISH", nil, func(m *message) {
			m.Pass()
			function := strings.TrimPrefix(m.Args[0], "channel:")
			for _, p := range m.Peers {
				if p.Waits && p.Asked() == "BRPOP" && strings.Contains(p.Request.Args[0], ":"+function+":") {
					p.Send(nullList)
				}
			}
		})},
	{Name: "listeners-may-ask", About: "The server accepts every command on a connection with subscriptions.",
		Kills: "event.listens-only", Edit: inject.Answer("INCR", listens, integer(1))},
	{Name: "ping-as-ever", About: "The server replies +PONG to PING on a connection with subscriptions.",
		Kills: "event.ping inline.quotes", Edit: inject.Answer("PING", listens, "+PONG\r\n")},
}

// event returns a published message as subscribers receive it.
func event(m *message) string { return list("message", m.Args[0], m.Args[1]) }

// listeners returns the peers that have subscribed to the channel of a PUBLISH.
func listeners(m *message) []*peer {
	return slices.DeleteFunc(slices.Clone(m.Peers), func(p *peer) bool { return !slices.Contains(p.Channels, m.Args[0]) })
}

// listens is a condition: the peer has subscriptions.
func listens(m *message) bool { return m.Peer.Channels != nil }

// toOthers sends peers a published message n times more, before the machine handles it, or after that.
func toOthers(after bool, n func(m *message, p *peer) int) inject.Edit {
	return inject.On("PUBLISH", nil, func(m *message) {
		if after {
			m.Pass()
		}
		for _, p := range m.Peers {
			for range n(m, p) {
				p.Send(event(m))
			}
		}
	})
}

// listed notes the arguments of a command.
func listed(m *message) { m.Peer.List = append(m.Peer.List, m.Args...) }
