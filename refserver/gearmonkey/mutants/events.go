package mutants

import (
	"slices"
	"strings"
)

// events are faults of PUBLISH and of subscriptions.
var events = []Mutant{
	{Name: "one-listener-is-none", About: "PUBLISH does not count the first listener.",
		Kills: cases("killed.behind-start killed.behind-finish event.delivered event.order event.order-pipelined event.other-function event.two-functions event.twice-subscribed event.unsubscribed-from-one event.listener-leaves event.any-bytes"), Hook: replaced("PUBLISH", integer(1), integer(0))},
	{Name: "one-listener-counted", About: "PUBLISH tells of one listener at most.",
		Kills: cases("event.several-listeners"), Hook: replaced("PUBLISH", integer(2), integer(1))},
	{Name: "last-event-kept", About: "Who subscribes is sent the last message of the channel first.",
		Kills: cases("event.nobody"), Hook: func(b *bench) {
			last := map[string]string{}
			b.on("PUBLISH", func(p *peer, w []string) {
				b.pass(p, w...)
				if strings.HasPrefix(w[1], "channel:") && len(w) == 3 {
					last[w[1]] = list("message", w[1], w[2])
				}
			})
			b.on("SUBSCRIBE", func(p *peer, w []string) {
				b.pass(p, w...)
				if m := last[w[1]]; m != "" {
					b.say(p, m)
				}
			})
		}},
	{Name: "first-event-overtaken", About: "The first event that a listener gets is late.",
		Kills: cases("event.order event.order-pipelined event.several-listeners"), Faults: []string{"delay EVENT 60ms nth=1"}},
	{Name: "events-for-one", About: "An event is sent to one listener.",
		Kills: cases("event.several-listeners"), Hook: func(b *bench) {
			b.on("PUBLISH", func(p *peer, w []string) {
				all := b.listeners(w[1])
				if len(all) < 2 {
					b.pass(p, w...)
					return
				}
				b.say(all[0], list("message", w[1], w[2]))
				b.say(p, integer(len(all)))
			})
		}},
	{Name: "one-channel-for-all", About: "Who has subscribed to the channel of a function gets the events of all functions.",
		Kills: cases("event.other-function event.unsubscribed-from-one"), Hook: func(b *bench) {
			b.on("PUBLISH", func(p *peer, w []string) {
				for _, o := range b.peers {
					if len(o.channels) > 0 && !slices.Contains(o.channels, w[1]) {
						b.say(o, list("message", w[1], w[2]))
					}
				}
				b.pass(p, w...)
			})
		}},
	{Name: "one-subscription-each", About: "A second subscription takes the place of the first.",
		Kills: cases("event.two-functions"), Hook: func(b *bench) {
			b.on("PUBLISH", func(p *peer, w []string) {
				for _, o := range b.listeners(w[1]) {
					if last := o.channels; last[len(last)-1] != w[1] {
						b.say(p, integer(0))
						return
					}
				}
				b.pass(p, w...)
			})
		}},
	{Name: "subscribed-twice-told-twice", About: "Who subscribes twice gets each event twice.",
		Kills: cases("event.twice-subscribed"), Hook: func(b *bench) {
			b.on("SUBSCRIBE", func(p *peer, w []string) {
				p.members = append(p.members, w[1:]...)
				b.pass(p, w...)
			})
			b.on("PUBLISH", func(p *peer, w []string) {
				b.pass(p, w...)
				for _, o := range b.peers {
					for range strings.Count(strings.Join(o.members, " ")+" ", w[1]+" ") - 1 {
						b.say(o, list("message", w[1], w[2]))
					}
				}
			})
		}},
	{Name: "unsubscribed-still-told", About: "Who has unsubscribed is sent events, though not counted.",
		Kills: cases("event.unsubscribed event.unsubscribed-from-one"), Hook: func(b *bench) {
			b.on("UNSUBSCRIBE", func(p *peer, w []string) {
				p.members = append(p.members, w[1:]...)
				b.pass(p, w...)
			})
			b.on("PUBLISH", func(p *peer, w []string) {
				for _, o := range b.peers {
					if slices.Contains(o.members, w[1]) {
						b.say(o, list("message", w[1], w[2]))
					}
				}
				b.pass(p, w...)
			})
		}},
	{Name: "unsubscribed-from-all", About: "UNSUBSCRIBE ends all subscriptions.",
		Kills: cases("event.unsubscribed-from-one"), Hook: func(b *bench) {
			b.on("UNSUBSCRIBE", func(p *peer, w []string) {
				for _, c := range p.channels {
					if c != w[1] {
						b.ask(p, "UNSUBSCRIBE", c)
					}
				}
				b.pass(p, w...)
			})
		}},
	{Name: "lost-listener-counted", About: "A listener that has left is counted on.",
		Kills: cases("event.listener-leaves"), Hook: func(b *bench) {
			gone := map[string]int{}
			b.leaving = func(p *peer) {
				for _, c := range p.channels {
					gone[c]++
				}
			}
			b.on("PUBLISH", func(p *peer, w []string) {
				reply := b.ask(p, w...)
				if n := gone[w[1]]; n > 0 {
					reply = integer(whole(reply) + n)
				}
				b.say(p, reply)
			})
		}},
	{Name: "events-end-at-nul", About: "A message ends at its first NUL.",
		Kills: cases("event.any-bytes"), Hook: takenFor("PUBLISH", count(3), func(w []string) []string {
			head, _, _ := strings.Cut(w[2], "\x00")
			return swapped(w, 2, head)
		})},
	{Name: "events-wake-who-waits", About: "An event ends the waits of those who wait for jobs or locks of its function.",
		Kills: cases("cycle.normal killed.behind-finish event.not-to-others"), Hook: func(b *bench) {
			b.on("PUBLISH", func(p *peer, w []string) {
				b.pass(p, w...)
				function := strings.TrimPrefix(w[1], "channel:")
				for _, o := range b.peers {
					if o.waits && o.words[0] == "BRPOP" && strings.Contains(o.words[1], ":"+function+":") {
						b.say(o, nullList)
					}
				}
			})
		}},
	{Name: "listeners-may-ask", About: "Who has subscribed can send any command.",
		Kills: cases("event.listens-only"), Hook: func(b *bench) {
			b.on("INCR", func(p *peer, w []string) {
				if p.channels == nil {
					b.pass(p, w...)
					return
				}
				b.say(p, integer(1))
			})
		}},
	{Name: "ping-as-ever", About: "PING is answered by PONG, also where one has subscribed.",
		Kills: cases("event.ping inline.quotes"), Hook: func(b *bench) {
			b.on("PING", func(p *peer, w []string) {
				if p.channels == nil {
					b.pass(p, w...)
					return
				}
				b.say(p, "+PONG\r\n")
			})
		}},
}

// listeners are those who have subscribed to a channel.
func (b *bench) listeners(channel string) (all []*peer) {
	for _, p := range b.peers {
		if slices.Contains(p.channels, channel) {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b *peer) int { return int(a.ID()) - int(b.ID()) })
	return all
}

// subscribes notes the channels of a command.
func (p *peer) subscribes(w []string) {
	for _, c := range w[1:] {
		switch i := slices.Index(p.channels, c); {
		case w[0] == "SUBSCRIBE" && i < 0:
			p.channels = append(p.channels, c)
		case w[0] == "UNSUBSCRIBE" && i >= 0:
			p.channels = slices.Delete(p.channels, i, i+1)
		}
	}
}
