package mutants

import (
	"bytes"
	"net"
	"strings"

	"jobwire/codec"
	protocol "jobwire/codec/beanstalk"
	"jobwire/refserver/inject"
)

// lines are faults of section "Protocol": where a line ends, and how commands follow
// each other.
var lines = []row{
	{Name: "lf-ends-a-line", About: "The server accepts LF alone as the end of a line.",
		Kills: "line.lf-alone line.lf-inside", Codec: codec.Options{Waive: []codec.RuleID{protocol.RuleLineCRLF}}},
	{Name: "cr-ends-a-line", About: "The server accepts CR alone as the end of a line.",
		Kills: "line.cr-inside", Edit: inject.On(inject.Illegal, text(`\r[a-z]`), func(m *message) {
			m.Drop()
			line, rest, _ := strings.Cut(m.Text(), "\r")
			m.Peer.Feed(line + "\r\n")
			m.Peer.Feed(rest)
		})},
	{Name: "crs-trimmed", About: "The server accepts several CR at the end of a line.",
		Kills: "line.cr-twice", Edit: readAs(`^(.*[^\r])\r\r+\n$`, "$1\r\n")},
	{Name: "empty-line-passed-over", About: "The server does not reply to an empty line.",
		Kills: "line.empty", Edit: inject.Ignore(inject.Illegal, text(`^\r\n$`))},
	{Name: "nul-ends-a-line", About: "The server ignores the rest of a line after a NUL.",
		Kills: "line.nul-inside", Edit: readAs("(?s)^([^\x00]+)\x00.*", "$1\r\n")},
	{Name: "line-of-221", About: "The server rejects lines of more than 221 bytes.",
		Kills: "line.222 line.223 line.224 line.at-the-limit-unknown", Codec: codec.Options{MaxLine: 221}},
	{Name: "line-of-222", About: "The server rejects lines of more than 222 bytes.",
		Kills: "line.223 line.224 line.at-the-limit-unknown", Codec: codec.Options{MaxLine: 222}},
	{Name: "line-of-223", About: "The server rejects lines of more than 223 bytes.",
		Kills: "line.224 line.at-the-limit-unknown", Codec: codec.Options{MaxLine: 223}},
	{Name: "long-nonsense-malformed", About: "The server replies BAD_FORMAT instead of UNKNOWN_COMMAND to a long line without a command.",
		Kills: "line.at-the-limit-unknown", Edit: inject.Answer(inject.Illegal, text(`^[a-z]{200,}\r\n$`), "BAD_FORMAT")},
	{Name: "first-byte-too-many-awaits-more", About: "The server does not reply to a line that is one byte too long.",
		Kills: "line.225", Edit: inject.Ignore(inject.Illegal, text(`^pause-tube n{200} \d{11}\r\n$`))},
	{Name: "second-byte-too-many-closes", About: "The server closes the connection after a line that is two bytes too long.",
		Kills: "line.226", Edit: inject.Hangup(inject.Illegal, text(`^pause-tube n{200} \d{12}\r\n$`))},
	{Name: "cr-at-the-limit-ends-a-line", About: "The server accepts CR alone as the end of a line if the CR is at the maximum length.",
		Kills: "line.cut-at-the-limit", Edit: inject.Wrap(func(c net.Conn) net.Conn {
			return inject.Reading(c, func(p []byte) (int, error) {
				n, err := c.Read(p)
				if n == 224 && n < len(p) && p[n-1] == '\r' {
					p[n] = '\n'
					n++
				}
				return n, err
			})
		})},
	{Name: "long-line-refused-twice", About: "The server replies to a line that is too long once for each 4 KiB.",
		Kills: "line.8k", Edit: inject.On(inject.Illegal, text(`^x{1000}.*\r\n$`), func(m *message) {
			for range 1 + len(m.Frame.Raw)/4096 {
				m.Answer("BAD_FORMAT")
			}
		})},
	{Name: "rest-of-a-long-line-run", About: "The server executes the part of a line after its first 224 bytes as a command.",
		Kills: "line.holds-commands", Edit: inject.On(inject.Illegal, text(`(?s)^.{224}list`), func(m *message) {
			rest := m.Text()[224:]
			m.Answer("BAD_FORMAT")
			m.Peer.Feed(rest)
		})},
	{Name: "endless-line-ends-the-server", About: "The server crashes on a line that does not end.",
		Kills: "line.without-end", Edit: inject.Crash(inject.Illegal, func(m *message) bool { return m.Err.Fatal })},
	{Name: "piece-without-end-lost", About: "The server discards a segment that contains no end of line.",
		Kills: "line.in-pieces body.in-pieces line.cut-at-the-limit", Edit: inject.Filter(func(p []byte) []byte {
			if bytes.IndexByte(p, '\n') < 0 && len(p) < 512 {
				return nil
			}
			return p
		})},
	{Name: "last-lf-not-awaited", About: "The server executes a put before the LF after its body has arrived.",
		Kills: "put.body-without-its-end", Edit: inject.Incomplete(func(_ codec.Session, p []byte) []byte {
			if inBody(p) && p[len(p)-1] == '\r' {
				return append(bytes.Clone(p), '\n')
			}
			return nil
		})},
	{Name: "first-reply-overtaken", About: "The server sends the reply to the next command before the first reply to list-tube-used.",
		Kills: "pipeline.one-write", Fault: "delay USING 60ms when tube=default nth=1"},
	{Name: "body-before-a-pipeline-cut-off", About: "The server truncates a body after its first line if more commands have arrived.",
		Kills: "pipeline.cut-in-a-body", Edit: inject.Decode(func(s codec.Session, p []byte, f *codec.Frame) (int, error) {
			n, err := s.Decode(codec.Peer, p, f)
			if err == nil && inBody(p) && n < len(p) {
				_, body, _ := bytes.Cut(p[:n-2], []byte("\r\n"))
				if k := bytes.Index(body, []byte("\r\n")); k >= 0 {
					stop := n - len(body) + k
					return stop, &codec.Error{Rule: protocol.RulePutCRLF, Offset: stop - 2, Field: "Body", Detail: "the line ends"}
				}
			}
			return n, err
		})},
	{Name: "first-peek-overtaken", About: "The server sends other replies before the first FOUND of a connection.",
		Kills: "pipeline.many half-closed.replies", Fault: "delay FOUND 60ms nth=1"},
}

// numbers are faults of how integers are read.
var numbers = []row{
	{Name: "leading-zero-refused", About: "The server rejects a number with a leading zero in put.",
		Kills: "number.leading-zeros", Edit: inject.Answer("put", text(`^put[^\r]* 0\d`), "BAD_FORMAT")},
	{Name: "sign-dropped", About: "The server ignores a minus sign before a number.",
		Kills: "number.negative number.kick-negative", Edit: readAs(`^(kick|delete|peek|touch) -(\d+)\r\n$`, "$1 $2\r\n")},
	{Name: "plus-passed-over", About: "The server does not reply to a command with a plus sign before a number.",
		Kills: "number.plus", Edit: inject.Ignore(inject.Illegal, text(`^[a-z-]+ \+\d`))},
	{Name: "letters-are-zero", About: "The server reads a word as 0 where a number is expected.",
		Kills: "number.letters", Edit: readAs(`^(delete|kick|touch) [a-z]{2,}\r\n$`, "$1 0\r\n")},
	{Name: "letters-behind-digits-cut-off", About: "The server ignores letters after the digits of a number.",
		Kills: "number.letters-behind number.kick-letters-behind", Edit: readAs(`^(delete|kick|peek) (\d+)[a-z.]\S*\r\n$`, "$1 $2\r\n")},
	{Name: "nothing-is-zero", About: "The server reads an empty number as 0.",
		Kills: "number.empty", Edit: readAs(`^(delete|kick|peek) \r\n$`, "$1 0\r\n")},
	{Name: "id-of-32-bits", About: "The server rejects IDs of more than 32 bits.",
		Kills: "number.2-to-the-32", Edit: inject.Answer("peek delete", func(m *message) bool { return above(m.Args[0], 1<<32) && !above(m.Args[0], 1<<33) }, "BAD_FORMAT")},
	{Name: "id-of-63-bits", About: "The server rejects IDs of 64 bits.",
		Kills: "number.highest delete.not-there peek.not-there", Edit: inject.Answer("peek delete", func(m *message) bool { return above(m.Args[0], 1<<63) }, "BAD_FORMAT")},
	{Name: "overflow-closes", About: "The server closes the connection after a delete with an ID of more than 64 bits.",
		Kills: "number.beyond-64-bits", Edit: inject.Hangup(inject.Illegal, text(`^delete \d{20,}\r\n$`))},
	{Name: "id-wraps-at-64-bits", About: "The server reads an ID modulo 2^64.",
		Kills: "number.wraps", Edit: readAs(`^(peek|delete) 1844674407370955161[67]\r\n$`, "$1 1\r\n")},
	{Name: "id-wraps-at-32-bits", About: "The server reads an ID modulo 2^32.",
		Kills: "number.wraps", Edit: inject.Change("peek", 0, func(m *message) bool { return above(m.Args[0], 1<<32) && !above(m.Args[0], 1<<33) }, inject.To("1"))},
	{Name: "bound-of-31-bits", About: "The server rejects a bound of kick above 2147483647.",
		Kills: "number.kick-bound", Edit: inject.Answer("kick", func(m *message) bool { return above(m.Args[0], 1<<31) }, "BAD_FORMAT")},
}

// names are faults of how the names of tubes are read.
var names = []row{
	{Name: "last-hyphen-refused", About: "The server rejects tube names that end with a hyphen.",
		Kills: "name.all-characters", Edit: inject.Answer("use", func(m *message) bool { return strings.HasSuffix(m.Args[0], "-") }, "BAD_FORMAT")},
	{Name: "letter-first", About: "The server rejects tube names that do not start with a letter.",
		Kills: "name.first-characters", Edit: inject.Answer("use", func(m *message) bool {
			return strings.IndexByte("+/;.$_()0123456789", m.Args[0][0]) >= 0
		}, "BAD_FORMAT")},
	{Name: "leading-hyphen-dropped", About: "The server ignores a hyphen at the start of a tube name.",
		Kills: "name.leading-hyphen", Edit: readAs(`^(use|watch|ignore|stats-tube|pause-tube) -(\w+.*)\r\n$`, "$1 $2\r\n")},
	{Name: "punctuation-dropped", About: "The server ignores characters that are not allowed in a tube name.",
		Kills: "name.punctuation", Edit: readAs(`^use ([a-z]+)[!,:@=#*\\~]([a-z]*)\r\n$`, "use $1$2\r\n")},
	{Name: "names-of-utf-8", About: "The server accepts non-ASCII letters in tube names.",
		Kills: "name.beyond-ascii", Edit: readAs("^use ([a-z]+)\u00e9\r\n$", "use $1\r\n")},
	{Name: "no-name-is-default", About: "The server reads an empty tube name as default.",
		Kills: "name.empty", Edit: readAs(`^(use|watch|ignore|stats-tube) \r\n$`, "$1 default\r\n")},
	{Name: "two-characters-at-least", About: "\"watch\" rejects tube names of one character.",
		Kills: "name.one-character", Edit: inject.Answer("watch", func(m *message) bool { return len(m.Args[0]) < 2 }, "BAD_FORMAT")},
	{Name: "name-of-199", About: "The server rejects tube names of 200 bytes.",
		Kills: "name.200", Edit: inject.Answer("use watch", func(m *message) bool { return len(m.Args[0]) > 199 }, "BAD_FORMAT")},
	{Name: "long-name-cut-off", About: "The server truncates tube names that are too long.",
		Kills: "name.201", Edit: readAs(`^(use|watch|ignore) (\S{200})\S\r\n$`, "$1 $2\r\n")},
	{Name: "names-in-small-letters", About: "\"watch\" converts tube names to lower case.",
		Kills: "name.case-matters", Edit: inject.Change("watch", 0, nil, strings.ToLower)},
	{Name: "names-of-commands-refused", About: "The server rejects tube names that are command names.",
		Kills: "name.word-of-the-protocol", Edit: inject.Answer("use", func(m *message) bool {
			t := protocol.Protocol.TypeNamed(m.Args[0])
			return t != nil && t.Sends(codec.Peer)
		}, "BAD_FORMAT")},
}
