package mutants

import "strings"

// ids are faults of INCR and of the counters of job IDs.
var ids = []Mutant{
	{Name: "ids-by-connection", About: "Each connection counts the IDs of a function by itself.",
		Kills: cases("uid.unique uid.outlives-client uid.beyond-32-bits uid.greatest uid.no-integer lock.commands-wait framing.before framing.behind connection.closed"),
		Hook: func(b *bench) {
			b.on("INCR", func(p *peer, w []string) {
				if strings.HasPrefix(w[1], "uid:") {
					w = swapped(w, 1, own(p, w[1]))
				}
				b.pass(p, w...)
			})
		}},
	{Name: "ids-die-with-their-client", About: "When a client leaves, the IDs of its function begin anew.",
		Kills: cases("framing.before framing.behind connection.closed"),
		Hook: func(b *bench) {
			b.leaving = func(p *peer) {
				if p.heard == 1 && p.words[0] == "INCR" && strings.HasPrefix(p.words[1], "uid:") {
					b.ask(p, "DEL", p.words[1])
				}
			}
		}},
	{Name: "ids-go-on-by-two", About: "From the third on there is a gap between IDs.",
		Kills: cases("uid.rises uid.unique uid.pipelined"),
		Hook: retold("INCR", func(b *bench, p *peer, w []string, reply string) string {
			if reply == ":3\r\n" {
				return b.ask(p, w...)
			}
			return reply
		})},
	{Name: "functions-share-ids", About: "The second function of a client goes on with the IDs of the first.",
		Kills: cases("uid.per-function"),
		Hook: func(b *bench) {
			b.on("INCR", func(p *peer, w []string) {
				if strings.HasPrefix(w[1], "uid:") {
					if p.noted["uid"] == "" {
						p.noted["uid"] = w[1]
					}
					w = swapped(w, 1, p.noted["uid"])
				}
				b.pass(p, w...)
			})
		}},
	{Name: "ids-of-32-bits", About: "An ID has no more than 32 bits.",
		Kills: cases("uid.beyond-32-bits"), Hook: replaced("INCR", ":4294967296\r\n", ":0\r\n")},
	{Name: "ids-wrap-round", About: "Behind the greatest ID stands the smallest.",
		Kills: cases("uid.greatest"),
		Hook: retold("INCR", func(_ *bench, _ *peer, _ []string, reply string) string {
			if strings.Contains(reply, "overflow") {
				return ":-9223372036854775808\r\n"
			}
			return reply
		})},
	{Name: "text-counts-as-0", About: "A counter that holds text begins anew.",
		Kills: cases("uid.no-integer count.no-integer"),
		Hook: first("INCR DECR", func(b *bench, p *peer, w []string) bool {
			v := values(b.ask(p, "GET", w[1]))
			return len(v) == 1 && strings.Trim(v[0], "-0123456789") != ""
		}, deleted)},
	{Name: "incr-overwrites", About: "INCR makes a counter of whatever there is.",
		Kills: cases("uid.wrong-type"), Hook: overwrites("INCR", "list")},
}
