package transcript

import (
	"encoding/binary"
	"strconv"
	"strings"
	"time"

	"jobwire/codec"
)

// verbWords are the words of the line form, by verb. A message has no such word, since its type identifies
// it.
var verbWords = [...]string{
	Raw:        "raw",
	Nothing:    "nothing",
	Opens:      "opens",
	Closes:     "closes",
	HalfCloses: "half-closes",
	Resets:     "resets",

	Urgent:       "urgent",
	StopsReading: "stops-reading",
}

// String returns the word of the line form. A message has none.
func (v Verb) String() string { return verbWords[v] }

// modifiers are the words that end the arguments of a step. As arguments they must be quoted.
var modifiers = []string{"within", "after", "until", "past", "crlf"}

func isModifier(word string) bool {
	for _, m := range modifiers {
		if m == word {
			return true
		}
	}
	return false
}

// is reports whether the token is the word without quotes.
func (t token) is(word string) bool { return !t.quoted && t.text == word }

// choice parses the text after the colon of a step, or after "or". toks are its tokens, and pos is the beginning
// of its line. whole is true for a step and false for an alternative, whose only modifier can be crlf.
func (ps *parser) choice(pos position, st *Step, toks []token, text string, whole bool) (*Choice, *Error) {
	if len(toks) == 0 {
		return nil, pos.errorf("expected a message or an action after the colon, got none")
	}
	c := &Choice{Line: pos.line}
	var err *Error
	first := toks[0]
	if first.quoted {
		return nil, pos.atColumn(first.col).errorf("expected a message type or a word such as closes, got quoted text")
	}
	for v, word := range verbWords {
		if word != "" && word == first.text {
			c.Verb = Verb(v)
		}
	}
	switch c.Verb {
	case Send:
		toks, err = ps.message(pos, st, c, toks)
	case Raw, Urgent:
		toks, err = ps.raw(pos, c, toks)
	case Nothing:
		if len(toks) < 3 || !toks[1].is("for") {
			return nil, pos.atColumn(first.col).errorf("expected a time after nothing, as in \"nothing for 100ms\"")
		}
		c.For, err = duration(pos, toks[2])
		toks = toks[3:]
	case Opens:
		if st.From == codec.Server || !whole {
			return nil, pos.atColumn(first.col).errorf("expected a client or worker before \"opens\", because servers do not connect, and no alternative (\"or\")")
		}
		toks = toks[1:]
	default:
		toks = toks[1:]
	}
	if err == nil {
		err = ps.modify(pos, st, c, toks, whole)
	}
	if err == nil && c.Verb == Send && !c.Unchecked {
		err = ps.quotes.checkOnce(messageText{st.From, text}, func() *Error {
			return ps.checkLiterals(pos.atColumn(first.col), st, c)
		})
	}
	return c, err
}

// message parses a message type and its arguments.
func (ps *parser) message(pos position, st *Step, c *Choice, toks []token) ([]token, *Error) {
	if toks[0].is("unchecked") {
		c.Unchecked = true
		if toks = toks[1:]; len(toks) == 0 || toks[0].quoted {
			return nil, pos.errorf("expected a message type after \"unchecked\", got none")
		}
	}
	pos.col = toks[0].col
	c.Type = ps.proto.TypeNamed(toks[0].text)
	if c.Type == nil {
		known := append([]string{"unchecked"}, verbWords[Raw:]...)
		return nil, pos.errorf("expected a message type or an action, got %q%s", toks[0].text,
			nearest(toks[0].text, append(known, typeNames(ps.proto)...)))
	}
	if bad := ps.misdirected(c.Type, st); bad != "" && !c.Unchecked {
		return nil, pos.errorf("%s", bad)
	}
	toks = toks[1:]
	if len(toks) > 0 {
		c.Args = make([]Arg, 0, len(toks))
	}
	for len(toks) > 0 && (toks[0].quoted || !isModifier(toks[0].text)) {
		if n := len(c.Args); n > 0 && c.Args[n-1].Kind == Rest && !betweenRepetitions(c) {
			return nil, pos.atColumn(c.Args[n-1].Col).errorf("expected \"...\" as the last argument or after a complete group of repeated arguments")
		}
		a, err := argument(pos.atColumn(toks[0].col), c, toks[0])
		if err != nil {
			return nil, err
		}
		c.Args, toks = append(c.Args, a), toks[1:]
	}
	if !c.Unchecked && !legalCount(c) {
		return nil, pos.errorf("expected %[2]s, got %[1]d arguments", len(c.Args), c.Type.Signature())
	}
	return toks, nil
}

func typeNames(p *codec.Protocol) []string {
	names := make([]string, len(p.Types))
	for i, t := range p.Types {
		names[i] = t.Name
	}
	return names
}

// misdirected explains why a type cannot be sent in the direction of a step. It returns "" if it can.
func (ps *parser) misdirected(t *codec.Type, st *Step) string {
	roles, server := ps.proto.RoleNames, ps.proto.ServerName
	switch {
	case st.From == codec.Peer && t.Req == 0:
		return t.Name + " is sent by the " + server + ", to " + roles(t.Res)
	case st.From == codec.Server && t.Res == 0:
		return t.Name + " is sent to the " + server + ", by " + roles(t.Req)
	case st.From == codec.Peer && t.Req&st.Peer.Role == 0:
		return t.Name + " is sent by " + roles(t.Req) + ", not by " + roles(st.Peer.Role)
	case st.From == codec.Server && t.Res&st.Peer.Role == 0:
		return t.Name + " is sent to " + roles(t.Res) + ", not to " + roles(st.Peer.Role)
	}
	return ""
}

// argument parses one argument of c. c already has the arguments before it.
func argument(pos position, c *Choice, tok token) (Arg, *Error) {
	a := Arg{Line: pos.line, Col: pos.col}
	s := tok.text
	switch {
	case tok.quoted:
		a.Value = tok.bytes()
	case s == "*":
		a.Kind = Any
	case s == "...":
		a.Kind = Rest
	case s[0] == '$':
		err := name(pos, &a, s[1:])
		return a, err
	case s == "*version":
		a.Kind = Version
	case s[0] == '*':
		return a, pos.errorf("expected * alone: put a value that begins with * in double quotes")
	default:
		a.Value = []byte(s)
		if fd := c.field(len(c.Args)); isUint(fd) && !(c.Unchecked && !isDecimal(s)) {
			n, err := strconv.ParseUint(s, 10, min(fd.Width, 8)*8)
			if err != nil {
				return a, pos.errorf("%s: expected a decimal number of %[3]d bytes, got %[2]q", fd.Name, s, fd.Width)
			}
			a.Value = appendUint(nil, fd.Width, n)
		}
	}
	return a, nil
}

// name parses the text after a dollar sign.
func name(pos position, a *Arg, s string) *Error {
	if rest, ok := strings.CutPrefix(s, "now"); ok && (rest == "" || rest[0] == '+' || rest[0] == '-') {
		a.Kind = Now
		if rest != "" {
			n, err := strconv.ParseInt(rest, 10, 32)
			if err != nil {
				return pos.errorf("expected a number of seconds after $now%c, as in $now+10", rest[0])
			}
			a.Delta = n
		}
		return nil
	}
	notIn := func(c rune) bool { return notInName(c) && c != '_' && c != '-' }
	if s == "" || strings.IndexFunc(s, notIn) >= 0 {
		return pos.errorf("expected a name of letters, digits, _ and - after $")
	}
	a.Kind, a.Name = Name, s
	return nil
}

// isUint reports whether the field is a binary number, which transcripts write in decimal.
func isUint(fd *codec.Field) bool { return fd != nil && fd.Kind == codec.Uint && fd.Width > 0 }

func isDecimal(s string) bool {
	_, ok := codec.ParseNumber([]byte(s))
	return ok
}

// appendUint appends n as a big-endian number of width bytes.
func appendUint(dst []byte, width int, n uint64) []byte {
	for i := width - 1; i >= 0; i-- {
		if i >= 8 {
			dst = append(dst, 0)
		} else {
			dst = append(dst, byte(n>>(8*i)))
		}
	}
	return dst
}

// uintOf decodes a big-endian number of up to eight bytes.
func uintOf(b []byte) uint64 {
	var v [8]byte
	copy(v[8-len(b):], b)
	return binary.BigEndian.Uint64(v[:])
}

// raw parses pairs of hex digits and quoted texts.
func (ps *parser) raw(pos position, c *Choice, toks []token) ([]token, *Error) {
	start := toks[0].col
	for toks = toks[1:]; len(toks) > 0; toks = toks[1:] {
		tok := toks[0]
		b, ok := hexPair(tok.text)
		switch {
		case tok.quoted && c.Bytes == nil:
			c.Bytes = tok.bytes()
			continue
		case tok.quoted:
			c.Bytes = append(c.Bytes, tok.text...)
			continue
		case isModifier(tok.text):
		case !ok:
			return nil, pos.atColumn(tok.col).errorf("expected two hexadecimal digits or quoted text, got %q", tok.text)
		default:
			c.Bytes = append(c.Bytes, b)
			continue
		}
		break
	}
	if len(c.Bytes) == 0 {
		return nil, pos.atColumn(start).errorf("expected at least one byte after \"raw\", got none")
	}
	return toks, nil
}

func duration(pos position, tok token) (time.Duration, *Error) {
	d, err := time.ParseDuration(tok.text)
	if err != nil || d <= 0 || tok.quoted {
		return 0, pos.atColumn(tok.col).errorf("expected a time such as 100ms or 2s, got %q", tok.text)
	}
	return d, nil
}

// modify parses the modifiers after the arguments of a step.
func (ps *parser) modify(pos position, st *Step, c *Choice, toks []token, whole bool) *Error {
	for len(toks) > 0 {
		word := toks[0]
		here := pos.atColumn(word.col)
		switch {
		case word.quoted || !isModifier(word.text):
			return here.errorf("expected a modifier, such as \"within 2s\", after the message, got %q%s", word.text,
				nearest(word.text, modifiers))
		case word.text == "crlf":
			if c.Verb != Send || c.Type.End != "\n" || c.CRLF {
				return here.errorf("expected \"crlf\" at most once, and only after a message whose lines may end with LF or CR LF")
			}
			c.CRLF, toks = true, toks[1:]
			continue
		case !whole:
			return here.errorf("expected %s in the line of the first alternative, got %[1]s after a later one", word.text)
		case len(toks) < 2:
			return here.errorf("expected a value after %s, got none", word.text)
		}
		var err *Error
		if word.text == "past" {
			toks, err = ps.ignoredTypes(pos, st, toks[1:])
		} else {
			d := &st.Within
			switch {
			case word.text == "after":
				d = &st.After
			case word.text == "until":
				d = &st.Until
			case c.Verb == Nothing:
				return here.errorf("\"within\" is not allowed after \"nothing for TIME\", which already has a time")
			}
			if *d != 0 {
				return here.errorf("expected %s once, got it twice", word.text)
			}
			*d, err = duration(pos, toks[1])
			toks = toks[2:]
			switch given := len(toks) > 0 && toks[0].is("of"); {
			case err != nil || word.text == "within":
			case given && st.Since != nil:
				return here.errorf("expected \"of\" once, got it twice")
			case given:
				toks, err = ps.sinceType(pos, st, toks)
			case word.text == "until":
				return here.errorf("expected a message type after \"until\" and its time, as in \"until 2s of put\", got none")
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sinceType parses the type of the message from whose sending the times of a step are measured.
func (ps *parser) sinceType(pos position, st *Step, toks []token) ([]token, *Error) {
	if len(toks) < 2 || toks[1].quoted {
		return nil, pos.atColumn(toks[0].col).errorf("expected a message type after \"of\", got none")
	}
	here := pos.atColumn(toks[1].col)
	if st.Since = ps.proto.TypeNamed(toks[1].text); st.Since == nil {
		return nil, here.errorf("expected a message type, got %q%s", toks[1].text, nearest(toks[1].text, typeNames(ps.proto)))
	}
	if st.From != codec.Server || !st.Since.Sends(codec.Peer) {
		return nil, here.errorf("expected a message of the %s, and a time from the sending of a message to it, got %s",
			ps.proto.ServerName, st.Since.Name)
	}
	return toks[2:], nil
}

// ignoredTypes parses the types to ignore. A star stands for all types that can be sent in that direction.
func (ps *parser) ignoredTypes(pos position, st *Step, toks []token) ([]token, *Error) {
	if len(toks) > 0 && toks[0].is("*") {
		st.Ignored = ps.proto.Sent(st.From, st.Peer.Role)
		return toks[1:], nil
	}
	for n := 0; len(toks) > 0 && (n == 0 || !isModifier(toks[0].text)); n++ {
		here := pos.atColumn(toks[0].col)
		t := ps.proto.TypeNamed(toks[0].text)
		if t == nil || toks[0].quoted {
			return nil, here.errorf("expected a message type, got %q%s", toks[0].text, nearest(toks[0].text, typeNames(ps.proto)))
		}
		if bad := ps.misdirected(t, st); bad != "" {
			return nil, here.errorf("%s", bad)
		}
		st.Ignored, toks = append(st.Ignored, t), toks[1:]
	}
	return toks, nil
}

// legalCount reports whether a choice has a legal number of arguments for its type.
func legalCount(c *Choice) bool {
	need, most, group := c.Type.Arity()
	n := c.given(len(c.Args))
	if k := len(c.Args); k > 0 && c.Args[k-1].Kind == Rest {
		return n <= most || group > 0
	}
	return n >= need && (n <= most || group > 0 && (n-most)%group == 0)
}

// betweenRepetitions reports whether the next argument of a choice begins a repetition of the repeated
// fields.
func betweenRepetitions(c *Choice) bool {
	_, most, group := c.Type.Arity()
	n := c.given(len(c.Args))
	return group > 0 && n >= most && (n-most)%group == 0
}

// given counts the arguments before the i-th, without "...".
func (c *Choice) given(i int) int {
	n := 0
	for _, a := range c.Args[:i] {
		if a.Kind != Rest {
			n++
		}
	}
	return n
}

// field returns the declaration of the i-th argument, or nil if there is none.
func (c *Choice) field(i int) *codec.Field { return c.Type.FieldAt(c.given(i)) }
