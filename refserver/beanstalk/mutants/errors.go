package mutants

import (
	"strings"

	"jobwire/codec"
	protocol "jobwire/codec/beanstalk"
	"jobwire/refserver/inject"
)

// refusals are faults in the replies to illegal commands.
var refusals = []row{
	{Name: "unknown-with-argument-malformed", About: "The server replies BAD_FORMAT to an unknown command with an argument.",
		Kills: "error.unknown-command", Edit: inject.Answer(inject.Illegal, text(`^get \S+\r\n$`), "BAD_FORMAT")},
	{Name: "capitals-read", About: "The server accepts commands in capital letters.",
		Kills: "error.capitals", Edit: inject.On(inject.Illegal, text(`^[A-Z][A-Za-z]+-`), func(m *message) { m.Drop(); m.Peer.Feed(strings.ToLower(m.Text())) })},
	{Name: "longer-word-read", About: "The server accepts a word that starts with the name of a command.",
		Kills: "error.longer-word", Edit: readAs(`^(stats|reserve|kick-job)[a-z](.*)\r\n$`, "$1$2\r\n")},
	{Name: "shorter-word-read", About: "The server accepts abbreviated commands.",
		Kills: "error.shorter-word", Edit: inject.On(inject.Illegal, text(`^[a-z]+-?\r\n$`), func(m *message) {
			word := strings.TrimSpace(m.Text())
			for _, t := range protocol.Protocol.Types {
				if t.Sends(codec.Peer) && t.Word != word && strings.HasPrefix(t.Word, word) {
					m.Drop()
					m.Peer.Feed(t.Word + "\r\n")
					return
				}
			}
			if protocol.Protocol.TypeNamed(word) != nil {
				m.Answer("BAD_FORMAT")
			} else {
				m.Answer("UNKNOWN_COMMAND")
			}
		})},
	{Name: "replies-passed-over", About: "The server does not reply to a line that only servers send.",
		Kills: "error.reply-as-command", Edit: inject.Ignore(inject.Illegal, text(`^(INSERTED \d+|BAD_FORMAT)\r\n$`))},
	{Name: "use-alone-is-default", About: "The server executes \"use\" without a name as \"use default\".",
		Kills: "error.no-arguments", Edit: readAs(`^use\r\n$`, "use default\r\n")},
	{Name: "delay-left-out", About: "The server reads a missing delay of release, or a missing priority of bury, as 0.",
		Kills: "error.too-few-arguments", Edit: readAs(`^(release \d+ \d+|bury \d+)\r\n$`, "$1 0\r\n")},
	{Name: "surplus-word-overlooked", About: "The server ignores an argument after a command that takes none.",
		Kills: "error.surplus-arguments", Edit: readAs(`^(list-tubes|list-tube-used|stats|peek-ready) \S+\r\n$`, "$1\r\n")},
	{Name: "surplus-number-overlooked", About: "The server ignores a second number after an ID or a bound.",
		Kills: "error.surplus-number error.surplus-kick", Edit: readAs(`^(delete|kick|bury \d+) (\d+) \d+\r\n$`, "$1 $2\r\n")},
	{Name: "surplus-timeout-overlooked", About: "The server ignores a second number after a timeout.",
		Kills: "error.surplus-timeout", Edit: readAs(`^reserve-with-timeout (\d+) \d+\r`, "reserve-with-timeout $1\r")},
	{Name: "surplus-name-overlooked", About: "The server ignores a second tube name.",
		Kills: "error.surplus-name", Edit: readAs(`^(use|watch|ignore|stats-tube) (\w+) \w+\r\n$`, "$1 $2\r\n")},
	{Name: "trailing-space-belongs-to-the-word", About: "The server replies UNKNOWN_COMMAND to a command that is followed by a space.",
		Kills: "error.trailing-space", Edit: inject.Answer(inject.Illegal, text(`^list-tube-used \r\n$`), "UNKNOWN_COMMAND")},
	{Name: "two-spaces-pass-over", About: "The server does not reply to a command with two consecutive spaces.",
		Kills: "error.two-spaces", Edit: inject.Ignore(inject.Illegal, text(`^[a-z-]+( \d+)?  \S`))},
	{Name: "leading-space-passed-over", About: "The server does not reply to a line that starts with a space.",
		Kills: "error.leading-space", Edit: inject.Ignore(inject.Illegal, text(`^ `))},
	{Name: "tab-closes", About: "The server closes the connection if a tab follows a command.",
		Kills: "error.tab", Edit: inject.Hangup(inject.Illegal, text(`^[a-z]+\t`))},
	{Name: "fourth-unknown-command-closes", About: "The server closes the connection after the fourth unknown command.",
		Kills: "error.many-in-a-row", Fault: "close UNKNOWN_COMMAND nth=4"},
	{Name: "http-answered", About: "The server replies to an HTTP request in HTTP.",
		Kills: "error.another-protocol", Edit: inject.Answer(inject.Illegal, text(`^GET / HTTP`), "HTTP/1.1 400 Bad Request\r\n\r\n")},
}
