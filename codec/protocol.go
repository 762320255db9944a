package codec

import (
	"fmt"
	"strings"
	"time"
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
	Complete    RuleID // the rule that a side breaks that ends the connection inside a message
	Answered    RuleID // the rule that a server breaks that does not reply to a request

	// What holds for all its jobs.
	DefaultQueue string           // that a connection submits to until it has named another
	ScopedIDs    bool             // a job's ID counts within its queue
	OrderedIDs   bool             // IDs tell in what order jobs were made
	Unowned      bool             // a job belongs to no connection: what a worker says of it may come on any
	Refusal      []string         // a message of the server that refuses a request for the moment: its type and arguments; nil if there is none
	Commands     map[string]*Type // what the commands do that have no row of their own, by their word in capitals

	// What a peer has to know that sends anything at all, such as a fuzzer.
	Barrier Barrier
	Unsafe  []string                // words, in small letters, of commands without a row that change or end the server for all its peers
	Caps    []RuleID                // rules about limits of this codec, which a server need not have
	Binary  func(begin []byte) bool // whether bytes begin a message whose end is known although it, or what was sent before it, is illegal; nil: never

	// Limits of its own, which hold where Options leaves a zero; 0 is the codec's.
	MaxData, MaxLine int

	// NewSession starts the reading of one connection.
	NewSession func(Options) Session

	Recognition

	// Reread returns the event of a reply whose type may answer anything, as if it were of the first type that it
	// fits of those that assign a job or report its end, whatever its request was and its values are. It reports
	// false if it fits none. It is nil for protocols without such replies.
	Reread func(f *Frame) (Event, bool)
}

// Barrier is a request that changes nothing and that the server answers at once, and its reply: the name of a type
// and its arguments. The reply proves that the server has handled all earlier requests of the connection. [Nonce]
// stands for bytes that differ each time; arguments that are left out may have any value. A protocol without such a
// request has the zero Barrier.
type Barrier struct{ Request, Reply []string }

// Nonce stands for bytes of the sender's choice in a [Barrier].
const Nonce = "{nonce}"

// CutShort returns the violation of a sender that has sent have bytes of a message that has at least need bytes, and
// nothing more: idle is how long it had sent nothing when the connection ended; 0 if the sender has ended it.
func (p *Protocol) CutShort(have, need int, idle time.Duration) *Error {
	expected, got := "more bytes", "the end of the connection"
	if need > have {
		expected = fmt.Sprintf("at least %d bytes", need)
	}
	if idle > 0 {
		got = fmt.Sprintf("nothing more for %v", idle.Round(100*time.Millisecond))
	}
	return &Error{Rule: p.Complete, Offset: have, Detail: fmt.Sprintf("expected %s, got %s after %d", expected, got, have)}
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
	// length of b worth another call; nothing has changed then, and the next call
	// for that side should get the same bytes and more after them. Any other error
	// is an [*Error]; f.Spans then holds the rows read before it. Unless it is
	// Fatal, the returned length is that of the offending message and reading
	// may go on behind it. That length may exceed len(b), where a limit is broken
	// by what a message announces: the rest is to be discarded as it arrives.
	Decode(from Side, b []byte, f *Frame) (int, error)

	// Append encodes m as sent by the given side behind dst. An [*Error] says
	// which rule the message breaks; dst is then returned unchanged.
	Append(dst []byte, from Side, m *Message) ([]byte, error)
}

// Forwarder is a [Session] that can pass on a message without encoding it again.
type Forwarder interface {
	// Forward appends f, a legal message of the other side, as sent by the given side. It reports false, and appends nothing, if
	// the message has to be encoded with Append.
	Forward(dst []byte, from Side, f *Frame) ([]byte, bool)
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

	Does       Effect
	Background bool     // Submit: nobody is told of the job's end
	Priority   Priority // Submit: that the type stands for
	Blocks     Blocking // the reply may wait for others
	Varies     bool     // two servers need not agree on what it says
	Races      bool     // its reply depends on how far other peers are
	AnyCommand bool     // it stands for any command: the first word of its first argument
	Worded     bool     // the first word of its first argument tells more than the type: a state, an error code
	Push       bool     // sent by the server in addition to replies

	// Examples returns the arguments of a legal message, for types whose arguments depend on each other. choose(n)
	// chooses a number below n. It is nil for other types.
	Examples func(choose func(n int) int) []string

	Replies []string // names of the types that may answer it
	Answers []*Type  // these types; set by Rows
	Ordered bool     // a request whose reply comes in the order of such requests and is read beside it; or such a reply
	Index   int      // position in Protocol.Types
	Form    [2]*Form // the rules of its form, by the side that sends it

	plain bool  // all fields are, and nothing else is in a message
	args  []int // by argument: its field's index, those of Repeat counted on
	once  int   // how many of them are not repeated
	at    [meanings]uint8
}

// Roles returns the roles of the peers that send the row, or that the server sends it to.
func (t *Type) Roles(from Side) Role {
	if from == Server {
		return t.Res
	}
	return t.Req
}

// Sends reports whether the row may be sent by the side at all.
func (t *Type) Sends(from Side) bool { return t.Roles(from) != 0 }

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

// Check reports the first fault of the table itself: rows without a name, a rule that
// rules.txt lacks, behavior that contradicts itself. Protocol packages call it in their tests.
func (p *Protocol) Check() error {
	rules := map[RuleID]bool{}
	for _, r := range p.Rules {
		if rules[r.ID] {
			return fmt.Errorf("%s: rule %s is defined twice", p.Name, r.ID)
		}
		rules[r.ID] = true
	}
	if len(p.Refusal) > 0 && p.TypeNamed(p.Refusal[0]) == nil {
		return fmt.Errorf("%s: unknown refusal %s", p.Name, p.Refusal[0])
	}
	names := map[string]bool{}
	for i, t := range p.Types {
		switch {
		case t.Name == "" || names[t.Name]:
			return fmt.Errorf("%s: message type %d: the name %q is empty or used twice", p.Name, i, t.Name)
		case t.Index != i:
			return fmt.Errorf("%s: message type %s: expected the index %[4]d, got %[3]d", p.Name, t.Name, t.Index, i)
		case t.Section == "":
			return fmt.Errorf("%s: message type %s: no section", p.Name, t.Name)
		}
		names[t.Name] = true
		for _, f := range append(append([]Field(nil), t.Fields...), t.Repeat...) {
			for _, id := range []RuleID{f.Rule, f.MaxRule, f.NonEmpty} {
				if id != "" && !rules[id] {
					return fmt.Errorf("%s: message type %s, field %s: unknown rule %s", p.Name, t.Name, f.Name, id)
				}
			}
		}
		if err := t.checkBehavior(); err != nil {
			return fmt.Errorf("%s: message type %s: %w", p.Name, t.Name, err)
		}
	}
	return nil
}

// protocols are those of [RegisterProtocol].
var protocols []*Protocol

// RegisterProtocol adds a protocol to [Protocols]. It is called before anything is decoded.
func RegisterProtocol(p *Protocol) { protocols = append(protocols, p) }

// Protocols returns all registered protocols, in the order in which a reader of unknown bytes should try them.
func Protocols() []*Protocol { return protocols }
