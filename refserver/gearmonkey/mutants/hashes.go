package mutants

import (
	"slices"
	"strconv"
	"strings"
)

// hashes are faults of HMSET, HGET and HGETALL.
var hashes = []Mutant{
	{Name: "hmset-replaces-the-hash", About: "HMSET drops the fields that it does not name.",
		Kills: cases("job.merged job.input-65 get.finished cycle.normal cycle.scheduled expire.kept killed.behind-busy killed.behind-input"), Hook: first("HMSET", is("hash"), deleted)},
	{Name: "hmset-counts-like-hset", About: "HMSET of fields that are there is answered by 0.",
		Kills: cases("job.replaced get.finished cycle.normal cycle.scheduled expire.kept"),
		Hook: retold("HMSET", func(_ *bench, p *peer, w []string, reply string) string {
			if fields := w[1] + " " + w[min(2, len(w)-1)]; p.noted[fields] == "" || reply != ok {
				p.noted[fields] = "set"
				return reply
			}
			return integer(0)
		})},
	{Name: "fields-listed-twice", About: "HGETALL lists a field once for each time that it was set.",
		Kills: cases("job.merged job.replaced job.input-65 get.finished"),
		Hook: func(b *bench) {
			again := map[string][]string{}
			b.on("HMSET", func(p *peer, w []string) {
				if is("hash")(b, p, w) {
					again[w[1]] = append(again[w[1]], w[2:]...)
				}
				b.pass(p, w...)
			})
			b.on("HGETALL", func(p *peer, w []string) {
				reply := b.ask(p, w...)
				if more := again[w[1]]; strings.HasPrefix(reply, "*") && more != nil {
					reply = list(append(values(reply), more...)...)
				}
				b.say(p, reply)
			})
		}},
	{Name: "one-job-for-an-id", About: "A client's jobs of one ID share their data, whatever their functions.",
		Kills: cases("job.apart job.function-with-colons"),
		Hook: takenByPeer("HMSET", func(p *peer, w []string) []string {
			id := w[1][strings.LastIndex(w[1], ":")+1:]
			if p.noted[id] == "" {
				p.noted[id] = w[1]
			}
			return swapped(w, 1, p.noted[id])
		})},
	{Name: "keys-end-at-a-functions-colon", About: "Behind the first colon of a function's name nothing counts.",
		Kills: cases("job.function-with-colons"), Hook: takenFor("HMSET HGET LPUSH PUBLISH", always, func(w []string) []string {
			if parts := strings.Split(w[1], ":"); len(parts) > 2 {
				end := parts[len(parts)-1]
				if w[0] == "PUBLISH" {
					return swapped(w, 1, parts[0]+":"+parts[1])
				}
				return swapped(w, 1, parts[0]+":"+parts[1]+":"+end)
			}
			return w
		})},
	{Name: "odd-keys-not-found", About: "A key that holds an end of line is never found again.",
		Kills: cases("job.function-of-bytes"), Hook: answered("HGET", null, func(_ *bench, _ *peer, w []string) bool { return strings.Contains(w[1], "\n") })},
	{Name: "values-end-at-nul", About: "A value ends at its first NUL.",
		Kills: cases("job.input-binary output.binary"), Hook: takenFor("HMSET", always, eachValue(func(v string) string { v, _, _ = strings.Cut(v, "\x00"); return v }))},
	{Name: "empty-values-not-stored", About: "A field that is set to nothing is not stored.",
		Kills: cases("job.input-empty output.empty"), Hook: takenFor("HMSET", word(-1, ""), func(w []string) []string { return w[:len(w)-2] })},
	{Name: "replies-framed-by-chance", About: "A value that looks like a reply is sent without its size.",
		Kills: cases("job.input-like-commands"),
		Hook: retold("HGET", func(_ *bench, _ *peer, _ []string, reply string) string {
			if v := values(reply); len(v) == 1 && strings.HasPrefix(v[0], "*") {
				return v[0]
			}
			return reply
		})},
	{Name: "numbers-are-tidied", About: "A value that is a number is stored as one.",
		Kills: cases("job.input-like-a-number"), Hook: takenFor("HMSET", always, eachValue(func(v string) string {
			if f, err := strconv.ParseFloat(v, 64); err == nil {
				return strconv.FormatFloat(f, 'f', -1, 64)
			}
			return v
		}))},
	{Name: "values-of-64-bytes", About: "A value has no more than 64 bytes.",
		Kills: cases("job.input-65 job.input-big output.big"), Hook: takenFor("HMSET", always, eachValue(func(v string) string { return v[:min(len(v), 64)] }))},
	{Name: "values-of-64-kib", About: "A value has no more than 64 KiB.",
		Kills: cases("job.input-big output.big"), Hook: takenFor("HMSET", always, eachValue(func(v string) string { return v[:min(len(v), 64<<10)] }))},
	{Name: "odd-field-left-out", About: "HMSET passes over a field that has no value.",
		Kills: cases("job.odd-fields"), Hook: answered("HMSET", ok, func(_ *bench, _ *peer, w []string) bool { return len(w)%2 == 1 })},
	{Name: "hmset-overwrites", About: "HMSET makes a hash of whatever there is.",
		Kills: cases("job.wrong-type"), Hook: overwrites("HMSET", "string")},
	{Name: "hgetall-lists-two-fields", About: "HGETALL lists two fields at most.",
		Kills: cases("job.merged get.finished cycle.normal killed.behind-input"),
		Hook: retold("HGETALL", func(_ *bench, _ *peer, _ []string, reply string) string {
			if v := values(reply); len(v) > 4 {
				return list(v[:4]...)
			}
			return reply
		})},
	{Name: "field-of-the-server", About: "HGETALL of an idle job lists a field that nobody has set.",
		Kills: cases("job.inserted"), Hook: retold("HGETALL", func(_ *bench, _ *peer, _ []string, reply string) string {
			if v := values(reply); slices.Contains(v, "idle") {
				return list(append(v, "created", "0")...)
			}
			return reply
		})},
	{Name: "no-hash-is-null", About: "HGETALL of what is not there is answered by null.",
		Kills: cases("get.unknown get.misspelt fields.deleted expire.gone"), Hook: replaced("HGETALL", list(), null)},
	{Name: "commands-guessed", About: "A command that is misspelt is taken for the one that it resembles.",
		Kills: cases("get.misspelt"), Hook: takenFor("HGETALLL", always, func(w []string) []string { return swapped(w, 0, "HGETALL") })},
	{Name: "no-hash-no-fields", About: "HGETALL of another kind of value lists no fields.",
		Kills: cases("get.wrong-type"), Hook: replaced("HGETALL", wrong, list())},
	{Name: "absent-field-empty", About: "A field that is not there is told as an empty one.",
		Kills: cases("fields.absent"),
		Hook: retold("HMGET", func(_ *bench, _ *peer, _ []string, reply string) string {
			return strings.ReplaceAll(reply, null, bulk(""))
		})},
	{Name: "absent-job-empty", About: "The field of a job that is not there is told as an empty one.",
		Kills: cases("fields.absent request.letter-case"), Hook: replaced("HGET", null, bulk(""))},
	{Name: "del-answers-1", About: "DEL says that it deleted a key, whether or not there was one.",
		Kills: cases("fields.deleted"), Hook: replaced("DEL", integer(0), integer(1))},
	{Name: "exists-answers-0", About: "EXISTS finds no hashes.",
		Kills: cases("fields.absent"), Hook: answered("EXISTS", integer(0), is("hash"))},
}

// eachValue changes the values of fields.
func eachValue(change func(string) string) func(w []string) []string {
	return func(w []string) []string {
		w = slices.Clone(w)
		for i := 3; i < len(w); i += 2 {
			w[i] = change(w[i])
		}
		return w
	}
}

// takenByPeer changes the words of commands by who sends them.
func takenByPeer(commands string, change func(p *peer, w []string) []string) Hook {
	return func(b *bench) {
		b.on(commands, func(p *peer, w []string) { b.pass(p, change(p, w)...) })
	}
}
