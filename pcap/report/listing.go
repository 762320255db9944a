package report

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"time"
	"unicode/utf8"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/pcap"
)

// ListingOptions select what is shown of items.
type ListingOptions struct {
	Full  bool // long payloads completely, and the bytes of connections whose protocol is unknown
	Hex   bool // text in hexadecimal too
	Color bool
	Lines bool // messages in line form
	Width int  // length of a line, in characters: longer lines are divided; 0: no limit
	Local *time.Location
}

// Limits of the connections about which a listing keeps something.
const (
	maxNames = 1 << 12 // their names
	maxNoted = 1 << 16 // that their protocol was reported as unknown
)

// foldRows is the number of rows of a long field that are shown.
const foldRows = 4

// Listing writes items as an annotated transcript: a comment with the time, connection and packets, and below
// it the message. It buffers its output; call Flush at the end.
type Listing struct {
	output
	o      ListingOptions
	pr     transcript.Printer
	noted  map[int]bool // connections whose protocol was reported as unknown
	likely bool         // the mark of likely messages was explained
	at     int64        // the second that text shows
	text   []byte

	names map[int]*labels // by connection
	last  *labels
}

// NewListing returns a listing that writes to w.
func NewListing(w io.Writer, o ListingOptions) *Listing {
	l := &Listing{output: output{w: w}, o: o, noted: map[int]bool{}, at: -1, names: map[int]*labels{}}
	l.pr = transcript.Printer{Fold: foldRows, Color: o.Color, Hex: o.Hex}
	if o.Full {
		l.pr.Fold = 0
	}
	if l.o.Local == nil {
		l.o.Local = time.Local
	}
	return l
}

// output is the buffered output of a [Listing] or [JSONLines].
type output struct {
	w   io.Writer
	out []byte
	err error // the first write error
}

const maxOutput = 256 << 10 // bytes that are buffered

// Flush writes the buffered output, and returns the first write error.
func (o *output) Flush() error {
	if len(o.out) > 0 && o.err == nil {
		_, o.err = o.w.Write(o.out)
	}
	o.out = o.out[:0]
	return o.err
}

// flushFull calls Flush if there is much output.
func (o *output) flushFull() {
	if len(o.out) >= maxOutput {
		o.Flush()
	}
}

// Add writes an item.
func (l *Listing) Add(it *pcap.Item) {
	if l.err != nil {
		return
	}
	start := len(l.out)
	l.item(it)
	if l.o.Width > 0 {
		l.out = appendDivided(l.out[:start], bytes.Clone(l.out[start:]), l.o.Width)
	}
	l.flushFull()
}

// item appends the lines of one item to the output: a heading (see head), the message in the notation of transcripts,
// and remarks that begin with #.
func (l *Listing) item(it *pcap.Item) {
	c := it.Conn
	p := c.Protocol
	if p == nil || p.NewSession == nil {
		if !l.o.Full {
			l.foreign(it)
			return
		}
		if p == nil {
			p = nameless
		}
	}
	l.pr.Protocol = p
	l.head(it)
	actor := l.actorOf(p, c)
	if it.Omitted > 0 {
		l.out = fmt.Appendf(l.out, "# message of %d bytes: only the beginning is decoded, %d bytes are skipped\n", it.Size(),
			it.Omitted)
	}
	if it.Kind == pcap.Likely && !l.likely {
		l.likely = true
		l.out = append(l.out, "# ? marks a likely message: the capture does not prove where it begins. --certain shows only proved ones\n"...)
	}
	switch it.Kind {
	case pcap.Message, pcap.Likely:
		if it.Resumed {
			l.namesOf(c).unproved[it.From] = false
			l.out = append(l.out, "# decoding continues here after the gap\n"...)
		}
		switch {
		case it.Frame.Type == nil && (it.Unpaired || it.Kind == pcap.Likely):
			l.out = append(l.out, "# this response answers no request in the capture\n"...)
			l.out = l.pr.AppendFrame(l.out, actor, &codec.Frame{From: it.From, Raw: it.Raw})
		case l.o.Lines:
			l.out = l.pr.AppendLine(l.out, actor, it.Frame)
		default:
			l.out = l.pr.AppendFrame(l.out, actor, it.Frame)
		}
	case pcap.Violates:
		l.out = l.pr.AppendBroken(l.out, actor, it.Frame, it.Raw, it.Err)
	case pcap.Unread:
		if it.Cut {
			l.out = append(l.out, "# incomplete message: the end of the message is missing\n"...)
		}
		if n := l.namesOf(c); it.Unproved && !n.unproved[it.From] {
			n.unproved[it.From] = true
			l.out = fmt.Appendf(l.out, "# not decoded: after the gap, the capture does not prove where messages begin in these bytes; to list\n# everything that looks like a message, use --protocol %s --port %d without --audit\n", c.Protocol.Name, c.Server.Port())
		}
		l.out = l.pr.AppendFrame(l.out, actor, &codec.Frame{From: it.From, Raw: it.Raw})
	case pcap.Gap:
		l.out = fmt.Appendf(l.out, "# gap: %d bytes from %s are missing in the capture\n", it.Missing, c.Name(it.From))
	case pcap.Skipped:
		l.out = append(appendSkipped(l.out, it), '\n')
	case pcap.Conflicts:
		l.out = appendConflict(l.out, it)
	case pcap.Ends:
		l.out = l.pr.AppendEvent(l.out, actor, it.From, transcript.HalfCloses)
	case pcap.Breaks:
		l.out = l.pr.AppendEvent(l.out, actor, it.From, transcript.Resets)
	}
	l.out = append(l.out, '\n')
}

// nameless is the protocol of connections whose protocol was not recognized.
var nameless = &codec.Protocol{Name: "unknown", Title: "unknown", ServerName: "Server", Roles: []string{"Client"}}

// foreign writes a note, once for each connection, about the protocol of a connection whose bytes are not
// shown.
func (l *Listing) foreign(it *pcap.Item) {
	c := it.Conn
	if it.Kind == pcap.Skipped {
		l.head(it)
		l.out = append(appendSkipped(l.out, it), "\n\n"...)
		return
	}
	if l.noted[c.ID] || it.Kind != pcap.Unread {
		return
	}
	if len(l.noted) > maxNoted {
		clear(l.noted)
	}
	l.noted[c.ID] = true
	l.head(it)
	what := "has an unknown protocol; --full shows its bytes"
	if c.Protocol != nil {
		what = "is encrypted (" + c.Protocol.Title + ")"
	}
	l.out = fmt.Appendf(l.out, "# connection %d %s\n\n", c.ID, what)
}

// appendSkipped appends a comment with the number of skipped bytes, and how to list them.
func appendSkipped(dst []byte, it *pcap.Item) []byte {
	packets := fmt.Sprintf("packet %d", it.First)
	if it.Last != it.First {
		packets = fmt.Sprintf("packets %d-%d", it.First, it.Last)
	}
	dst = fmt.Appendf(dst, "# skipped %d bytes in %s: bytes before them are missing in the capture, and it\n# does not prove where messages begin in these bytes", it.Missing, packets)
	name := "PROTOCOL"
	if p := it.Conn.Protocol; p != nil && p.NewSession == nil {
		return dst
	} else if p != nil {
		name = p.Name
	}
	return fmt.Appendf(dst, "; to list everything that looks like a message, use\n# --protocol %s --port %d without --audit", name, it.Conn.Server.Port())
}

// maxVersion is the number of bytes that are shown of each version of data that was sent twice.
const maxVersion = 32

// versions returns the beginnings of the two versions of data that was sent twice.
func versions(it *pcap.Item) (raw, earlier []byte) {
	b := it.Conflict.Earlier
	return it.Raw[:min(len(it.Raw), maxVersion)], b[:min(len(b), maxVersion)]
}

// appendConflict appends a comment with both versions of data that was sent twice.
func appendConflict(dst []byte, it *pcap.Item) []byte {
	raw, earlier := versions(it)
	return fmt.Appendf(dst, "# conflict: %s sent other data again, from byte %d of its stream on\n# decoded:       %q\n# not decoded:   %q\n", it.Conn.Name(it.From), it.Conflict.Offset, earlier, raw)
}

// labels are the names of a connection in a listing.
type labels struct {
	id    int
	ends  [2]string // the addresses, by sender
	actor string    // name of the connecting end; its role becomes known in time
	role  codec.Role

	unproved [2]bool // the last bytes of the sender were reported as not decoded
}

// namesOf returns the names of a connection, and creates them for its first item. The names of at most maxNames
// connections are kept.
func (l *Listing) namesOf(c *pcap.Conn) *labels {
	if l.last != nil && l.last.id == c.ID {
		return l.last
	}
	n := l.names[c.ID]
	if n == nil {
		if len(l.names) > maxNames {
			clear(l.names)
		}
		a, b := c.Peer.String(), c.Server.String()
		n = &labels{id: c.ID, ends: [2]string{codec.Peer: " " + a + " -> " + b, codec.Server: " " + b + " -> " + a}}
		l.names[c.ID] = n
	}
	l.last = n
	return n
}

// actorOf returns the name of the connecting end of a connection.
func (l *Listing) actorOf(p *codec.Protocol, c *pcap.Conn) string {
	n := l.namesOf(c)
	if n.actor == "" || n.role != c.Role {
		role := p.Roles[0]
		for i, r := range p.Roles {
			if c.Role&(1<<i) != 0 {
				role = r
				break
			}
		}
		n.role, n.actor = c.Role, role+" "+strconv.Itoa(c.ID)
	}
	return n.actor
}

// head writes the line above an item: the time, the time since the previous message on the connection, the
// connection, and the packets.
func (l *Listing) head(it *pcap.Item) {
	c := it.Conn
	out := append(l.out, "# "...)
	out = l.time(out, it.At)
	if c.Last != 0 {
		out = append(out, " +"...)
		out = appendSeconds(out, it.At-c.Last)
	}
	out = append(out, " connection "...)
	out = strconv.AppendInt(out, int64(c.ID), 10)
	out = append(out, l.namesOf(c).ends[it.From]...)
	out = append(out, " frame "...)
	out = strconv.AppendInt(out, int64(it.First), 10)
	if it.Last != it.First {
		out = strconv.AppendInt(append(out, '-'), int64(it.Last), 10)
	}
	if it.Kind == pcap.Likely {
		out = append(out, " ?"...)
	}
	l.out = append(out, '\n')
}

// time appends the date and time of day. The text of a second is formatted only once.
func (l *Listing) time(dst []byte, ns int64) []byte {
	sec, frac := ns/1e9, ns%1e9
	if frac < 0 {
		sec, frac = sec-1, frac+1e9
	}
	if sec != l.at || l.text == nil {
		l.at = sec
		l.text = time.Unix(sec, 0).In(l.o.Local).AppendFormat(l.text[:0], "2006-01-02 15:04:05")
	}
	dst = append(dst, l.text...)
	return appendFraction(dst, frac/1e3)
}

// appendSeconds appends a duration in seconds with microseconds.
func appendSeconds(dst []byte, ns int64) []byte {
	if ns < 0 {
		dst, ns = append(dst, '-'), -ns
	}
	dst = strconv.AppendInt(dst, ns/1e9, 10)
	return appendFraction(dst, ns%1e9/1e3)
}

// appendFraction appends microseconds as a decimal point and six digits.
func appendFraction(dst []byte, us int64) []byte {
	dst = append(dst, ".000000"...)
	for i := len(dst) - 1; us > 0; i-- {
		dst[i] += byte(us % 10)
		us /= 10
	}
	return dst
}

// appendDivided appends lines. It divides lines of more than width characters, at spaces where possible: a comment
// continues as a comment, and any other line is indented. Escape sequences of colors take no columns.
func appendDivided(dst, text []byte, width int) []byte {
	for line := range bytes.Lines(text) {
		rest := []byte("    ")
		if line[0] == '#' {
			rest = []byte("# ")
		}
		column, space, start := 0, 0, 0 // space is the index after the last space since start
		for i := 0; i < len(line)-1; {
			if line[i] == 0x1b {
				i += bytes.IndexByte(line[i:], 'm') + 1
				continue
			}
			if column == width {
				end, next := i, i
				if space > start {
					end, next = space-1, space
				}
				dst = append(append(append(dst, bytes.TrimRight(line[start:end], " ")...), '\n'), rest...)
				start, space, i, column = next, next, next, len(rest)
				continue
			}
			if line[i] == ' ' && column > len(rest) {
				space = i + 1
			}
			_, n := utf8.DecodeRune(line[i:])
			i, column = i+n, column+1
		}
		dst = append(dst, line[start:]...)
	}
	return dst
}
