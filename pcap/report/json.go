package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"

	"jobwire/codec"
	"jobwire/pcap"
)

// JSONLines writes items as JSON, one object per line. A string that is not UTF-8 is written with \u00XX
// escapes for its bytes as in Latin-1, so that no byte is lost.
type JSONLines struct {
	output
	full bool
	keys map[*codec.Field]string // names of fields as quoted keys
}

// maxShown is the number of bytes of a value that are written unless full is set.
const maxShown = 256

// NewJSONLines returns a writer to w, which buffers its output. full writes long values completely.
func NewJSONLines(w io.Writer, full bool) *JSONLines {
	return &JSONLines{output: output{w: w}, full: full, keys: map[*codec.Field]string{}}
}

// kindNames are the values of "kind".
var kindNames = [...]string{pcap.Message: "message", pcap.Violates: "violation", pcap.Unread: "unread", pcap.Gap: "gap", pcap.Ends: "end",
	pcap.Breaks: "reset", pcap.Skipped: "skipped", pcap.Conflicts: "conflict", pcap.Likely: "message"}

// Add writes an item.
func (j *JSONLines) Add(it *pcap.Item) {
	if j.err != nil {
		return
	}
	c, out := it.Conn, j.out
	out = append(out, `{"kind":"`...)
	out = append(out, kindNames[it.Kind]...)
	out = append(out, `","time":`...)
	out = appendSeconds(out, it.At)
	out = append(out, `,"frame":`...)
	out = strconv.AppendInt(out, int64(it.Last), 10)
	if it.First != it.Last {
		out = append(out, `,"first_frame":`...)
		out = strconv.AppendInt(out, int64(it.First), 10)
	}
	out = append(out, `,"connection":`...)
	out = strconv.AppendInt(out, int64(c.ID), 10)
	out = append(out, `,"peer":"`...)
	out = c.Peer.AppendTo(out)
	out = append(out, `","server":"`...)
	out = c.Server.AppendTo(out)
	if out = append(out, `","to":"server"`...); it.From == codec.Server {
		out = append(out[:len(out)-len(`"server"`)], `"client"`...)
	}
	if p := c.Protocol; p != nil {
		out = append(append(append(out, `,"protocol":"`...), p.Name...), '"')
	}
	switch it.Kind {
	case pcap.Likely:
		out = j.message(append(out, `,"likely":true`...), it)
	case pcap.Message, pcap.Violates:
		out = j.message(out, it)
	case pcap.Unread:
		if it.Cut {
			out = append(out, `,"cut":true`...)
		}
		if it.Unproved {
			out = append(out, `,"unproved":true`...)
		}
		if it.Omitted > 0 {
			out = strconv.AppendInt(append(out, `,"omitted":`...), int64(it.Omitted), 10)
		}
		out = j.bytes(append(out, `,"raw":`...), it.Raw)
	case pcap.Conflicts:
		raw, earlier := versions(it)
		out = strconv.AppendInt(append(out, `,"offset":`...), int64(it.Conflict.Offset), 10)
		out = j.bytes(append(out, `,"raw":`...), raw)
		out = j.bytes(append(out, `,"earlier":`...), earlier)
	case pcap.Gap, pcap.Skipped:
		key := `,"missing":`
		if it.Kind == pcap.Skipped {
			key = `,"bytes":`
		}
		out = strconv.AppendInt(append(out, key...), int64(it.Missing), 10)
	}
	j.out = append(out, "}\n"...)
	j.flushFull()
}

// NotUnderstood writes the numbers of packets that were not decoded, if there are any.
func (j *JSONLines) NotUnderstood(st pcap.Stats) {
	for _, header := range slices.Sorted(maps.Keys(st.NotUnderstood)) {
		j.out = fmt.Appendf(j.out, `{"kind":"not_understood","header":%q,"packets":%d}`+"\n", header, st.NotUnderstood[header])
	}
}

// message appends the fields of a message to a JSON object: type, size, and arguments by name, or the raw bytes if the
// message is illegal or of unknown type. Repeated fields are in a list.
func (j *JSONLines) message(out []byte, it *pcap.Item) []byte {
	f := it.Frame
	if f.Type != nil {
		out = append(append(append(out, `,"type":"`...), f.Type.Name...), '"')
	}
	out = strconv.AppendInt(append(out, `,"size":`...), int64(it.Size()), 10)
	if it.Omitted > 0 {
		out = strconv.AppendInt(append(out, `,"omitted":`...), int64(it.Omitted), 10)
	}
	if it.Unpaired || it.Conn.Uncertain {
		out = append(out, `,"uncertain":true`...)
	}
	if it.Resumed {
		out = append(out, `,"resumed":true`...)
	}
	if e := it.Err; e != nil {
		out = append(append(append(out, `,"rule":"`...), e.Rule...), '"')
		out = strconv.AppendInt(append(out, `,"offset":`...), int64(e.Offset), 10)
		out = j.bytes(append(out, `,"detail":`...), []byte(e.Detail))
		return j.bytes(append(out, `,"raw":`...), it.Raw)
	}
	if f.Type == nil {
		return j.bytes(append(out, `,"raw":`...), it.Raw)
	}
	out = append(out, `,"args":{`...)
	args, n := true, 0 // repeated fields are in a list after the arguments
	for i := range f.Spans {
		fd := f.Spans[i].Field
		if fd.Derived() {
			continue
		}
		if args && !declares(f.Type, fd) {
			args, n = false, 0
			out = append(out, `},"repeated":[`...)
		}
		if n++; n > 1 {
			out = append(out, ',')
		}
		if !args {
			out = append(out, '{')
		}
		out = append(append(out, j.key(fd)...), ':')
		if fd.Kind == codec.Uint && len(f.Value(i)) <= 8 {
			out = strconv.AppendUint(out, codec.BigEndian(f.Value(i)), 10)
		} else {
			out = j.bytes(out, f.Value(i))
		}
		if !args {
			out = append(out, '}')
		}
	}
	if args {
		return append(out, '}')
	}
	return append(out, ']')
}

// declares reports whether a field belongs to the fixed fields of a message type, and not to the repeated ones.
func declares(t *codec.Type, fd *codec.Field) bool {
	for i := range t.Fields {
		if &t.Fields[i] == fd {
			return true
		}
	}
	return false
}

// key returns the quoted name of a field.
func (j *JSONLines) key(fd *codec.Field) string {
	k, ok := j.keys[fd]
	if !ok {
		k = strconv.Quote(fd.Name)
		if len(j.keys) < maxWords {
			j.keys[fd] = k
		}
	}
	return k
}

const hexDigits = "0123456789abcdef"

// bytes appends a string. If b is not UTF-8, each byte above 0x7f is written as the character with that number.
func (j *JSONLines) bytes(out, b []byte) []byte {
	cut := 0
	if !j.full && len(b) > maxShown {
		cut = len(b) - maxShown
		b = b[:maxShown]
	}
	out = append(out, '"')
	start, valid, checked := 0, false, false
	for i, c := range b {
		if c >= ' ' && c != '"' && c != '\\' && c < 0x7f {
			continue
		}
		if c > 0x7f {
			if !checked {
				valid, checked = utf8.Valid(b), true
			}
			if valid {
				continue
			}
		}
		out = append(out, b[start:i]...)
		start = i + 1
		switch c {
		case '"', '\\':
			out = append(out, '\\', c)
		case '\n':
			out = append(out, `\n`...)
		case '\r':
			out = append(out, `\r`...)
		default:
			out = append(out, `\u00`...)
			out = append(out, hexDigits[c>>4], hexDigits[c&15])
		}
	}
	out = append(out, b[start:]...)
	if cut > 0 {
		out = append(out, `... `...)
		out = strconv.AppendInt(out, int64(cut), 10)
		out = append(out, ` more bytes`...)
	}
	return append(out, '"')
}
