package mutants

import (
	"bytes"
	"net"
	"regexp"
	"strings"

	"jobwire/codec"
	protocol "jobwire/codec/beanstalk"
	"jobwire/refserver/mutant"
)

// lines are faults of section "Protocol": where a line ends, and how commands follow
// each other.
var lines = []Mutant{
	{Name: "lf-ends-a-line", About: "LF alone ends a line.",
		Kills: cases("line.lf-alone line.lf-inside"), Codec: codec.Options{Waive: []codec.RuleID{protocol.RuleLineCRLF}}},
	{Name: "cr-ends-a-line", About: "CR alone ends a line.",
		Kills: cases("line.cr-inside"),
		Hook: refused(`\r[a-z]`, func(b *bench, c *conn, text string) {
			line, rest, _ := strings.Cut(text, "\r")
			b.feed(c, line+"\r\n")
			b.feed(c, rest)
		})},
	{Name: "crs-trimmed", About: "Any number of CR may stand at the end of a line.",
		Kills: cases("line.cr-twice"), Hook: readAs(`^(.*[^\r])\r\r+\n$`, "$1\r\n")},
	{Name: "empty-line-passed-over", About: "An empty line is not answered.",
		Kills: cases("line.empty"), Hook: passedOver(`^\r\n$`)},
	{Name: "nul-ends-a-line", About: "What stands behind a NUL in a line is not seen.",
		Kills: cases("line.nul-inside"), Hook: readAs("(?s)^([^\x00]+)\x00.*", "$1\r\n")},
	{Name: "line-of-221", About: "A line may have no more than 221 bytes.",
		Kills: cases("line.222 line.223 line.224 line.at-the-limit-unknown"), Codec: codec.Options{MaxLine: 221}},
	{Name: "line-of-222", About: "A line may have no more than 222 bytes.",
		Kills: cases("line.223 line.224 line.at-the-limit-unknown"), Codec: codec.Options{MaxLine: 222}},
	{Name: "line-of-223", About: "A line may have no more than 223 bytes.",
		Kills: cases("line.224 line.at-the-limit-unknown"), Codec: codec.Options{MaxLine: 223}},
	{Name: "long-nonsense-malformed", About: "A long line without a command counts as malformed.",
		Kills: cases("line.at-the-limit-unknown"), Hook: refusedAs(`^[a-z]{200,}\r\n$`, "BAD_FORMAT")},
	{Name: "first-byte-too-many-awaits-more", About: "A line that is too long by one byte is not answered.",
		Kills: cases("line.225"), Hook: passedOver(`^pause-tube n{200} \d{11}\r\n$`)},
	{Name: "second-byte-too-many-closes", About: "A line that is too long by two bytes ends the connection.",
		Kills: cases("line.226"), Hook: closes(`^pause-tube n{200} \d{12}\r\n$`)},
	{Name: "cr-at-the-limit-ends-a-line", About: "A CR that just fits into the line's memory ends the line.",
		Kills: cases("line.cut-at-the-limit"),
		Hook: func(b *bench) {
			b.wrap = func(c net.Conn) net.Conn {
				return mutant.Reading(c, func(p []byte) (int, error) {
					n, err := c.Read(p)
					if n == 224 && n < len(p) && p[n-1] == '\r' {
						p[n] = '\n'
						n++
					}
					return n, err
				})
			}
		}},
	{Name: "long-line-refused-twice", About: "A line that fills a buffer of 4 KiB is refused once for each.",
		Kills: cases("line.8k"),
		Hook: refused(`^x{1000}.*\r\n$`, func(b *bench, c *conn, text string) {
			for range 1 + len(text)/4096 {
				b.say(c, "BAD_FORMAT")
			}
		})},
	{Name: "rest-of-a-long-line-run", About: "Behind the first 224 bytes of a line that is too long a command begins.",
		Kills: cases("line.holds-commands"),
		Hook: refused(`(?s)^.{224}list`, func(b *bench, c *conn, text string) {
			b.say(c, "BAD_FORMAT")
			b.feed(c, text[224:])
		})},
	{Name: "endless-line-ends-the-server", About: "A line that goes on for ever overflows.",
		Kills: cases("line.without-end"),
		Hook: func(b *bench) {
			b.rejected = func(c *conn, _ *frame, e *codec.Error) bool {
				if e.Fatal {
					b.die(c)
				}
				return e.Fatal
			}
		}},
	{Name: "piece-without-end-lost", About: "What arrives without an end of line in it is thrown away.",
		Kills: cases("line.in-pieces body.in-pieces line.cut-at-the-limit"),
		Hook: wrapped(func(p []byte) []byte {
			if bytes.IndexByte(p, '\n') < 0 && len(p) < 512 {
				return nil
			}
			return p
		})},
	{Name: "last-lf-not-awaited", About: "A put is carried out before the LF behind its body is there.",
		Kills: cases("put.body-without-its-end"),
		Hook: func(b *bench) {
			b.decode = func(s codec.Session, p []byte, f *frame) (int, error) {
				n, err := s.Decode(codec.Peer, p, f)
				if err == codec.ErrShort && inBody(p) && p[len(p)-1] == '\r' {
					return s.Decode(codec.Peer, append(bytes.Clone(p), '\n'), f)
				}
				return n, err
			}
		}},
	{Name: "first-reply-overtaken", About: "The first reply to list-tube-used is overtaken by what is asked for next.",
		Kills: cases("pipeline.one-write"), Faults: []string{"delay USING 60ms when tube=default nth=1"}},
	{Name: "body-before-a-pipeline-cut-off", About: "A body ends with its first line if more has arrived behind it.",
		Kills: cases("pipeline.cut-in-a-body"),
		Hook: func(b *bench) {
			b.decode = func(s codec.Session, p []byte, f *frame) (int, error) {
				n, err := s.Decode(codec.Peer, p, f)
				if err == nil && inBody(p) && n < len(p) {
					if k := bytes.Index(f.Arg(4), []byte("\r\n")); k >= 0 {
						stop := n - len(f.Arg(4)) + k
						return stop, &codec.Error{Rule: protocol.RulePutCRLF, Offset: stop - 2, Field: "Body", Detail: "the line ends"}
					}
				}
				return n, err
			}
		}},
	{Name: "first-peek-overtaken", About: "The first job that a connection peeks at is overtaken by other replies.",
		Kills: cases("pipeline.many half-closed.replies"), Faults: []string{"delay FOUND 60ms nth=1"}},
}

// numbers are faults of how integers are read.
var numbers = []Mutant{
	{Name: "leading-zero-refused", About: "A put with a leading zero in a number is refused.",
		Kills: cases("number.leading-zeros"),
		Hook: func(b *bench) {
			re := regexp.MustCompile(`^put.* 0\d`)
			b.on("put", func(c *conn, f *frame) {
				line, _, _ := strings.Cut(string(f.Raw), "\r\n")
				if re.MatchString(line) {
					b.say(c, "BAD_FORMAT")
					return
				}
				b.pass(c, f)
			})
		}},
	{Name: "sign-dropped", About: "A minus before a number is not seen.",
		Kills: cases("number.negative number.kick-negative"), Hook: readAs(`^(kick|delete|peek|touch) -(\d+)\r\n$`, "$1 $2\r\n")},
	{Name: "plus-passed-over", About: "A command with a plus before its number is not answered.",
		Kills: cases("number.plus"), Hook: passedOver(`^[a-z-]+ \+\d`)},
	{Name: "letters-are-zero", About: "A word where a number is due counts as zero.",
		Kills: cases("number.letters"), Hook: readAs(`^(delete|kick|touch) [a-z]{2,}\r\n$`, "$1 0\r\n")},
	{Name: "letters-behind-digits-cut-off", About: "What stands behind the digits of a number is not seen.",
		Kills: cases("number.letters-behind number.kick-letters-behind"), Hook: readAs(`^(delete|kick|peek) (\d+)[a-z.]\S*\r\n$`, "$1 $2\r\n")},
	{Name: "nothing-is-zero", About: "An empty number counts as zero.",
		Kills: cases("number.empty"), Hook: readAs(`^(delete|kick|peek) \r\n$`, "$1 0\r\n")},
	{Name: "id-of-32-bits", About: "An ID of 33 bits is malformed.",
		Kills: cases("number.2-to-the-32"),
		Hook:  refuses("peek delete", "BAD_FORMAT", func(a []string) bool { return above(a[0], 1<<32) && !above(a[0], 1<<33) })},
	{Name: "id-of-63-bits", About: "An ID of 64 bits is malformed.",
		Kills: cases("number.highest delete.not-there peek.not-there"),
		Hook:  refuses("peek delete", "BAD_FORMAT", func(a []string) bool { return above(a[0], 1<<63) })},
	{Name: "overflow-closes", About: "To delete a job whose ID has more than 64 bits ends the connection.",
		Kills: cases("number.beyond-64-bits"), Hook: closes(`^delete \d{20,}\r\n$`)},
	{Name: "id-wraps-at-64-bits", About: "An ID is taken modulo 2^64.",
		Kills: cases("number.wraps"), Hook: readAs(`^(peek|delete) 1844674407370955161[67]\r\n$`, "$1 1\r\n")},
	{Name: "id-wraps-at-32-bits", About: "An ID is taken modulo 2^32.",
		Kills: cases("number.wraps"),
		Hook: takenFor("peek", func(a []string) []string {
			if above(a[0], 1<<32) && !above(a[0], 1<<33) {
				a[0] = "1"
			}
			return a
		})},
	{Name: "bound-of-31-bits", About: "A bound of kick of 32 bits is malformed.",
		Kills: cases("number.kick-bound"),
		Hook:  refuses("kick", "BAD_FORMAT", func(a []string) bool { return above(a[0], 1<<31) })},
}

// names are faults of how the names of tubes are read.
var names = []Mutant{
	{Name: "last-hyphen-refused", About: "A name must not end with a hyphen either.",
		Kills: cases("name.all-characters"),
		Hook:  refuses("use", "BAD_FORMAT", func(a []string) bool { return strings.HasSuffix(a[0], "-") })},
	{Name: "letter-first", About: "A name has to begin with a letter.",
		Kills: cases("name.first-characters"),
		Hook: refuses("use", "BAD_FORMAT", func(a []string) bool {
			return strings.IndexByte("+/;.$_()0123456789", a[0][0]) >= 0
		})},
	{Name: "leading-hyphen-dropped", About: "A hyphen before a name is not seen.",
		Kills: cases("name.leading-hyphen"), Hook: readAs(`^(use|watch|ignore|stats-tube|pause-tube) -(\w+.*)\r\n$`, "$1 $2\r\n")},
	{Name: "punctuation-dropped", About: "Signs that a name may not hold are not seen.",
		Kills: cases("name.punctuation"), Hook: readAs(`^use ([a-z]+)[!,:@=#*\\~]([a-z]*)\r\n$`, "use $1$2\r\n")},
	{Name: "names-of-utf-8", About: "A name may hold letters beyond ASCII.",
		Kills: cases("name.beyond-ascii"), Hook: readAs("^use ([a-z]+)\u00e9\r\n$", "use $1\r\n")},
	{Name: "no-name-is-default", About: "An empty name stands for default.",
		Kills: cases("name.empty"), Hook: readAs(`^(use|watch|ignore|stats-tube) \r\n$`, "$1 default\r\n")},
	{Name: "two-characters-at-least", About: "A name to watch has two characters or more.",
		Kills: cases("name.one-character"),
		Hook:  refuses("watch", "BAD_FORMAT", func(a []string) bool { return len(a[0]) < 2 })},
	{Name: "name-of-199", About: "A name may have no more than 199 bytes.",
		Kills: cases("name.200"),
		Hook:  refuses("use watch", "BAD_FORMAT", func(a []string) bool { return len(a[0]) > 199 })},
	{Name: "long-name-cut-off", About: "A name that is too long is cut off.",
		Kills: cases("name.201"), Hook: readAs(`^(use|watch|ignore) (\S{200})\S\r\n$`, "$1 $2\r\n")},
	{Name: "names-in-small-letters", About: "To watch, capitals count as small letters.",
		Kills: cases("name.case-matters"),
		Hook:  takenFor("watch", func(a []string) []string { return []string{strings.ToLower(a[0])} })},
	{Name: "names-of-commands-refused", About: "A tube must not have the name of a command.",
		Kills: cases("name.word-of-the-protocol"),
		Hook: refuses("use", "BAD_FORMAT", func(a []string) bool {
			t := protocol.Protocol.TypeNamed(a[0])
			return t != nil && t.Sends(codec.Peer)
		})},
}
