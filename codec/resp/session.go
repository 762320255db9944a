package resp

import (
	"fmt"

	"jobwire/codec"
)

// session decodes and encodes the messages of one connection.
type session struct {
	*grammar
	codec.Layout
	opts codec.Options
	pending

	spans   []codec.Span  // of the form that is being compared
	named   []codec.Span  // the first arguments of that form, which its other words can repeat
	words   [][]byte      // the first words of a request
	again   codec.Frame   // an encoded message, decoded again
	reading codec.Message // the content of again
	data    int           // bytes of bulk strings in the message that is being encoded
}

func (g *grammar) newSession(o codec.Options) codec.Session {
	if o.MaxLine == 0 {
		o.MaxLine = DefaultMaxLine
	}
	s := &session{grammar: g, opts: o.WithDefaults(), words: make([][]byte, 0, 3)}
	s.Layout = codec.Layout{Form: &codec.Form{Missing: RuleForm, Extra: RuleForm, Trailing: RuleForm}, Options: &s.opts}
	return s
}

// Decode implements [codec.Session] for requests, which are arrays of bulk strings or lines, and for replies of RESP2
// and RESP3.
func (s *session) Decode(from codec.Side, b []byte, f *codec.Frame) (int, error) {
	f.Reset(from)
	if len(b) == 0 {
		return 1, codec.ErrShort
	}
	f.Raw = b
	var n int
	var err error
	if from == codec.Peer {
		n, err = s.decodeRequest(f, b)
	} else {
		n, err = s.decodeReply(f, b)
	}
	f.Raw = b[:min(n, len(b)):min(n, len(b))]
	return n, err
}

// decodeRequest decodes a request if the number of requests that wait for a reply is below the limit.
func (s *session) decodeRequest(f *codec.Frame, b []byte) (int, error) {
	if s.waiting() >= s.opts.MaxPending {
		return 0, &codec.Error{Rule: RulePending, Field: "Type", Fatal: true,
			Detail: fmt.Sprintf("expected no further request while %d requests wait for their replies, got one", s.waiting())}
	}
	n, err := s.readRequest(f, b)
	if e, ok := err.(*codec.Error); ok && e.Fatal {
		s.note(nil, nil, 0) // the server answers it with an error and closes the connection
	}
	return n, err
}

// readRequest decodes a request and records it as waiting for its reply. A command that has no message type of its own
// becomes a general one.
func (s *session) readRequest(f *codec.Frame, b []byte) (int, error) {
	if b[0] != '*' {
		return s.decodeInline(f, b)
	}
	v, n, err := s.scan(b, codec.Peer, f)
	if err != nil {
		return n, err
	}
	f.Raw = b[:n:n]
	if v.count == 0 {
		if !s.opts.Waived(RuleEmpty) {
			f.Spans = f.Spans[:1]
			return n, &codec.Error{Rule: RuleEmpty, Offset: 1, Field: "Count",
				Detail: "expected at least one word, got an empty array"}
		}
		f.Type, f.Head = s.command[0].msgType, 2
		f.Spans[1].Field = &countField
		return n, nil
	}
	var word [longestCommand]byte
	if fm := s.first(f, v, s.commands[string(lower(word[:0], f.Value(3)))]); fm != nil {
		s.note(fm, nil, v.count)
		return n, nil
	}
	s.words = s.words[:0]
	for i := 3; i < len(f.Spans) && len(s.words) < cap(s.words); i += 2 {
		s.words = append(s.words, f.Value(i))
	}
	s.first(f, v, s.command)
	s.note(nil, s.words, v.count)
	clear(s.words) // they may be large
	return n, nil
}

// note adds a request to the pending requests. fm is the form of a specific type, or nil; words are the first
// words of any other request.
func (s *session) note(fm *form, words [][]byte, count int) {
	var e codec.ReplyEffect
	switch {
	case fm != nil:
		e = fm.effect
	case len(words) > 0:
		e = effectOf(words[0])
	}
	s.asked(request{form: fm, effect: e}, words, count)
}

// decodeReply decodes a message of the server. Its type depends on the oldest request that waits, which it answers,
// unless it is a push message of a subscription.
func (s *session) decodeReply(f *codec.Frame, b []byte) (int, error) {
	v, n, err := s.scan(b, codec.Server, f)
	if err != nil {
		if n > 0 && err != codec.ErrShort && v.kind != '>' {
			s.answered()
		}
		return n, err
	}
	f.Raw = b[:n:n]
	if v.kind == '>' {
		s.pushedTokens(f)
		s.tokens(f, s.push)
		return n, nil
	}
	if v.kind == '*' && !v.null && s.pushable() {
		if fm := s.first(f, v, s.pushes); fm != nil {
			s.pushed(fm, f.Value(len(f.Spans)-1))
			return n, nil
		}
	}
	r := s.oldest()
	if r == nil && !s.allowUnrequested && !s.opts.Waived(RuleReplyAsked) {
		f.Spans = f.Spans[:0]
		return n, &codec.Error{Rule: RuleReplyAsked, Field: "Type",
			Detail: fmt.Sprintf("expected no reply, because no request waits for one, got %.40q", f.Raw)}
	}
	var fm *form
	if r != nil && r.form != nil {
		fm = s.first(f, v, r.form.variants)
	}
	if fm == nil {
		fm = s.first(f, v, s.replies)
	}
	if fm == nil {
		s.tokens(f, s.aggregate)
	}
	s.answered()
	return n, nil
}

// tokens makes every line and every bulk string of a frame an argument of a general message type.
func (s *session) tokens(f *codec.Frame, msgType *codec.Type) {
	f.Type, f.Head = msgType, 0
	f.Spans[1].Off = 0
	f.Spans = append(f.Spans[:0], f.Spans[1:]...)
	for i := range f.Spans {
		sp := &f.Spans[i]
		if sp.Field == &sizeMark && i > 0 {
			sp.Off--
		}
		sp.Field = &msgType.Repeat[0]
	}
}
