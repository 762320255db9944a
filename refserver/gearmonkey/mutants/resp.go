package mutants

import (
	"bytes"
	"regexp"
	"time"

	"jobwire/codec"
	"jobwire/codec/resp"
	"jobwire/refserver/inject"
)

// requests are faults in the reading of commands, in arrays and in lines.
var requests = []row{
	{Name: "first-id-overtaken", About: "The server sends later replies before the first job ID of a connection.",
		Kills: "uid.pipelined request.pipelined inline.between framing.before", Fault: "delay ID 40ms nth=1"},
	{Name: "first-ok-overtaken", About: "The server sends later replies before the first OK of a connection.",
		Kills: "cycle.pipelined request.pipelined inline.between", Fault: "delay simple 40ms nth=1"},
	{Name: "first-job-overtaken", About: "The server sends later replies before the first scheduled job of a connection.",
		Kills: "due.pipelined", Fault: "delay DUE 40ms nth=1"},
	{Name: "cr-at-the-end-of-a-read-lost", About: "The server loses a CR that is the last byte of a segment.",
		Kills: "request.cut-anywhere", Edit: inject.Filter(func(p []byte) []byte {
			if len(p) > 100 {
				return p // the network decides where a segment of these ends
			}
			return bytes.TrimSuffix(p, []byte("\r"))
		})},
	{Name: "commands-in-capitals-only", About: "The server does not recognize commands in lower case.",
		Kills: "request.letter-case inline.served",
		Edit:  inject.Answer("SET GET SCRIPT HMSET HGET", func(m *message) bool { return cut(m.Text())[0] != m.Name }, "-ERR unknown command\r\n")},
	{Name: "silence-broken", About: "The server sends a greeting to a connection that does not send a complete command soon.",
		Kills: "lock.expires expire.gone request.cut-anywhere request.nothing-unasked framing.incomplete", Edit: inject.On(inject.Opened, nil, func(m *message) {
			m.Peer.Later(60*time.Millisecond, func() {
				if len(m.Peer.Count) == 0 {
					m.Peer.Send("+hello\r\n")
				}
			})
		})},
	{Name: "doubles-for-all", About: "The server sends scores as RESP3 doubles to RESP2 connections.",
		Kills: "request.resp2", Edit: replaced("ZSCORE", bulk("1.5"), ",1.5\r\n")},
	{Name: "empty-requests-refused", About: "The server replies to an empty array with an error.",
		Kills: "request.empty", Edit: inject.Answer(inject.Illegal, func(m *message) bool { return m.Err.Rule == resp.RuleEmpty }, "-ERR no command\r\n")},
	{Name: "unknown-command-closes", About: "The server closes the connection after an unknown command.",
		Kills: "get.misspelt request.no-command", Edit: inject.Hangup("NOSUCHCOMMAND HGETALLL", nil)},
	{Name: "no-fields-no-error", About: "HMSET without fields replies OK.",
		Kills: "request.too-few-words", Edit: inject.Answer("HMSET", args(1), ok)},
	{Name: "surplus-words-overlooked", About: "The server ignores extra arguments.",
		Kills: "request.too-many-words", Edit: inject.On("GET INCR", args(2), func(m *message) { m.Args = m.Args[:1] })},
	{Name: "replies-passed-over", About: "The server does not reply to a client that sends a reply type.",
		Kills: "request.reply-as-command", Edit: inject.Ignore("+OK", nil)},
	{Name: "no-inline-commands", About: "The server does not accept inline commands.",
		Kills: "inline.served inline.quotes inline.between", Edit: inject.Answer("PING GET", inline, "-ERR unknown command\r\n")},
	// A command with an edit is written again, from words that are split at spaces.
	{Name: "quotes-are-letters", About: "The server does not interpret quotes in inline commands.",
		Kills: "inline.quotes", Edit: inject.On("PING", nil, func(*message) {})},
	{Name: "command-behind-a-line-lost", About: "The server ignores an array that follows an inline command.",
		Kills: "inline.between", Edit: inject.Ignore("INCR", func(m *message) bool { return m.Peer.Notes["inline"] == "before" })},
	{Name: "quote-ends-with-its-line", About: "The server accepts an unterminated quote in an inline command.",
		Kills: "inline.unbalanced", Edit: readAs(`"a b\r`, `"a b"`+"\r")},
	{Name: "words-go-on-behind-quotes", About: "The server accepts characters immediately after a closing quote as part of the argument.",
		Kills: "inline.behind-the-quote", Edit: readAs(`"a"b`, `"ab"`)},
	{Name: "lines-without-end", About: "The server does not limit the length of inline commands.",
		Kills: "inline.too-long", Codec: codec.Options{MaxLine: 1 << 20}},
	{Name: "last-words-undone", About: "The server undoes the last command before a client half-closes the connection.",
		Kills: "count.lost-worker connection.closed", Edit: inject.On(inject.HalfClosed, nil, undo)},
}

// framing are faults in what is done about requests that cannot be framed.
var framing = []row{
	{Name: "word-for-a-count-is-0", About: "The server reads an array length that is not a number as 0.",
		Kills: "framing.no-count", Edit: readAs(`^\*one\r\n`, "*0\r\n")},
	{Name: "count-without-digits-is-0", About: "The server reads an empty array length as 0.",
		Kills: "framing.count-empty", Edit: readAs(`^\*\r\n`, "*0\r\n")},
	{Name: "count-with-zeros-taken", About: "The server accepts leading zeros and a plus sign in an array length.",
		Kills: "framing.count-leading-zero", Edit: readAs(`^\*[0+](\d)`, "*$1")},
	{Name: "great-count-is-negative", About: "The server reads an array length of 2^31 as negative.",
		Kills: "framing.count-too-great", Edit: readAs(`^\*2147483648\r\n`, "*-1\r\n")},
	{Name: "integers-are-words", About: "The server accepts an integer as an argument in a request.",
		Kills: "framing.no-bulk-string", Edit: readAs(`PING\r\n:1\r\n`, "PING\r\n$$1\r\n1\r\n")},
	{Name: "nested-request-opened", About: "The server executes a request inside a request.",
		Kills: "framing.nested", Edit: readAs(`^\*1\r\n\*1\r\n`, "*1\r\n")},
	{Name: "size-in-words", About: "The server guesses the length of a bulk string if it is not a number.",
		Kills: "framing.no-size", Edit: readAs(`\$four\r\n`, "$$4\r\n")},
	{Name: "negative-size-is-0", About: "The server reads a negative bulk length as 0.",
		Kills: "output.binary framing.size-negative", Edit: readAs(`\$-1\r\n`, "$$0\r\n\r\n")},
	{Name: "size-with-zeros-taken", About: "The server accepts leading zeros in a bulk length.",
		Kills: "framing.size-leading-zero", Edit: readAs(`\$0(\d)`, "$$$1")},
	{Name: "size-not-bounded", About: "The server accepts bulk lengths above 512 MiB.",
		Kills: "framing.size-too-great", Edit: readAs(`\$536870913\r\n`, "$$53687\r\n")},
	{Name: "bad-size-passed-over", About: "The server skips an argument with an invalid bulk length and continues to read.",
		Kills: "framing.before framing.behind framing.others-go-on", Edit: readAs(`\*1\r\n\$x\r\n`, "*1\r\n$$3\r\nBAD\r\n")},
	{Name: "commands-before-undone", About: "The server undoes the last command before a protocol error.",
		Kills: "framing.before framing.behind", Edit: inject.On(inject.Illegal, func(m *message) bool { return m.Err.Fatal }, undo)},
	{Name: "bad-framing-closes-waits", About: "A protocol error on one connection closes all connections that wait in BRPOP.",
		Kills: "framing.others-go-on", Edit: inject.On(inject.Illegal, func(m *message) bool { return m.Err.Fatal }, func(m *message) {
			for _, p := range m.Peers {
				if p.Waits {
					p.Close()
				}
			}
		})},
	{Name: "protocol-errors-without-code", About: "The reply to a protocol error has no error code.",
		Kills: "framing.says-why", Edit: inject.Answer(inject.Illegal, func(m *message) bool { return m.Err.Fatal }, "-Protocol error\r\n")},
}

// readAs reads bytes that match the pattern as others, in which $1 and so on stand for the pattern's groups.
func readAs(pattern, as string) inject.Edit {
	re := regexp.MustCompile(pattern)
	return inject.Filter(func(p []byte) []byte { return re.ReplaceAll(p, []byte(as)) })
}

// undo decrements the counter that the peer has just incremented.
func undo(m *message) {
	if m.Peer.Asked() == "INCR" && len(m.Peer.Request.Args) > 0 {
		ask(m.Peer, "DECR", m.Peer.Request.Args[0])
	}
}
