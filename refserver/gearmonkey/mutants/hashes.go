package mutants

import (
	"slices"
	"strconv"
	"strings"

	"jobwire/refserver/inject"
)

// hashes are faults of HMSET, HGET and HGETALL.
var hashes = []row{
	{Name: "hmset-replaces-the-hash", About: "HMSET removes the fields that it does not name.",
		Kills: "job.merged job.input-65 get.finished cycle.normal cycle.scheduled expire.kept killed.behind-busy killed.behind-input",
		Edit:  before("HMSET", is("hash"), deleted)},
	{Name: "hmset-counts-like-hset", About: "HMSET replies 0 if all fields exist already.",
		Kills: "job.replaced get.finished cycle.normal cycle.scheduled expire.kept", Edit: retold("HMSET", func(m *message, reply string) string {
			fields := m.Args[0] + " " + m.Arg(1)
			if m.Peer.Notes[fields] == "" || reply != ok {
				m.Peer.Notes[fields] = "set"
				return reply
			}
			return integer(0)
		})},
	{Name: "fields-listed-twice", About: "HGETALL lists a field as often as it was set.",
		Kills: "job.merged job.replaced job.input-65 get.finished", Edit: func(s *inject.Server) {
			again := map[string][]string{}
			s.On("HMSET", func(m *message) {
				if is("hash")(m) {
					again[m.Args[0]] = append(again[m.Args[0]], m.Args[1:]...)
				}
			})
			retold("HGETALL", func(m *message, reply string) string {
				if more := again[m.Args[0]]; strings.HasPrefix(reply, "*") && more != nil {
					return list(append(values(reply), more...)...)
				}
				return reply
			})(s)
		}},
	{Name: "one-job-for-an-id", About: "A client's jobs with the same ID share one hash, even if their functions differ.",
		Kills: "job.apart job.function-with-colons", Edit: likeFirst("HMSET", func(m *message) string { return end(m.Args[0]) })},
	{Name: "keys-end-at-a-functions-colon", About: "The server ignores the part of a key after the first colon in the function name.",
		Kills: "job.function-with-colons", Edit: inject.Both(
			inject.Change("HMSET HGET LPUSH", 0, manyColons, func(v string) string { return twoParts(v) + ":" + end(v) }),
			inject.Change("PUBLISH", 0, manyColons, twoParts))},
	{Name: "odd-keys-not-found", About: "The server does not find keys that contain a line end.",
		Kills: "job.function-of-bytes", Edit: inject.Answer("HGET", func(m *message) bool { return strings.Contains(m.Args[0], "\n") }, null)},
	{Name: "values-end-at-nul", About: "The server truncates values at the first NUL.",
		Kills: "job.input-binary output.binary", Edit: eachValue(inject.ToNUL)},
	{Name: "empty-values-not-stored", About: "The server does not store fields with an empty value.",
		Kills: "job.input-empty output.empty", Edit: inject.On("HMSET", last(""), func(m *message) { m.Args = m.Args[:len(m.Args)-2] })},
	{Name: "replies-framed-by-chance", About: "The server sends a value that looks like a reply without its length.",
		Kills: "job.input-like-commands", Edit: retold("HGET", func(m *message, reply string) string {
			if v := values(reply); len(v) == 1 && strings.HasPrefix(v[0], "*") {
				return v[0]
			}
			return reply
		})},
	{Name: "numbers-are-tidied", About: "The server normalizes values that are numbers.",
		Kills: "job.input-like-a-number", Edit: eachValue(func(v string) string {
			if f, err := strconv.ParseFloat(v, 64); err == nil {
				return strconv.FormatFloat(f, 'f', -1, 64)
			}
			return v
		})},
	{Name: "values-of-64-bytes", About: "The server truncates values at 64 bytes.",
		Kills: "job.input-65 job.input-big output.big", Edit: eachValue(inject.AtMost(64))},
	{Name: "values-of-64-kib", About: "The server truncates values at 64 KiB.",
		Kills: "job.input-big output.big", Edit: eachValue(inject.AtMost(64 << 10))},
	{Name: "odd-field-left-out", About: "HMSET ignores a field without a value.",
		Kills: "job.odd-fields", Edit: inject.Answer("HMSET", func(m *message) bool { return len(m.Args)%2 == 0 }, ok)},
	{Name: "hmset-overwrites", About: "HMSET replaces a key of another type by a hash.",
		Kills: "job.wrong-type", Edit: overwrites("HMSET", "string")},
	{Name: "hgetall-lists-two-fields", About: "HGETALL lists at most two fields.",
		Kills: "job.merged get.finished cycle.normal killed.behind-input", Edit: retold("HGETALL", func(m *message, reply string) string {
			if v := values(reply); len(v) > 4 {
				return list(v[:4]...)
			}
			return reply
		})},
	{Name: "field-of-the-server", About: "HGETALL of an idle job lists a field that no client has set.",
		Kills: "job.inserted", Edit: retold("HGETALL", func(m *message, reply string) string {
			if v := values(reply); slices.Contains(v, "idle") {
				return list(append(v, "created", "0")...)
			}
			return reply
		})},
	{Name: "no-hash-is-null", About: "HGETALL of a key that does not exist replies null.",
		Kills: "get.unknown get.misspelt fields.deleted expire.gone", Edit: replaced("HGETALL", list(), null)},
	{Name: "commands-guessed", About: "The server executes a misspelled command as the most similar one.",
		Kills: "get.misspelt", Edit: inject.On("HGETALLL", nil, rename("HGETALL"))},
	{Name: "no-hash-no-fields", About: "HGETALL of a key of another type replies with an empty list.",
		Kills: "get.wrong-type", Edit: replaced("HGETALL", wrong, list())},
	{Name: "absent-field-empty", About: "HGET of a field that does not exist replies with an empty string.",
		Kills: "fields.absent", Edit: retold("HMGET", func(m *message, reply string) string {
			return strings.ReplaceAll(reply, null, bulk(""))
		})},
	{Name: "absent-job-empty", About: "HGET of a key that does not exist replies with an empty string.",
		Kills: "fields.absent request.letter-case", Edit: replaced("HGET", null, bulk(""))},
	{Name: "del-answers-1", About: "DEL replies 1 even if the key does not exist.",
		Kills: "fields.deleted", Edit: replaced("DEL", integer(0), integer(1))},
	{Name: "exists-answers-0", About: "EXISTS replies 0 for hashes.",
		Kills: "fields.absent", Edit: inject.Answer("EXISTS", is("hash"), integer(0))},
}

// eachValue changes the values of fields.
func eachValue(change func(string) string) inject.Edit {
	return inject.On("HMSET", nil, func(m *message) {
		for i := 2; i < len(m.Args); i += 2 {
			m.Args[i] = change(m.Args[i])
		}
	})
}

// manyColons is a condition on the key of a command.
func manyColons(m *message) bool { return strings.Count(m.Args[0], ":") > 1 }

// twoParts returns the part of a key before its second colon.
func twoParts(key string) string { return strings.Join(strings.SplitN(key, ":", 3)[:2], ":") }
