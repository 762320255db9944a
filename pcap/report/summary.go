package report

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"jobwire/codec"
	"jobwire/internal/prose"
	"jobwire/internal/version"
	"jobwire/pcap"
)

// Summary counts messages by protocol, direction and type.
type Summary struct {
	protocols map[*codec.Protocol]*tally
	last      *codec.Protocol
	tally     *tally // of last
}

// tally counts the messages of one protocol.
type tally struct {
	rows  [2][]int           // by the index of the message type
	words [2]map[string]*int // counts by word, for messages whose type does not determine the name
}

// adminName is the name for the text messages of a protocol that also has binary messages.
const adminName = "admin"

// isAdmin reports whether a protocol has both text messages and binary messages.
func isAdmin(p *codec.Protocol) bool { return p.Framing.Header != nil && p.Framing.Lines != nil }

// maxWords limits the number of different words that are counted.
const maxWords = 1000

// Add counts an item, if it is a message.
func (s *Summary) Add(it *pcap.Item) {
	if it.Kind > pcap.Violates {
		return
	}
	p := it.Conn.Protocol
	if p != s.last {
		s.last, s.tally = p, s.tallyOf(p)
	}
	if t := it.Frame.Type; t != nil && !t.AnyCommand && !t.Worded {
		s.tally.rows[it.From][t.Index]++
		return
	}
	s.tally.count(it.From, word(it))
}

// isName reports whether a word begins with a letter. A value in RESP begins with another character.
func isName(word string) bool { return word != "" && (word[0]|0x20 >= 'a' && word[0]|0x20 <= 'z') }

// tallyOf returns the counts of a protocol, and creates them at its first message.
func (s *Summary) tallyOf(p *codec.Protocol) *tally {
	if s.protocols == nil {
		s.protocols = map[*codec.Protocol]*tally{}
	}
	t := s.protocols[p]
	if t == nil {
		t = &tally{rows: [2][]int{make([]int, len(p.Types)), make([]int, len(p.Types))}, words: [2]map[string]*int{{}, {}}}
		s.protocols[p] = t
	}
	return t
}

// count counts a text message by its word. After maxWords different words, further ones are counted as "other".
func (t *tally) count(from codec.Side, word []byte) {
	of := t.words[from]
	n := of[string(word)]
	if n == nil && len(of) >= maxWords {
		word = []byte("other")
		n = of["other"]
	}
	if n == nil {
		n = new(int)
		of[string(word)] = n
	}
	*n++
}

// word returns the first word of a text message. For a packet of unknown type it returns the number of the
// type.
func word(it *pcap.Item) []byte {
	b := it.Raw
	if f := it.Frame; f.Type != nil {
		for i := range f.Spans {
			if !f.Spans[i].Field.Derived() {
				b = f.Value(i)
				break
			}
		}
		if it.From == codec.Peer {
			b = bytes.ToUpper(b)
		}
	} else if len(f.Spans) > 1 && f.Spans[1].Field.Kind == codec.Code {
		return fmt.Appendf(nil, "type %d", codec.BigEndian(f.Value(1)))
	}
	if it.Kind == pcap.Violates && it.Err.Rule == it.Conn.Protocol.Complete {
		return []byte("(incomplete)")
	}
	b = b[:min(len(b), 32)]
	if k := bytes.IndexAny(b, " \t\r\n\x00"); k >= 0 {
		b = b[:k]
	}
	return b
}

// wordOf returns the protocol and name under which a summary counts messages of a type.
func wordOf(p *codec.Protocol, t *codec.Type) (protocol, name string) {
	protocol, name = p.Name, t.Name
	if isName(t.Word) {
		name, _, _ = strings.Cut(t.Word, " ")
	}
	if t.End != "" && isAdmin(p) {
		protocol = adminName
	}
	return protocol, name
}

// Report is the JSON form of a summary.
type Report struct {
	version.Head
	Messages map[string]Directions `json:"messages"` // by protocol
	pcap.Stats
	Rules map[codec.RuleID]int `json:"rules,omitempty"` // violations of each rule
}

// Directions are counts by type, for both directions.
type Directions struct {
	ToServer map[string]int `json:"to_server"`
	ToClient map[string]int `json:"to_client"`
}

// of returns the counts of the messages that a side sent.
func (d *Directions) of(from codec.Side) map[string]int {
	if from == codec.Server {
		return d.ToClient
	}
	return d.ToServer
}

// Report returns the counts of the summary and of the decoder.
func (s *Summary) Report(d *pcap.Decoder) *Report {
	r := &Report{Head: version.NewHead(), Messages: map[string]Directions{}, Stats: d.Stats(), Rules: d.Rules()}
	add := func(protocol string, from codec.Side, name string, n int) {
		if _, ok := r.Messages[protocol]; !ok {
			r.Messages[protocol] = Directions{map[string]int{}, map[string]int{}}
		}
		dirs := r.Messages[protocol]
		dirs.of(from)[name] += n
	}
	for p, t := range s.protocols {
		for from := codec.Peer; from <= codec.Server; from++ {
			for i, n := range t.rows[from] {
				if n > 0 {
					protocol, name := wordOf(p, p.Types[i])
					add(protocol, from, name, n)
				}
			}
			for w, n := range t.words[from] {
				protocol := p.Name
				if isAdmin(p) && !strings.HasPrefix(w, "type ") {
					protocol = adminName
				}
				add(protocol, from, w, *n)
			}
		}
	}
	return r
}

// WriteText writes the report as text, in lines of at most width characters where the words allow it.
func (r *Report) WriteText(w io.Writer, width int) error {
	var b bytes.Buffer
	row := func(n int64, text string) {
		fmt.Fprintln(&b, prose.Wrap(fmt.Sprintf("%12d  ", n), strings.Repeat(" ", 14), text, width))
	}
	fmt.Fprintf(&b, "%d packets, %d connections, %d bytes of data; jobwire %s\n", r.Packets, r.Connections, r.StreamBytes,
		r.Jobwire.Version)
	for _, p := range slices.Sorted(maps.Keys(r.Messages)) {
		d := r.Messages[p]
		for _, dir := range []struct {
			name   string
			counts map[string]int
		}{{"to server", d.ToServer}, {"to client", d.ToClient}} {
			if len(dir.counts) == 0 {
				continue
			}
			fmt.Fprintf(&b, "\n%s, %s\n", p, dir.name)
			for _, t := range slices.Sorted(maps.Keys(dir.counts)) {
				row(int64(dir.counts[t]), t)
			}
		}
	}
	b.WriteByte('\n')
	for _, c := range []struct {
		n    int64
		text string
	}{
		{int64(r.Violations), "messages that break a rule"},
		{int64(r.Likely), "likely messages, which are not counted above: the capture does not prove where they begin"},
		{int64(r.Dropped), "packets dropped, because they arrived faster than jobwire read them"},
		{int64(r.Gaps), "gaps: data that is missing in the capture"},
		{int64(r.CutPackets), "packets truncated by the snap length"},
		{r.Missing, "bytes missing in gaps and truncated packets"},
		{r.Skipped, fmt.Sprintf("bytes skipped on %d connections: the beginning or another part of these connections is missing, and the capture does not prove where messages begin in these bytes", r.SkippedConnections)},
		{r.Omitted, "bytes skipped in messages of more than 17 MiB, of which only the beginning is decoded"},
		{int64(r.Truncated), "incomplete messages"}, {int64(r.Unknown), "connections of unknown protocol"},
		{int64(r.Duplicates), "duplicate TCP segments (retransmissions)"},
		{int64(r.Decrypted), "TLS connections decrypted"},
		{int64(r.Conflicts), "retransmissions with other data than before"},
		{int64(r.Damaged), "packets with damaged headers"},
		{int64(r.GivenUp), "messages and connections left out at a memory limit"},
	} {
		if c.n > 0 {
			row(c.n, c.text)
		}
	}
	for _, header := range slices.Sorted(maps.Keys(r.NotUnderstood)) {
		row(int64(r.NotUnderstood[header]), "packets that jobwire does not read: "+header)
	}
	for _, reason := range slices.Sorted(maps.Keys(r.Undecrypted)) {
		row(int64(r.Undecrypted[reason]), "TLS connections not decrypted: "+reason)
	}
	for _, id := range slices.Sorted(maps.Keys(r.Rules)) {
		row(int64(r.Rules[id]), fmt.Sprintf("[%s]", id))
	}
	_, err := w.Write(bytes.TrimLeft(b.Bytes(), "\n"))
	return err
}
