// Package resp speaks the Redis protocol: RESP2, and what Redis 7 sends of RESP3
// once a client has said HELLO 3. A protocol that lives inside Redis puts rows
// of its own before the general ones; see [New].
//
// Requests are arrays of bulk strings, or inline commands: a line of words. A
// reply is one value, and says nothing of its request, so a session pairs each
// with the oldest request that waits for one. Published messages wait for none.
//
// A flat array of bulk strings is the row list, its strings the arguments. Any
// other nesting is the row aggregate, whose arguments are its tokens in order,
// headers included: *2 $3 foo :1. A push of RESP3 is written the same way.
package resp

import (
	_ "embed"

	"jobwire/codec"
)

//go:embed rules.txt
var rules string

// Client is the only role of [Protocol].
const Client codec.Role = 1

// section is the section of the general message types.
const section = "RESP"

// Protocol is Redis' protocol with general rows alone. MaxData bounds the bulk
// strings of one message together, MaxLine an inline command and every reply
// that is a line; where [codec.Options] leave a zero, MaxLine is [DefaultMaxLine].
var Protocol = func() *codec.Protocol {
	g := New(Client, nil, nil)
	return &codec.Protocol{
		Name:        "resp",
		Title:       "RESP",
		DefaultPort: 6379,
		ServerName:  "Server",
		Roles:       []string{"Client"},
		Types:       g.Types,
		Rules:       codec.ParseRules(rules),
		Complete:    RuleComplete,
		Answered:    RuleAnswered,
		MaxLine:     DefaultMaxLine,
		NewSession:  g.NewSession,
	}
}()

// Limits of Redis.
const (
	DefaultMaxLine = 64 << 10  // bytes of an inline command
	MaxBulk        = 512 << 20 // bytes of a bulk string, proto-max-bulk-len
	MaxCount       = 1<<31 - 1 // elements of an array

	// MaxDepth is how deep values may nest. It is ours: Redis has no bound.
	MaxDepth = 128
)

// Grammar is the rows of a protocol that is spoken in RESP, and its framing.
type Grammar struct {
	Types      []*codec.Type
	NewSession func(codec.Options) codec.Session
	Reread     func(*codec.Frame) (codec.Event, bool)
}
