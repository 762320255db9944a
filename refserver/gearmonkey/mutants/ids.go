package mutants

import (
	"fmt"
	"strings"

	"jobwire/refserver/inject"
)

// ids are faults of INCR and of the counters of job IDs.
var ids = []row{
	{Name: "ids-by-connection", About: "INCR counts the IDs of a function separately for each connection.",
		Kills: "uid.unique uid.outlives-client uid.beyond-32-bits uid.greatest uid.no-integer lock.commands-wait framing.before framing.behind connection.closed",
		Edit:  inject.On("INCR", key("uid:"), func(m *message) { m.Args[0] = fmt.Sprintf("%s\x00%d", m.Args[0], m.Peer.ID()) })},
	{Name: "ids-die-with-their-client", About: "When a client disconnects, the IDs of its function start again at 1.",
		Kills: "framing.before framing.behind connection.closed", Edit: inject.On(inject.Closed, func(m *message) bool {
			return m.Peer.Count["INCR"] == 1 && len(m.Peer.Count) == 1 && key("uid:")(m.Peer.Request)
		}, func(m *message) { ask(m.Peer, "DEL", m.Peer.Request.Args[0]) })},
	{Name: "ids-go-on-by-two", About: "From the third ID on, INCR adds 2.",
		Kills: "uid.rises uid.unique uid.pipelined", Edit: retold("INCR", func(m *message, reply string) string {
			if reply == ":3\r\n" {
				return ask(m.Peer, words(m)...)
			}
			return reply
		})},
	{Name: "functions-share-ids", About: "The second function of a client continues the IDs of the first.",
		Kills: "uid.per-function", Edit: likeFirst("INCR", func(m *message) string { return prefixed(m.Args[0], "uid:") })},
	{Name: "ids-of-32-bits", About: "INCR fails above 32 bits.",
		Kills: "uid.beyond-32-bits", Edit: replaced("INCR", ":4294967296\r\n", ":0\r\n")},
	{Name: "ids-wrap-round", About: "INCR of the greatest integer returns the smallest.",
		Kills: "uid.greatest", Edit: retold("INCR", func(m *message, reply string) string {
			if strings.Contains(reply, "overflow") {
				return ":-9223372036854775808\r\n"
			}
			return reply
		})},
	{Name: "text-counts-as-0", About: "INCR reads a value that is not a number as 0.",
		Kills: "uid.no-integer count.no-integer", Edit: before("INCR DECR", func(m *message) bool {
			v := values(ask(m.Peer, "GET", m.Args[0]))
			return len(v) == 1 && strings.Trim(v[0], "-0123456789") != ""
		}, deleted)},
	{Name: "incr-overwrites", About: "INCR replaces a key of another type by a counter.",
		Kills: "uid.wrong-type", Edit: overwrites("INCR", "list")},
}
