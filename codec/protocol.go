package codec

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Side is the end of a connection that sends a message.
type Side uint8

const (
	Peer   Side = iota // the end that opened the connection: a client, a worker, an administrator
	Server             // the end that accepted the connection
)

// Other returns the other end of the connection.
func (s Side) Other() Side { return s ^ 1 }

func (s Side) String() string {
	if s == Server {
		return "server"
	}
	return "peer"
}

// Role is a set of roles of a peer, one bit each, in the order of Protocol.Roles.
type Role uint8

// Protocol is one wire protocol: its message types, its rules and its framing.
type Protocol struct {
	Name        string   // name on the command line, such as "gearman"
	Title       string   // name in text for users, such as "Gearman"
	DefaultPort int      // TCP
	ServerName  string   // the name of the accepting end in transcripts: "Job Server"
	Roles       []string // the names of the connecting ends in transcripts; index i is bit 1<<i
	Types       []*Type
	Rules       []Rule
	Complete    RuleID // the rule that a side violates if it ends the connection inside a message
	Answered    RuleID // the rule that a server violates if it does not reply to a request

	// Properties of all jobs of the protocol.
	DefaultQueue string           // the queue that a connection submits to until it names another one
	ScopedIDs    bool             // a job's ID is unique only within its queue
	OrderedIDs   bool             // a job that was created later has a greater ID
	Unowned      bool             // a job belongs to no connection: a worker may send reports about it on any connection
	Refusal      []string         // the type and arguments of a reply that temporarily refuses a request, or nil
	Commands     map[string]*Type // what commands without a message type of their own do, by the command word in capitals

	// Information for a program that sends arbitrary messages, such as a fuzzer.
	Barriers []Barrier // the preferred one first; a server need not implement each
	// lower-case words of commands without a message type that affect all peers of the server
	Unsafe []string
	Caps   []RuleID                // rules about limits of this codec, which a server need not enforce
	Binary func(begin []byte) bool // whether a message's end is known even after illegal data; nil: never

	// Limits of the protocol, used where Options has a zero; 0: the default of this package.
	MaxData, MaxLine int

	// NewSession creates the session of one new connection.
	NewSession func(Options) Session

	Recognition
	Framing Framing

	// Reread returns the event of a reply whose type may answer any request. The request and the values of the reply
	// are ignored: the event is that of the first type that the reply fits, among the types that assign a job or report
	// its end. Reread returns false if the reply fits none of them. It is nil for protocols without such replies.
	Reread func(f *Frame) (Event, bool)
}

// Barrier is a request that changes nothing and that the server answers at once, with its reply. Each is the
// name of a type and its arguments. The reply proves that the server has handled all earlier requests of the
// connection. [Nonce] is replaced by bytes that differ each time; omitted arguments may have any value.
type Barrier struct{ Request, Reply []string }

// Nonce is a placeholder in a [Barrier] for bytes that the sender chooses.
const Nonce = "{nonce}"

// CutShort returns the violation by a sender that sent only have bytes of a message of at least need bytes.
// idle is how long the sender had sent nothing when the connection ended, or 0 if the sender ended the
// connection.
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

// Session decodes and encodes the messages of one connection. It must be given the messages of both
// directions in the order in which they were sent, so that it can interpret a reply with its request. A
// session is not safe for concurrent use.
type Session interface {
	// Decode decodes the first message in b, sent by the given side, into f, and returns its length. f and its spans
	// alias b; the next call with the same f overwrites them.
	//
	// If b ends before the message does, Decode returns [ErrShort] and the smallest length of b for which another call
	// is useful. The session is then unchanged, and the next call for that side must begin with the same bytes. Any
	// other error is an [*Error]; f.Spans then contains the fields decoded before it. Unless the error is Fatal, the
	// returned length is that of the illegal message, and decoding can continue after it. That length exceeds len(b) if
	// the message announces a size above a limit: the caller must then discard the remaining bytes as they arrive.
	Decode(from Side, b []byte, f *Frame) (int, error)

	// Append appends the encoding of m, as sent by the given side, to dst. If m violates a rule, Append returns an
	// [*Error] and leaves dst unchanged.
	Append(dst []byte, from Side, m *Message) ([]byte, error)
}

// Forwarder is a [Session] that can forward a message without encoding it again.
type Forwarder interface {
	// Forward appends the bytes with which the side from passes on the content of f, a legal message that it received.
	// If the message has to be encoded with Append, Forward appends nothing and returns false.
	Forward(dst []byte, from Side, f *Frame) ([]byte, bool)
}

// Expecter is a [Session] that rejects a reply if its request does not permit it.
type Expecter interface {
	// Expect makes Decode also accept replies of the given types if the oldest request that waits for a reply is not
	// of a known type. What such a request means, and so which replies it permits, is left to the caller.
	Expect(replies ...*Type)
}

// Default limits, used where Options has a zero.
const (
	DefaultMaxData    = 64 << 20 // bytes in one message's data
	DefaultMaxLine    = 8 << 10  // bytes in one text line, including its line end
	DefaultMaxPending = 1 << 16  // requests waiting for their replies
)

// Options are the settings of a session.
type Options struct {
	MaxData    int // limit on the data of one message in bytes; 0: DefaultMaxData
	MaxLine    int // limit on a text line in bytes, including its line end; 0: DefaultMaxLine
	MaxPending int // limit on requests waiting for a reply; 0: DefaultMaxPending

	// Waive lists rules that this session does not enforce. WaiveAll waives every rule that can be waived, so that a
	// test can send messages that violate rules.
	Waive    []RuleID
	WaiveAll bool
}

// WithDefaults returns o with its zeros replaced by the default limits.
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

// Limits returns o with its zeros replaced by the limits of the protocol, or else by the default limits.
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

// Type is the declaration of a message type: its layout and its behavior.
type Type struct {
	Name    string // name in the specification and in transcripts, such as "SUBMIT_JOB"
	Code    uint32 // the number on the wire, in protocols with numbered types
	Word    string // the word or words on the wire, in text protocols
	Req     Role   // roles that may send it to the server
	Res     Role   // roles that the server may send it to
	Section string // section of the specification

	Fields []Field
	Repeat []Field   // a group of fields that follows Fields any number of times
	Sep    string    // separator between fields
	End    string    // follows the last field, and every repetition without a Term; "": nothing follows
	Stop   string    // follows the repetitions
	Words  []Word    // the elements of an array or the value, in protocols with Framing.Values
	Free   *FreeText // how to recognize a reply that has no fixed form; nil: the type has a fixed form

	Does       Effect
	Background bool     // Submit: no end of the job is reported to the client
	Priority   Priority // Submit: the priority of the job
	Blocks     Blocking // whether the reply may wait for other peers
	Varies     bool     // the content of the message may differ between correct servers
	Races      bool     // the reply to the message depends on the progress of other peers
	AnyCommand bool     // the type represents any command; the first word of the first argument names the command
	// the first word of the first argument, such as a state or an error code, distinguishes kinds of this message
	Worded bool
	Push   bool // sent by the server in addition to replies

	// Examples returns the arguments of a legal message, for types whose arguments depend on each other. choose(n)
	// returns a number from 0 to n-1. Examples is nil for other types.
	Examples func(choose func(n int) int) []string

	Replies []string // names of the types that may answer it
	Answers []*Type  // the types named in Replies; set by Link
	// a request whose reply comes in the order of such requests and is decoded with its request; or such a reply
	Ordered bool
	Index   int      // position in Protocol.Types
	Form    [2]*Form // the form rules, by the side that sends the message

	plain bool  // all fields are plain, and a message contains nothing else
	fills bool  // a packet whose fields Layout.Split decodes alone: no list, and the last field extends to the end
	args  []int // by argument: the index of its field; fields of Repeat are numbered after Fields
	once  int   // the number of arguments that are not repeated
	at    [meanings]uint8
}

// Roles returns the roles of the peers that send the type to the server or, if from is Server, receive it.
func (t *Type) Roles(from Side) Role {
	if from == Server {
		return t.Res
	}
	return t.Req
}

// Sends reports whether the side may send the type.
func (t *Type) Sends(from Side) bool { return t.Roles(from) != 0 }

// Kind is the kind of value that a field contains.
type Kind uint8

const (
	Opaque Kind = iota // any bytes
	Text               // bytes that contain neither the type's separator nor its end
	Number             // unsigned decimal text within Lo and Hi
	Signed             // decimal text, possibly negative
	Uint               // big-endian unsigned binary of Width bytes

	// The following kinds are framing: the codec computes their values.

	Literal // fixed bytes: a magic, the end of a list
	Code    // the message type: binary of Width bytes, or its Word
	Length  // the size of a following part: binary of Width bytes, or decimal text
)

// TypeNamed returns the message type with the name, or nil.
func (p *Protocol) TypeNamed(name string) *Type {
	for _, t := range p.Types {
		if t.Name == name {
			return t
		}
	}
	return nil
}

// MustTypeNamed returns the message type with the name. It panics if there is none.
func (p *Protocol) MustTypeNamed(name string) *Type {
	t := p.TypeNamed(name)
	if t == nil {
		panic("unknown message type " + name)
	}
	return t
}

// ByType returns a list that has the value for each message type at the type's index. It panics if a name is unknown.
func ByType[T any](p *Protocol, byName map[string]T) []T {
	all := make([]T, len(p.Types))
	for name, v := range byName {
		all[p.MustTypeNamed(name).Index] = v
	}
	return all
}

// Sent returns the message types that a side may send on the connection of a role.
func (p *Protocol) Sent(from Side, role Role) []*Type {
	var all []*Type
	for _, t := range p.Types {
		if from == Peer && t.Req&role != 0 || from == Server && t.Res&role != 0 {
			all = append(all, t)
		}
	}
	return all
}

// IsGeneralError reports whether a server may send t in reply to any request, also to one that it does not implement.
func (p *Protocol) IsGeneralError(t *Type) bool {
	return t.Does == Refuse && (p.Framing.Lines == nil || t.Code != 0 || slices.Contains(p.Framing.Lines.Unknown, t.Name))
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

// Check reports the first defect of the protocol's table: a type without a name, a rule ID that rules.txt
// lacks, contradictory behavior. Protocol packages call it in their tests.
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

// protocols are the protocols added by [RegisterProtocol].
var protocols []*Protocol

// RegisterProtocol adds a protocol to [Protocols]. It must be called before any message is decoded.
func RegisterProtocol(p *Protocol) { protocols = append(protocols, p) }

// Protocols returns all registered protocols, in the order in which to try them on bytes of an unknown
// protocol.
func Protocols() []*Protocol { return protocols }
