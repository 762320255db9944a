package gearman

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"jobwire/codec"
)

// session decodes and encodes the text lines of one connection ("Administrative Protocol").
type session struct {
	opts    codec.Options
	line    codec.Layout
	list    codec.Layout
	form    codec.Layout        // like list, but with no rule waived, to distinguish the forms of replies
	pending codec.FIFO[command] // the text commands that wait for their replies
	partial partial             // the reply whose end has not arrived
	damaged *codec.Type         // the list whose first row was illegal and whose other rows follow, or nil
	reads   int                 // bytes searched for the end of a line, for tests
}

// command is a text command that waits for its reply.
type command struct {
	typ  *codec.Type
	line string // without its end
}

// partial is the position up to which a server's line or list was searched when Decode returned
// [codec.ErrShort]. The next call of Decode continues there, so that a reply that arrives in many pieces is
// searched only once.
type partial struct {
	t    *codec.Type // the type of the list; nil if its first line is incomplete
	line int         // offset of the incomplete line
	rows int         // rows of the list before it
	seen int         // length of the searched input
	ends [2][]byte   // the first and last bytes of the searched input, by which the next input is recognized
}

// resume returns the position up to which the reply that begins b has been searched, or the zero value if b
// does not continue the searched input. Unless the caller returns [codec.ErrShort] again, the next search
// starts at the beginning.
func (s *session) resume(b []byte) partial {
	p := s.partial
	s.partial.seen = 0
	if p.seen == 0 || len(b) < p.seen || !bytes.HasPrefix(b, p.ends[0]) || !bytes.HasSuffix(b[:p.seen], p.ends[1]) {
		return partial{}
	}
	return p
}

// short records the position up to which b was searched, and returns ErrShort.
func (s *session) short(b []byte, t *codec.Type, line, rows int) (int, error) {
	n, ends := min(len(b), 64), s.partial.ends
	s.partial = partial{t, line, rows, len(b), [2][]byte{append(ends[0][:0], b[:n]...), append(ends[1][:0], b[len(b)-n:]...)}}
	return len(b) + 1, codec.ErrShort
}

func newSession(o codec.Options) codec.Session {
	s := newLines(o)
	return framing.Header.Session(&s.opts, s)
}

func newLines(o codec.Options) *session {
	s := &session{opts: o.WithDefaults()}
	s.line = codec.Layout{Form: &commandForm, Options: &s.opts}
	s.list = codec.Layout{Form: &replyForm, Options: &s.opts}
	s.form = s.list
	s.form.Options = &codec.Options{}
	return s
}

// Decode implements [codec.Session] for the administrative protocol, whose messages are lines of text. The session that
// wraps this one decodes the binary packets.
func (s *session) Decode(from codec.Side, b []byte, f *codec.Frame) (int, error) {
	f.Reset(from)
	switch {
	case len(b) == 0:
		return 1, codec.ErrShort
	case from == codec.Peer:
		return s.decodeCommand(b, f)
	}
	return s.decodeReply(b, f)
}

// lineLimit returns the maximum length of a line. A server's reply may list many functions of a worker, so it
// is limited like other data.
func (s *session) lineLimit(from codec.Side) int {
	if from == codec.Server && s.pending.Len() > 0 {
		return s.opts.MaxData
	}
	return s.opts.MaxLine
}

// textLine returns the end of the line that begins at offset at, and the beginning of the next line. If the
// end of the line has not arrived, next is 0. The caller knows that the line does not end before seen.
func (s *session) textLine(from codec.Side, b []byte, at, seen int) (end, next int, err error) {
	limit := s.lineLimit(from)
	stop := min(len(b), at+limit)
	start := min(max(at, seen), stop)
	k := bytes.IndexByte(b[start:stop], '\n')
	if k < 0 {
		s.reads += stop - start
		if len(b) < at+limit {
			return 0, 0, nil
		}
		return 0, 0, &codec.Error{Rule: RuleAdminLine, Offset: at + limit - 1, Field: wordField.Name, Fatal: true,
			Detail: fmt.Sprintf("expected the end of the line within %d bytes, got none", limit)}
	}
	s.reads += k + 1
	end = start + k
	next = end + 1
	if end > at && b[end-1] == '\r' {
		end--
	}
	return end, next, nil
}

// hasWord reports whether a line begins with the word, followed by a space or the end of the line.
func hasWord(line []byte, word string) bool {
	return len(line) >= len(word) && string(line[:len(word)]) == word && (len(line) == len(word) || line[len(word)] == ' ')
}

// decodeCommand decodes a text command, the line at the beginning of b. It records the command as waiting for its
// reply, also if the command is unknown or illegal.
func (s *session) decodeCommand(b []byte, f *codec.Frame) (int, error) {
	end, n, err := s.textLine(codec.Peer, b, 0, 0)
	if err != nil {
		return 0, err
	}
	if n == 0 {
		return len(b) + 1, codec.ErrShort
	}
	if s.pending.Len() >= s.opts.MaxPending {
		return 0, &codec.Error{Rule: RuleAdminPending, Field: wordField.Name, Fatal: true,
			Detail: fmt.Sprintf("expected no further text command while %d text commands wait for their replies, got one",
				s.pending.Len())}
	}
	f.Raw, f.Head = b[:n:n], 1
	f.CRLF = end < n-1
	if s.opts.Waived(RuleAdminSpacing) {
		end = len(bytes.TrimRight(b[:end], " "))
	}
	for i := range lines {
		if t := &lines[i]; t.Req != 0 && hasWord(b[:end], t.Word) {
			f.Type = t
			break
		}
	}
	line := string(bytes.TrimSpace(b[:end]))
	if f.Type == nil {
		s.pending.Push(command{unknownCommand, line})
		f.Spans = append(f.Spans, codec.Span{Field: &wordField, Off: 0, End: end, Next: n})
		return n, &codec.Error{Rule: RuleAdminCommand, Field: wordField.Name,
			Detail: fmt.Sprintf("expected an administrative command, got %q", shorten(b[:end]))}
	}
	s.pending.Push(command{f.Type, line})
	return n, s.wordLine(f, &s.line, &wordField, end, n)
}

// wordLine decodes a line that begins with the word of its message type.
func (s *session) wordLine(f *codec.Frame, l *codec.Layout, word *codec.Field, end, next int) error {
	at := len(f.Type.Word)
	more := at < end
	stop := at
	if more {
		at++
	}
	f.Spans = append(f.Spans, codec.Span{Field: word, Off: 0, End: stop, Next: at})
	var err *codec.Error
	if len(f.Type.Fields) > 0 {
		err = l.Split(f, f.Type.Fields, " ", at, end, more)
	} else if more && at == end {
		err = &codec.Error{Rule: l.Trailing, Offset: stop, Field: word.Name,
			Detail: "expected the end of the line, got a space before it"}
	} else if more {
		err = &codec.Error{Rule: l.Extra, Offset: at, Field: word.Name,
			Detail: fmt.Sprintf("expected no argument after %s, got one", f.Type.Word)}
	}
	f.Spans[len(f.Spans)-1].Next = next
	if err != nil {
		if s.opts.Waived(err.Rule) {
			return nil
		}
		return err
	}
	return nil
}

func names(msgTypes []*codec.Type) string {
	var n []string
	for _, t := range msgTypes {
		n = append(n, t.Name)
	}
	return strings.Join(n, " or ")
}

func shorten(b []byte) []byte { return b[:min(len(b), 40)] }

// replies returns the types that may answer the oldest waiting command, or none if no command waits.
func (s *session) replies() []*codec.Type {
	if s.pending.Len() == 0 {
		return nil
	}
	return s.pending.At(0).typ.Answers
}

// Expect implements [codec.Expecter].
func (s *session) Expect(replies ...*codec.Type) {
	if s.pending.Len() > 0 && s.pending.At(0).typ.Name == "" {
		s.pending.At(0).typ = &codec.Type{Answers: codec.Union(unknownCommand.Answers, replies)}
	}
}

// answered removes the oldest waiting command.
func (s *session) answered() {
	s.partial.seen, s.damaged = 0, nil
	if s.pending.Len() > 0 {
		s.pending.Pop()
	}
}

// decodeReply decodes the reply to the oldest text command that waits: a line, or a list of lines that ends with a line
// of its own. If the first row of a list is illegal, it returns that row as an illegal message and decodes the
// following lines as the rest of the list.
func (s *session) decodeReply(b []byte, f *codec.Frame) (int, error) {
	p := s.resume(b)
	if p.t != nil {
		return s.decodeList(p, b, f)
	}
	end, n, err := s.textLine(codec.Server, b, 0, p.seen)
	if err != nil {
		return 0, err
	}
	if n == 0 {
		return s.short(b, nil, 0, 0)
	}
	if d := s.damaged; d != nil && !s.fits(d, b[:end], f) && likelyList([]*codec.Type{d}, b[:end]) == nil {
		s.answered() // another reply follows, without the end of the list
	}
	replies := s.replies()
	if s.damaged != nil {
		replies = []*codec.Type{s.damaged}
	}
	if replies == nil {
		f.Raw, f.Head = b[:n:n], 1
		f.Spans = append(f.Spans, codec.Span{Field: &replyField, Off: 0, End: end, Next: n})
		return n, &codec.Error{Rule: RuleAdminAsked, Field: replyField.Name,
			Detail: fmt.Sprintf("expected no reply, because no command waits for one, got %q", shorten(b[:end]))}
	}
	var t *codec.Type
	for _, r := range replies {
		if s.fits(r, b[:end], f) {
			t = r
			break
		}
	}
	if t == nil {
		t = likelyList(replies, b[:end])
	}
	if t != nil && t.Stop != "" && !s.fits(t, b[:end], f) {
		f.Raw, f.Type, f.Spans = b[:n:n], t, f.Spans[:0]
		if err := s.list.Split(f, t.Repeat, t.Sep, 0, end, true); err != nil {
			s.damaged = t
			return n, err
		}
		f.Spans = f.Spans[:0] // the rule is waived
	}
	if t != nil && t.Stop != "" {
		return s.decodeList(partial{t: t}, b, f)
	}
	s.answered()
	f.Raw, f.CRLF = b[:n:n], end < n-1
	if t == nil {
		f.Head = 1
		f.Spans = append(f.Spans, codec.Span{Field: &replyField, Off: 0, End: end, Next: n})
		return n, &codec.Error{Rule: RuleAdminReply, Field: replyField.Name,
			Detail: fmt.Sprintf("expected %[2]s, got %[1]q", shorten(b[:end]), names(replies))}
	}
	f.Type = t
	if t.Word != "" {
		f.Head = 1
		return n, s.wordLine(f, &s.list, &replyField, end, n)
	}
	if err := s.list.Split(f, t.Fields, t.Sep, 0, end, true); err != nil {
		return n, err
	}
	f.Spans[len(f.Spans)-1].Next = n
	return n, nil
}

// fits reports whether the first line of a reply matches the type t.
func (s *session) fits(t *codec.Type, line []byte, f *codec.Frame) bool {
	switch {
	case t.Word != "":
		return hasWord(line, t.Word) && len(t.Fields) > 0 == (len(line) > len(t.Word))
	case t == errorLine:
		return s.isError(line)
	case t.Stop == "" || string(line) == t.Stop:
		return true
	}
	probe := codec.Frame{Raw: line, Spans: f.Spans[:0]}
	return s.form.Split(&probe, t.Repeat, t.Sep, 0, len(line), true) == nil
}

// likelyList returns the list among the types of a reply to which a line belongs that has most of the fields of a row,
// but not all of them in their form, or nil.
func likelyList(replies []*codec.Type, line []byte) *codec.Type {
	for _, t := range replies {
		if t.Stop != "" && len(t.Repeat) > 1 && isRow(t, line) {
			return t
		}
	}
	return nil
}

// Forms of error messages, and of lines that are not error messages.
const (
	unlikeError = `(?i)^\S*\d\S*$|\t|^\S+ [\d.a-f:]+ .*:|^ok\b` // a version number, a line of a list, a success
	likeError   = `(?i)^\W*(err|error|unknown|unrecogni[sz]ed|unsupported|invalid|illegal|bad|no such)\b.*\s`
)

var (
	notError  = regexp.MustCompile(unlikeError)
	errorWord = regexp.MustCompile(likeError)
)

// isError reports whether a line is an error message in a server-specific form. A line is not an error
// message if it is another reply, a repetition of the command, a version number, or a line of a list. In
// reply to a command that lists unique IDs, any line may be the first of the list; there, an error message
// must begin with a word such as "error".
func (s *session) isError(line []byte) bool {
	text := bytes.TrimSpace(line)
	if len(text) == 0 || notError.Match(text) || s.pending.Len() > 0 && string(text) == s.pending.At(0).line {
		return false
	}
	var f codec.Frame
	for i := range lines {
		t := &lines[i]
		if t.Res != 0 && t != errorLine && t != anyList && t != anyLine && (string(line) == t.Stop || s.fits(t, line, &f)) {
			return false
		}
	}
	return !slices.Contains(s.replies(), anyList) || SaysError(line)
}

// SaysError reports whether a line begins with a word that marks an error message.
func SaysError(line []byte) bool { return errorWord.Match(line) }

// maxValues limits the values of a list, because their spans need more memory than short values: 32 MiB.
const maxValues = 1 << 20

// isRow reports whether a line may be a row of the list, perhaps an illegal one, because it has most of the fields.
func isRow(t *codec.Type, line []byte) bool {
	n := len(t.Repeat)
	return n == 1 || 2*(1+bytes.Count(line, []byte(t.Sep))) > n
}

// decodeList decodes the lines of a list, including the line that ends it. p is the position up to which the
// list has been searched. A packet and a line that cannot be a row end the list, too. If the line is short, it is a
// damaged end of the list; otherwise it is the beginning of the next message.
func (s *session) decodeList(p partial, b []byte, f *codec.Frame) (int, error) {
	t, at, rows, n := p.t, p.line, p.rows, 0
	var bad *codec.Error
	last := 0 // offset of the line after the last row
	cut := func(next int) {
		last, n = at, next
		bad = &codec.Error{Rule: RuleAdminReply, Offset: at, Field: stopField.Name,
			Detail: "expected a row of the list or its end, got other bytes"}
	}
	for n == 0 {
		if at > 0 && at < len(b) && b[at] == 0 && !s.opts.Waived(RuleAdminReply) {
			cut(at)
			break
		}
		end, next, err := s.textLine(codec.Server, b, at, p.seen)
		seen := next // length of b that is sufficient for this line
		if err != nil {
			seen = at + s.opts.MaxData
		} else if next == 0 {
			seen = len(b)
		}
		switch {
		case err != nil && seen <= s.opts.MaxData+1:
			return 0, err
		case seen > s.opts.MaxData:
			return 0, &codec.Error{Rule: RuleSizeCap, Offset: s.opts.MaxData, Field: stopField.Name, Fatal: true,
				Detail: fmt.Sprintf("expected a list of at most %d bytes, got more", s.opts.MaxData)}
		case next == 0:
			return s.short(b, t, at, rows)
		case string(b[at:end]) == t.Stop:
			last, n = at, next
			f.CRLF = end < next-1
		case rows == maxValues/len(t.Repeat):
			return 0, &codec.Error{Rule: RuleSizeCap, Offset: at, Field: t.Repeat[0].Name, Fatal: true,
				Detail: fmt.Sprintf("expected a list of at most %d rows, got more", rows)}
		case at == 0 || isRow(t, b[at:end]) || s.opts.Waived(RuleAdminReply):
		case end-at <= len(t.Stop):
			cut(next)
		default:
			cut(at)
		}
		at = next
		rows++
	}
	defer s.answered() // the limit of the lines is that of a reply
	f.Type, f.Raw = t, b[:n:n]
	if k := len(t.Repeat); k > 1 { // a list may have a million lines: do not copy their spans
		f.Spans = slices.Grow(f.Spans, 1+min(bytes.Count(f.Raw, []byte("\n"))*k, bytes.Count(f.Raw, []byte(t.Sep))/(k-1)*k))
	}
	for at = 0; at < n; {
		end, next, _ := s.textLine(codec.Server, b, at, 0)
		if at == last && bad != nil {
			break
		}
		if mixed := end < next-1; mixed != f.CRLF && bad == nil {
			bad = &codec.Error{Rule: RuleAdminReply, Offset: end, Field: stopField.Name,
				Detail: "expected all lines of the list to end with LF, or all with CR LF, got both line ends"}
		}
		if at == last {
			f.Spans = append(f.Spans, codec.Span{Field: &stopField, Off: at, End: end, Next: next})
		} else if err := s.list.Split(f, t.Repeat, t.Sep, at, end, true); err != nil {
			return n, err
		} else {
			f.Spans[len(f.Spans)-1].Next = next
		}
		at = next
	}
	if bad != nil {
		return n, bad
	}
	return n, nil
}

// Append implements [codec.Session] for the administrative protocol. It returns an error if no text command waits for
// the reply, or if an argument or a line is illegal.
func (s *session) Append(dst []byte, from codec.Side, m *codec.Message) ([]byte, error) {
	start, t := len(dst), m.Type
	if from == codec.Server && !s.awaits(t) && !s.opts.Waived(RuleAdminAsked) {
		return dst, &codec.Error{Rule: RuleAdminAsked, Field: replyField.Name,
			Detail: fmt.Sprintf("expected a text command that waits for the reply %s, got none", t.Name)}
	}
	out := append(dst, t.Word...)
	if t.Word != "" && len(m.Args) > 0 {
		out = append(out, ' ')
	}
	layout := &s.line
	if from == codec.Server {
		layout = &s.list
	}
	out, err := layout.Join(out, start, m)
	if err != nil {
		return dst, err
	}
	out = m.AppendEnd(append(out, t.Stop...))
	if err := s.checkLines(out[start:], from, t); err != nil {
		return dst, err
	}
	if from == codec.Server {
		s.answered()
	} else {
		s.pending.Push(command{t, string(bytes.TrimSpace(out[start : len(out)-len(t.End)]))})
	}
	return out, nil
}

// checkLines returns an error for lines that would begin a packet, and for lines or lists that exceed the
// limits.
func (s *session) checkLines(out []byte, from codec.Side, t *codec.Type) error {
	limit := s.lineLimit(from)
	switch {
	case t == errorLine && !s.isError(bytes.TrimRight(out, "\r\n")) && !s.opts.Waived(RuleAdminReply):
		return &codec.Error{Rule: RuleAdminReply, Field: t.Name,
			Detail: fmt.Sprintf("expected an error message, got %q", shorten(out))}
	case out[0] == 0 && !s.opts.Waived(RuleAdminReply):
		return &codec.Error{Rule: RuleAdminReply, Field: t.Name,
			Detail: "expected a text line, got a NUL byte at its beginning, which would begin a packet"}
	case t.Stop != "" && len(out) > limit && !s.opts.Waived(RuleSizeCap):
		return &codec.Error{Rule: RuleSizeCap, Offset: limit, Field: stopField.Name,
			Detail: fmt.Sprintf("expected a list of at most %[2]d bytes, got %[1]d", len(out), limit)}
	case t.Stop == "" && len(out) > limit && !s.opts.Waived(RuleAdminLine):
		return &codec.Error{Rule: RuleAdminLine, Offset: limit, Field: t.Name,
			Detail: fmt.Sprintf("expected a line of at most %[2]d bytes, got %[1]d", len(out), limit)}
	}
	return nil
}

// awaits reports whether the oldest waiting command may be answered by t.
func (s *session) awaits(t *codec.Type) bool {
	return slices.Contains(s.replies(), t)
}
