package mutants

import (
	"strings"

	"jobwire/codec"
	protocol "jobwire/codec/beanstalk"
)

// refusals are faults of how errors are told.
var refusals = []Mutant{
	{Name: "unknown-with-argument-malformed", About: "An unknown command that has an argument is called malformed.",
		Kills: cases("error.unknown-command"), Hook: refusedAs(`^get \S+\r\n$`, "BAD_FORMAT")},
	{Name: "capitals-read", About: "A command may be written in capitals.",
		Kills: cases("error.capitals"),
		Hook:  refused(`^[A-Z][A-Za-z]+-`, func(b *bench, c *conn, text string) { b.feed(c, strings.ToLower(text)) })},
	{Name: "longer-word-read", About: "A command is known by how it begins.",
		Kills: cases("error.longer-word"), Hook: readAs(`^(stats|reserve|kick-job)[a-z](.*)\r\n$`, "$1$2\r\n")},
	{Name: "shorter-word-read", About: "A command may be abbreviated.",
		Kills: cases("error.shorter-word"),
		Hook: refused(`^[a-z]+-?\r\n$`, func(b *bench, c *conn, text string) {
			for _, t := range protocol.Protocol.Types {
				if t.Sends(codec.Peer) && t.Word != strings.TrimSpace(text) && strings.HasPrefix(t.Word, strings.TrimSpace(text)) {
					b.feed(c, t.Word+"\r\n")
					return
				}
			}
			if protocol.Protocol.TypeNamed(strings.TrimSpace(text)) != nil {
				b.say(c, "BAD_FORMAT")
			} else {
				b.say(c, "UNKNOWN_COMMAND")
			}
		})},
	{Name: "replies-passed-over", About: "What only servers say is not answered.",
		Kills: cases("error.reply-as-command"), Hook: passedOver(`^(INSERTED \d+|BAD_FORMAT)\r\n$`)},
	{Name: "use-alone-is-default", About: "use without a name means default.",
		Kills: cases("error.no-arguments"), Hook: readAs(`^use\r\n$`, "use default\r\n")},
	{Name: "delay-left-out", About: "release without a delay, or bury without a priority, means 0.",
		Kills: cases("error.too-few-arguments"), Hook: readAs(`^(release \d+ \d+|bury \d+)\r\n$`, "$1 0\r\n")},
	{Name: "surplus-word-overlooked", About: "Words behind a command that takes none are not seen.",
		Kills: cases("error.surplus-arguments"), Hook: readAs(`^(list-tubes|list-tube-used|stats|peek-ready) \S+\r\n$`, "$1\r\n")},
	{Name: "surplus-number-overlooked", About: "A second number behind an ID or a bound is not seen.",
		Kills: cases("error.surplus-number error.surplus-kick"), Hook: readAs(`^(delete|kick|bury \d+) (\d+) \d+\r\n$`, "$1 $2\r\n")},
	{Name: "surplus-timeout-overlooked", About: "A second number behind a timeout is not seen.",
		Kills: cases("error.surplus-timeout"), Hook: readAs(`^reserve-with-timeout (\d+) \d+\r`, "reserve-with-timeout $1\r")},
	{Name: "surplus-name-overlooked", About: "A second name is not seen.",
		Kills: cases("error.surplus-name"), Hook: readAs(`^(use|watch|ignore|stats-tube) (\w+) \w+\r\n$`, "$1 $2\r\n")},
	{Name: "trailing-space-belongs-to-the-word", About: "A space at the end of a line makes a command unknown.",
		Kills: cases("error.trailing-space"), Hook: refusedAs(`^list-tube-used \r\n$`, "UNKNOWN_COMMAND")},
	{Name: "two-spaces-pass-over", About: "A command with two spaces in a row is not answered.",
		Kills: cases("error.two-spaces"), Hook: passedOver(`^[a-z-]+( \d+)?  \S`)},
	{Name: "leading-space-passed-over", About: "A line that begins with a space is not answered.",
		Kills: cases("error.leading-space"), Hook: passedOver(`^ `)},
	{Name: "tab-closes", About: "A tab behind a command ends the connection.",
		Kills: cases("error.tab"), Hook: closes(`^[a-z]+\t`)},
	{Name: "fourth-unknown-command-closes", About: "The fourth unknown command ends the connection.",
		Kills: cases("error.many-in-a-row"), Faults: []string{"close UNKNOWN_COMMAND nth=4"}},
	{Name: "http-answered", About: "A request of HTTP is answered in its own protocol.",
		Kills: cases("error.another-protocol"),
		Hook:  refused(`^GET / HTTP`, func(b *bench, c *conn, _ string) { b.blurt(c, "HTTP/1.1 400 Bad Request\r\n\r\n") })},
}
