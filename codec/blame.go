package codec

import (
	"bytes"
	"slices"
)

// Blame decides which violations on a connection prove a fault of their sender. After an illegal request it is unknown
// how many replies the server sends, and after some illegal replies how many it has sent. Later replies may then belong
// to other requests than the [Session] assumes. The bytes after an illegal message may belong to this message, unless
// it is a line that no body follows. The zero value is for a new connection.
type Blame struct {
	unpaired  bool    // it is unknown to which requests replies belong
	illegal   [2]bool // the last message of the side was illegal
	continued [2]bool // and the next line or value of the side may belong to it
}

// Paired reports whether it is known to which requests later replies belong.
func (b *Blame) Paired() bool { return !b.unpaired }

// Proved reports whether the violation by a message, or by the part of it that has arrived, proves a fault of its
// sender. It must be called for each message of both sides, with a nil e if it is legal; the result is then true.
func (b *Blame) Proved(p *Protocol, f *Frame, e *Error) bool {
	from := f.From
	illegal, continued, unpaired := b.illegal[from], b.continued[from], b.unpaired
	b.illegal[from], b.continued[from] = e != nil, e != nil
	if e == nil {
		return true
	}
	var asked, line, text bool // the violation is about a reply without a request, about a line as a whole, about text
	lost := from == Peer       // the violation hides how many messages there are
	if v := p.Framing.Values; v != nil {
		asked, line = e.Rule == v.Asked, true
	}
	if l := p.Framing.Lines; l != nil {
		asked = e.Rule == l.Asked
		line = slices.Contains([]RuleID{l.Asked, l.Inside, l.Length, l.Reply, l.Command}, e.Rule)
		text = line || f.Type != nil && f.Type.Ordered
		packet := !text || p.Framing.Header != nil && bytes.IndexByte(f.Raw, 0) >= 0
		b.continued[from] = packet || line && continued || l.Body[from].Max > 0
		open := f.Type != nil && f.Type.Stop != "" && !bytes.Contains(f.Raw, []byte("\n"+f.Type.Stop)) // the list may go on
		// about where the message ends
		ends := slices.Contains([]RuleID{l.Inside, l.Length, l.Body[from].End}, e.Rule)
		lost = lost || ends || open || line && continued
	}
	b.unpaired = unpaired || asked || lost
	if illegal && e.Fatal || continued && line {
		return false
	}
	return from == Peer || !unpaired || !asked && !text
}
