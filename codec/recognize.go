package codec

import "bytes"

// Match is how well bytes match a protocol.
type Match uint8

const (
	NoMatch  Match = iota
	MayMatch       // more bytes are needed to decide
	Matches
)

// Recognition declares how to find connections of a protocol, and messages on them, in a capture.
type Recognition struct {
	// Begins reports whether b, which is not empty, begins with a message of the side. It is strict where many
	// protocols look alike. If resumed is true, the connection is known to use the protocol, b comes from the middle of
	// it, and first is the first message of the connection, or nil if unknown. If Begins is nil, a message begins where
	// a new session can decode one.
	Begins func(from Side, b, first []byte, resumed bool) Match

	// Next returns the first index greater than 0 at which a message of the side may begin, or -1. It examines only the
	// bytes before or at that index. If Next is nil, [NextLine] is used.
	Next func(from Side, b, first []byte) int

	AnyMagic bool // the magic of binary messages is any value that the peers of a connection have agreed on

	Pairing   []RuleID // rules that a request and a reply violate if they do not correspond
	Dependent []RuleID // rules about the content of a reply that depend on its request
	Unpaired  []RuleID // rules of Pairing that a session can waive if requests may be missing
}

// Begins reports whether b begins with a message; see Recognition.Begins.
func (p *Protocol) Begins(from Side, b, first []byte, resumed bool) Match {
	if p.Recognition.Begins != nil {
		return p.Recognition.Begins(from, b, first, resumed)
	}
	var f Frame
	s := Stream{Session: p.NewSession(Options{Waive: p.Unpaired}), From: from}
	_, found, _ := s.Read(b, &f)
	return [...]Match{Nothing: MayMatch, Whole: Matches, Illegal: NoMatch}[found]
}

// Next returns where the next message may begin; see Recognition.Next.
func (p *Protocol) Next(from Side, b, first []byte) int {
	if p.Recognition.Next != nil {
		return p.Recognition.Next(from, b, first)
	}
	return NextLine(b)
}

// BeginsLine reports whether b begins with a line of printable text whose first word is the word of a type
// that the side sends.
func BeginsLine(types []*Type, from Side, b []byte, end string) Match {
	line, _, whole := bytes.Cut(b[:min(len(b), DefaultMaxLine)], []byte(end))
	best := NoMatch
	for _, t := range types {
		if !t.Sends(from) || t.Word == "" || t.Word[0] != b[0] {
			continue
		}
		switch {
		case whole && hasWord(line, t.Word) && IsPrintable(line):
			return Matches
		case !whole && (hasWord(line, t.Word) || len(line) < len(t.Word) && string(line) == t.Word[:len(line)]):
			best = MayMatch
		}
	}
	return best
}

func hasWord(line []byte, word string) bool {
	if len(line) < len(word) || string(line[:len(word)]) != word {
		return false
	}
	return len(line) == len(word) || line[len(word)] == ' ' || line[len(word)] == '\r'
}

// IsPrintable reports whether a line has no control characters, except for CR at its end.
func IsPrintable(line []byte) bool {
	for i, c := range line {
		if c < ' ' && !(c == '\r' && i == len(line)-1) || c == 0x7f {
			return false
		}
	}
	return true
}

// NextLine returns the index after the first line of b, or -1.
func NextLine(b []byte) int {
	if k := bytes.IndexByte(b, '\n'); k >= 0 && k+1 < len(b) {
		return k + 1
	}
	return -1
}

// nextMagic returns the first index after 0 at which magic begins, or at which a prefix of magic ends b, or
// -1.
func nextMagic(b []byte, magic string) int {
	if k := bytes.Index(b[1:], []byte(magic)); k >= 0 {
		return k + 1
	}
	for n := min(len(magic)-1, len(b)-1); n > 0; n-- {
		if string(b[len(b)-n:]) == magic[:n] {
			return len(b) - n
		}
	}
	return -1
}
