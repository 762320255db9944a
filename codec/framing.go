package codec

// Framing declares as data where the messages of a protocol end and how their types are recognized. [Packets] and the
// decoders that package export generates read it. A message is binary if it begins like the header; otherwise it is a
// line or a value.
type Framing struct {
	Header *Header // header of binary messages; nil: there are no binary messages
	Lines  *Lines  // text messages; nil: there are none
	Values *Values // arrays and single values; nil: there are none
}

// Header is the header of binary messages.
type Header struct {
	// the magic (Literal, 4 bytes), the type (Code, at most 4 bytes), and the number of bytes that follow (Length, 4
	// bytes)
	Fields [3]*Field
	Magic  [2]string // magic by sender; "": any value, which then is the same in the whole connection
	First  string    // if Magic is any value, the one in the first message that a session encodes

	Form       *Form  // form rules of the types
	Unassigned uint32 // numbers less than this may be those of unknown types of other versions of the protocol; 0: none

	// the magic is none of Magic; or any value is allowed, but it is not that of the first message on the connection
	Other     RuleID
	Reversed  RuleID // the magic of the other direction
	Known     RuleID // the type is unknown
	Direction RuleID // the side does not send the type
	Size      RuleID // more bytes than DefaultMaxData

	MaxRepeat  int    // most elements of a list, if a type has one
	RepeatRule RuleID // violated by more

	// Parts of the details of errors.
	KnownDetail string // an unknown type: a format with its number
	ExtraDetail string // bytes after the last argument: a format with their number
	Element     string // an element of a list

	// Set by Link:
	size  int     // bytes
	shift int     // bits after the number of a type in 4 bytes
	spans [3]Span // of Fields
	types []*Type // by number; nil where there is none
}

// Lines declares text messages: lines that begin with the word of their type, and the bodies that some announce.
type Lines struct {
	Word [2]*Field // by sender: the field of the word
	Stop *Field    // the line that ends a list; nil: there are no lists
	End  string    // line end; before "\n", "\r" is optional
	Max  [2]int    // by sender: longest line in bytes, including its end; 0: Scan
	// by sender: number of bytes without a line end after which decoding fails, because the end of the message is unknown
	Scan [2]int
	Body [2]Body // by sender

	Unknown []string // names of the types that may answer a command of unknown type
	// how a server may reply to an illegal message of a peer whose end is known
	Reject func(*Frame, *Error) Rejection

	Length  RuleID // the line is too long
	Inside  RuleID // a part of a line end inside a line; "": allowed
	Command RuleID // the command is unknown
	Asked   RuleID // a reply arrives, but no command waits for one
	Reply   RuleID // the reply has no type that may answer the command
	Mixed   RuleID // the lines of a list have different line ends
}

// Body is the limit and the rules of the bodies of text messages.
type Body struct {
	Max       int    // bytes
	Size, End RuleID // rules that a larger body violates, and that a body without a line end after it violates
	// the request whose reply, a list of keys and values, has the largest size that the server accepts, and the key; or
	// nil
	MaxOf []string
}

// FreeText recognizes a reply whose form the specification does not give. A line has the type if no other type of a
// reply fits it, it differs from the command, and it does not match Unlike. If another reply to the same command can
// be any line, it must also match Like. Both are regular expressions.
type FreeText struct{ Unlike, Like string }

// Values declares messages in the format of Redis: a message is a value, which begins with a byte that says what
// follows. A request is an array of bulk strings, or a line. Package resp describes the rules.
type Values struct {
	Kinds   map[byte]ValueKind
	Effects map[string]ReplyEffect // effects by command or by first word of a push, in small letters

	MaxLine, MaxDepth, MaxBulk, MaxCount int // longest line in bytes, deepest nesting, greatest size and count
	MaxElements                          int // most elements of a message
	Longest                              int // longest command with an effect or a type of its own, in bytes

	Inline, Aggregate, Push string // names of the types without Words: a request that is a line, a nested reply, a push

	Asked, BadKind, Depth, Count, Size, LineEnd, BulkEnd, Length, Word, Empty, Cap, InlineLength, InlineWords RuleID
}

// ValueKind describes the values that begin with the same byte.
type ValueKind struct {
	Line  bool   // one line
	Bulk  bool   // the line is the size of the following bytes
	Array int    // the line is a count; number of values for each counted element
	Nulls bool   // the count or size -1 means null
	Rule  RuleID // violated by a value that does not match Form
	Form  string // a regular expression; "": any value
	Int64 bool   // a signed number of 64 bits
}

// ReplyEffect is how a command changes the replies that the server sends, apart from the one reply to it.
type ReplyEffect struct {
	// what the command subscribes to: "channels", "patterns" or "shards"; the server confirms each subscription with a
	// push
	Counts string
	Ends   bool // the command ends subscriptions; without arguments, it ends all of them
	Mode   bool // the second and third word of the command may turn replies off
	NoEnd  bool // the reply to the command has no end
	Resets bool // the command restores the initial state of the connection
}

// Word is an element of an array, or the value of a message that is one value.
type Word struct {
	Kind   byte   // the first byte of the value
	Fold   bool   // letter case is ignored
	Repeat bool   // the word belongs to the group that is repeated
	Parts  []Part // the arguments in the word: at most two
	Tail   string // the text after the last argument
}

// Part is an argument in a word.
type Part struct {
	Prefix string // the text before it
	Field  *Field
	Same   int // if Again: the number of the argument whose value it repeats
	Again  bool
}
