package mutants

import (
	"bytes"
	"regexp"
	"slices"
	"time"

	"jobwire/codec"
	"jobwire/codec/resp"
)

// requests are faults in the reading of commands, in arrays and in lines.
var requests = []Mutant{
	{Name: "first-id-overtaken", About: "The first ID that a connection is given is overtaken by later replies.",
		Kills: cases("uid.pipelined request.pipelined inline.between framing.before"), Faults: []string{"delay ID 40ms nth=1"}},
	{Name: "first-ok-overtaken", About: "The first OK that a connection is given is overtaken by later replies.",
		Kills: cases("cycle.pipelined request.pipelined inline.between"), Faults: []string{"delay simple 40ms nth=1"}},
	{Name: "first-job-overtaken", About: "The first scheduled job that a connection is given is overtaken by later replies.",
		Kills: cases("due.pipelined"), Faults: []string{"delay DUE 40ms nth=1"}},
	{Name: "cr-at-the-end-of-a-read-lost", About: "A CR that comes last in a segment is lost.",
		Kills: cases("request.cut-anywhere"), Hook: wrapped(func(p []byte) []byte {
			if len(p) > 100 {
				return p // where a segment of these ends is nobody's choice
			}
			return bytes.TrimSuffix(p, []byte("\r"))
		})},
	{Name: "commands-in-capitals-only", About: "A command in small letters is not known.",
		Kills: cases("request.letter-case inline.served"), Hook: func(b *bench) {
			b.on("SET GET SCRIPT HMSET HGET", func(p *peer, w []string) {
				if p.spelt != w[0] {
					b.say(p, "-ERR unknown command\r\n")
					return
				}
				b.pass(p, w...)
			})
		}},
	{Name: "silence-broken", About: "Who has connected and sends no whole command is greeted.",
		Kills: cases("lock.expires expire.gone request.cut-anywhere request.nothing-unasked framing.incomplete"), Hook: func(b *bench) {
			b.opened = func(p *peer) {
				b.After(60*time.Millisecond, func() {
					if p.heard == 0 && b.peers[p.conn] == p {
						b.say(p, "+hello\r\n")
					}
				})
			}
		}},
	{Name: "doubles-for-all", About: "A score is told as a double, whichever version of the protocol is spoken.",
		Kills: cases("request.resp2"), Hook: replaced("ZSCORE", bulk("1.5"), ",1.5\r\n")},
	{Name: "empty-requests-refused", About: "A request of no words is answered by an error.",
		Kills: cases("request.empty"), Hook: func(b *bench) {
			b.rejected = func(p *peer, _ string, e *codec.Error) bool {
				if e.Rule == resp.RuleEmpty {
					b.say(p, "-ERR no command\r\n")
				}
				return e.Rule == resp.RuleEmpty
			}
		}},
	{Name: "unknown-command-closes", About: "A command that is not known ends the connection.",
		Kills: cases("get.misspelt request.no-command"), Hook: func(b *bench) {
			b.on("NOSUCHCOMMAND HGETALLL", func(p *peer, _ []string) { p.conn.Close() })
		}},
	{Name: "no-fields-no-error", About: "HMSET without any field is answered by OK.",
		Kills: cases("request.too-few-words"), Hook: answered("HMSET", ok, count(2))},
	{Name: "surplus-words-overlooked", About: "Words too many are passed over.",
		Kills: cases("request.too-many-words"), Hook: takenFor("GET INCR", count(3), func(w []string) []string { return w[:2] })},
	{Name: "replies-passed-over", About: "What servers say is not answered when clients say it.",
		Kills: cases("request.reply-as-command"), Hook: silent("+OK", always)},
	{Name: "no-inline-commands", About: "A line is no command.",
		Kills: cases("inline.served inline.quotes inline.between"), Hook: answered("PING GET", "-ERR unknown command\r\n", func(_ *bench, p *peer, _ []string) bool { return p.inline })},
	{Name: "quotes-are-letters", About: "Quotes have no meaning in a line.",
		Kills: cases("inline.quotes"), Hook: takenFor("PING", always, slices.Clone[[]string])},
	{Name: "command-behind-a-line-lost", About: "An array that follows a line is passed over.",
		Kills: cases("request.reply-as-command inline.between"), Hook: func(b *bench) {
			b.on("INCR", func(p *peer, w []string) {
				if !p.before {
					b.pass(p, w...)
				}
			})
		}},
	{Name: "quote-ends-with-its-line", About: "A quote that does not end ends with its line.",
		Kills: cases("inline.unbalanced"), Hook: readAs(`"a b\r`, `"a b"`+"\r")},
	{Name: "words-go-on-behind-quotes", About: "What follows a closing quote belongs to the word.",
		Kills: cases("inline.behind-the-quote"), Hook: readAs(`"a"b`, `"ab"`)},
	{Name: "lines-without-end", About: "A line may be as long as it likes.",
		Kills: cases("inline.too-long"), Codec: codec.Options{MaxLine: 1 << 20}},
	{Name: "last-words-undone", About: "What a client asked for right before it ended its direction is undone.",
		Kills: cases("count.lost-worker connection.closed"), Hook: func(b *bench) {
			b.halved = func(p *peer) bool {
				if p.heard > 0 && p.words[0] == "INCR" {
					b.ask(p, "DECR", p.words[1])
				}
				return false
			}
		}},
}

// framing are faults in what is done about requests that cannot be framed.
var framing = []Mutant{
	{Name: "word-for-a-count-is-0", About: "A count that is a word is taken for 0.",
		Kills: cases("framing.no-count"), Hook: readAs(`^\*one\r\n`, "*0\r\n")},
	{Name: "count-without-digits-is-0", About: "A count without digits is taken for 0.",
		Kills: cases("framing.count-empty"), Hook: readAs(`^\*\r\n`, "*0\r\n")},
	{Name: "count-with-zeros-taken", About: "Leading zeros and a plus change nothing about a count.",
		Kills: cases("framing.count-leading-zero"), Hook: readAs(`^\*[0+](\d)`, "*$1")},
	{Name: "great-count-is-negative", About: "A count of 2^31 is taken for a negative one.",
		Kills: cases("framing.count-too-great"), Hook: readAs(`^\*2147483648\r\n`, "*-1\r\n")},
	{Name: "integers-are-words", About: "An integer in a request is a word.",
		Kills: cases("framing.no-bulk-string"), Hook: readAs(`PING\r\n:1\r\n`, "PING\r\n$$1\r\n1\r\n")},
	{Name: "nested-request-opened", About: "A request inside a request is taken out of it.",
		Kills: cases("framing.nested"), Hook: readAs(`^\*1\r\n\*1\r\n`, "*1\r\n")},
	{Name: "size-in-words", About: "A size that is a word is guessed.",
		Kills: cases("framing.no-size"), Hook: readAs(`\$four\r\n`, "$$4\r\n")},
	{Name: "negative-size-is-0", About: "A negative size is taken for 0.",
		Kills: cases("output.binary framing.size-negative"), Hook: readAs(`\$-1\r\n`, "$$0\r\n\r\n")},
	{Name: "size-with-zeros-taken", About: "Leading zeros change nothing about a size.",
		Kills: cases("framing.size-leading-zero"), Hook: readAs(`\$0(\d)`, "$$$1")},
	{Name: "size-not-bounded", About: "A size beyond 512 MiB is waited for.",
		Kills: cases("framing.size-too-great"), Hook: readAs(`\$536870913\r\n`, "$$53687\r\n")},
	{Name: "bad-size-passed-over", About: "A word whose size is none is passed over, and reading goes on.",
		Kills: cases("framing.before framing.behind framing.others-go-on"), Hook: readAs(`\*1\r\n\$x\r\n`, "*1\r\n$$3\r\nBAD\r\n")},
	{Name: "commands-before-undone", About: "The last command before a request that cannot be framed is undone.",
		Kills: cases("framing.before framing.behind"), Hook: func(b *bench) {
			b.rejected = func(p *peer, _ string, e *codec.Error) bool {
				if e.Fatal && p.heard > 0 && p.words[0] == "INCR" {
					b.ask(p, "DECR", p.words[1])
				}
				return false
			}
		}},
	{Name: "bad-framing-closes-waits", About: "Behind a request that cannot be framed all who wait are cut off.",
		Kills: cases("framing.others-go-on"), Hook: func(b *bench) {
			b.rejected = func(_ *peer, _ string, e *codec.Error) bool {
				for _, o := range b.peers {
					if e.Fatal && o.waits {
						o.conn.Close()
					}
				}
				return false
			}
		}},
	{Name: "protocol-errors-without-code", About: "The error about a request that cannot be framed has no code.",
		Kills: cases("framing.says-why"), Hook: func(b *bench) {
			b.rejected = func(p *peer, _ string, e *codec.Error) bool {
				if e.Fatal {
					b.say(p, "-Protocol error\r\n")
				}
				return e.Fatal
			}
		}},
}

// readAs takes bytes that arrive for others, with $1 and so on for what the pattern's groups
// stand for.
func readAs(pattern, as string) Hook {
	re := regexp.MustCompile(pattern)
	return wrapped(func(p []byte) []byte {
		read := re.ReplaceAll(p, []byte(as))
		p = p[:min(len(read), cap(p))]
		copy(p, read)
		return p
	})
}
