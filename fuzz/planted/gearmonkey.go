package planted

import "strings"

// inGearMonkey are the faults of GearMonkey's Redis.
var inGearMonkey = []Fault{
	{Name: "range-from-the-end", Protocol: "gearmonkey", Oracle: Signal,
		About: "A range that is counted from the end of a list is read before its beginning.",
		Hook: upon("LRANGE_QUEUE", killedBy("SEGV", "=== REDIS BUG REPORT START ===\nRedis crashed by signal: 11\n"),
			func(_ *peer, f *frame) bool { return strings.HasPrefix(arg(f, "Start"), "-") })},
	{Name: "never-subscribed", Protocol: "gearmonkey", Oracle: Hang,
		About: "Who unsubscribes without having subscribed is not heard any more.",
		Hook: func(b *bench) {
			b.on("SUBSCRIBE_CHANNEL", func(p *peer, f *frame) {
				p.mark = true
				b.pass(p, f)
			})
			b.on("UNSUBSCRIBE_CHANNEL", func(p *peer, f *frame) {
				if p.deaf = !p.mark; !p.deaf {
					b.pass(p, f)
				}
			})
		}},
	{Name: "waiting-client-spins", Protocol: "gearmonkey", Oracle: Spin,
		About: "A client that leaves while it waits for a lock is looked for ever since.",
		Hook:  leaving(spins, after("BRPOP_LOCK"))},
	{Name: "empty-input-unended", Protocol: "gearmonkey", Oracle: Framing,
		About: "An empty string has no line end of its own.",
		Hook: told("bulk", func(*bench, *peer, *frame) verdict { return raw("$0\r\n") },
			func(_ *peer, f *frame) bool { return string(f.Raw) == "$0\r\n\r\n" })},
	{Name: "count-below-zero", Protocol: "gearmonkey", Oracle: Rule,
		About: "A count of workers below zero is told as a number of 64 bits without a sign.",
		Hook: told("integer", func(*bench, *peer, *frame) verdict { return raw(":18446744073709551615\r\n") },
			func(_ *peer, f *frame) bool { return string(f.Raw) == ":-1\r\n" })},
	{Name: "low-queue-lost", Protocol: "gearmonkey", Oracle: Lost,
		About: "A job that is pushed to a queue of low priority is counted and forgotten.",
		Hook:  instead("LPUSH_QUEUE", func(b *bench, p *peer, _ *frame) { b.say(p, "integer", "1") }, is("Priority", "low"))},
	{Name: "finish-closes-another", Protocol: "gearmonkey", Oracle: Disturbance,
		About: "Who tells that a job is finished ends the oldest of the other connections in use.",
		Hook:  upon("PUBLISH_FINISH", closesOther)},
}
