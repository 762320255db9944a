package codec

import (
	"fmt"
	"strings"
)

// Side is the end of a connection that a message comes from.
type Side uint8

const (
	Peer   Side = iota // whoever connected: a client, a worker, an administrator
	Server             // whoever accepted
)

// Other returns the opposite end.
func (s Side) Other() Side { return s ^ 1 }

func (s Side) String() string {
	if s == Server {
		return "server"
	}
	return "peer"
}

// Role is a set of parts that a peer can play, one bit each, in the order of
// Protocol.Roles.
type Role uint8

// Protocol is one wire protocol: its rows, its rules and its framing.
type Protocol struct {
	Name        string   // as users type it: "gearman"
	Title       string   // as prose has it: "Gearman"
	DefaultPort int      // TCP
	ServerName  string   // what transcripts call the accepting end: "Job Server"
	Roles       []string // what they call the connecting ends; index i is bit 1<<i
	Types       []*Type
	Rules       []Rule

	// Limits of its own, which hold where Options leaves a zero; 0 is the codec's.
	MaxData, MaxLine int

	// NewSession starts the reading of one connection.
	NewSession func(Options) Session
}

// Session reads and writes the messages of one connection. It sees both
// directions, in the order in which they happened, so that a reply can be read
// beside its request. A session is not safe for concurrent use.
type Session interface {
	// Decode reads the first message in b, sent by the given side, into f, and
	// returns its length. f and its spans alias b and are overwritten by the
	// next call that is given f.
	//
	// If b ends before the message does, it returns [ErrShort] and the smallest
	// length of b worth another call; nothing has changed then. Any other error
	// is an [*Error]; f.Spans then holds the rows read before it. Unless it is
	// Fatal, the returned length is that of the offending message and reading
	// may go on behind it. That length may exceed len(b), where a limit is broken
	// by what a message announces: the rest is to be discarded as it arrives.
	Decode(from Side, b []byte, f *Frame) (int, error)

	// Append encodes m as sent by the given side behind dst. An [*Error] says
	// which rule the message breaks; dst is then returned unchanged.
	Append(dst []byte, from Side, m *Message) ([]byte, error)
}

// Limits that hold where Options leaves a zero.
const (
	DefaultMaxData    = 64 << 20 // bytes in one message's data
	DefaultMaxLine    = 8 << 10  // bytes in one text line, its end included
	DefaultMaxPending = 1 << 16  // requests waiting for their reply
)

// Options are the choices that a session leaves to its user.
type Options struct {
	MaxData    int // cap on the data of one message in bytes; 0 is DefaultMaxData
	MaxLine    int // cap on a text line in bytes with its end; 0 is DefaultMaxLine
	MaxPending int // cap on requests waiting for a reply; 0 is DefaultMaxPending

	// Waive lists rules that this session does not enforce. WaiveAll, which
	// stands for every rule that can be waived, lets a tester write messages
	// that break them on purpose.
	Waive    []RuleID
	WaiveAll bool
}

// WithDefaults returns o with its zeros replaced.
func (o Options) WithDefaults() Options {
	if o.MaxData == 0 {
		o.MaxData = DefaultMaxData
	}
	if o.MaxLine == 0 {
		o.MaxLine = DefaultMaxLine
	}
	if o.MaxPending == 0 {
		o.MaxPending = DefaultMaxPending
	}
	return o
}

// Limits returns o with its zeros replaced by what holds for the protocol.
func (p *Protocol) Limits(o Options) Options {
	if o.MaxData == 0 {
		o.MaxData = p.MaxData
	}
	if o.MaxLine == 0 {
		o.MaxLine = p.MaxLine
	}
	return o.WithDefaults()
}

// Waived reports whether the rule is not to be enforced.
func (o *Options) Waived(id RuleID) bool {
	if o.WaiveAll {
		return true
	}
	for _, w := range o.Waive {
		if w == id {
			return true
		}
	}
	return false
}

// Type is one row of a protocol: a message type and its layout.
type Type struct {
	Name    string // as the document and transcripts write it: "SUBMIT_JOB"
	Code    uint32 // the number on the wire, where types are numbered
	Word    string // the word or words on the wire, where they are text
	Req     Role   // who may send it to the server
	Res     Role   // whom the server may send it to
	Section string // of the document

	Fields []Field
	Repeat []Field // a group that may follow Fields any number of times
	Sep    string  // between fields
	End    string  // behind the last field, and every repetition without a Term; "" is the end of the message
	Stop   string  // behind the repetitions

	Replies []string // names of the types that may answer it, where replies carry no type
	Index   int      // position in Protocol.Types

	plain bool // all fields are, and nothing else is in a message; see Prepare
}

// Sends reports whether the row may be sent by the side at all.
func (t *Type) Sends(from Side) bool {
	if from == Server {
		return t.Res != 0
	}
	return t.Req != 0
}

// Kind is what the bytes of a field may be.
type Kind uint8

const (
	Opaque Kind = iota // any bytes
	Text               // bytes that do not contain the row's separator or end
	Number             // unsigned decimal text within Lo and Hi
	Signed             // decimal text, possibly negative
	Uint               // big-endian unsigned binary of Width bytes

	// The kinds from here on are framing: the codec computes them.

	Literal // fixed bytes: a magic, a list's end
	Code    // the type itself: binary of Width bytes, or its Word
	Length  // the size of what follows: binary of Width bytes, or decimal text
)

// Field is one argument, or one row of framing, of a message.
type Field struct {
	Name  string // the label in annotated listings: "Job handle"
	Kind  Kind
	plain bool   // see Prepare
	Width int    // bytes of a binary integer, or of a Text that has always as many
	Lo    uint64 // smallest legal Number, or Uint if Hi is set
	Hi    uint64 // largest legal Number or Uint; 0 is no bound but 64 bits, or Width
	Max   int    // longest legal value in bytes; 0 is no limit of its own
	Lead  string // bytes that must stand before the value
	Term  string // ends the field instead of the row's Sep

	Chars    string   // the bytes that a Text may hold; "" is any
	NotFirst string   // those of them that it may not begin with
	Values   []string // all that a Text may be; nil is anything

	Optional bool // may be left out, with all that follow
	Assigned bool // chosen by the server: a transcript binds it instead of comparing

	Rule     RuleID // broken by a value that is not of Kind, range or Chars
	MaxRule  RuleID // broken by a value longer than Max
	NonEmpty RuleID // if set, broken by an empty value
}

// Derived reports whether the field is framing, which the codec computes,
// rather than an argument that a message carries.
func (f *Field) Derived() bool { return f.Kind >= Literal }

// TypeNamed returns the row of that name, or nil.
func (p *Protocol) TypeNamed(name string) *Type {
	for _, t := range p.Types {
		if t.Name == name {
			return t
		}
	}
	return nil
}

// Sent returns the rows that a side may send on the connection of a role.
func (p *Protocol) Sent(from Side, role Role) []*Type {
	var all []*Type
	for _, t := range p.Types {
		if from == Peer && t.Req&role != 0 || from == Server && t.Res&role != 0 {
			all = append(all, t)
		}
	}
	return all
}

// Rule returns the rule with that ID, or nil.
func (p *Protocol) Rule(id RuleID) *Rule {
	for i := range p.Rules {
		if p.Rules[i].ID == id {
			return &p.Rules[i]
		}
	}
	return nil
}

// RoleNamed returns the bit of the role with that name, or 0.
func (p *Protocol) RoleNamed(name string) Role {
	for i, r := range p.Roles {
		if r == name {
			return 1 << i
		}
	}
	return 0
}

// RoleNames lists the names in a set of roles, joined by slashes.
func (p *Protocol) RoleNames(set Role) string {
	var names []string
	for i, r := range p.Roles {
		if set&(1<<i) != 0 {
			names = append(names, r)
		}
	}
	return strings.Join(names, "/")
}

// Check reports the first fault of the table itself: rows without a name, an
// unknown reply, a rule that the manifest lacks. Protocol packages call it in
// their tests.
func (p *Protocol) Check() error {
	rules := map[RuleID]bool{}
	for _, r := range p.Rules {
		if rules[r.ID] {
			return fmt.Errorf("%s: rule %s stands twice", p.Name, r.ID)
		}
		rules[r.ID] = true
	}
	names := map[string]bool{}
	for i, t := range p.Types {
		switch {
		case t.Name == "" || names[t.Name]:
			return fmt.Errorf("%s: row %d: name %q is empty or stands twice", p.Name, i, t.Name)
		case t.Index != i:
			return fmt.Errorf("%s: row %s: index %d, want %d", p.Name, t.Name, t.Index, i)
		case t.Section == "":
			return fmt.Errorf("%s: row %s: no section", p.Name, t.Name)
		}
		names[t.Name] = true
		for _, f := range append(append([]Field(nil), t.Fields...), t.Repeat...) {
			for _, id := range []RuleID{f.Rule, f.MaxRule, f.NonEmpty} {
				if id != "" && !rules[id] {
					return fmt.Errorf("%s: row %s: field %s: no rule %s in the manifest", p.Name, t.Name, f.Name, id)
				}
			}
		}
		for _, r := range t.Replies {
			if p.TypeNamed(r) == nil {
				return fmt.Errorf("%s: row %s: unknown reply %s", p.Name, t.Name, r)
			}
		}
	}
	return nil
}
