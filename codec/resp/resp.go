// Package resp implements the Redis protocol: RESP2, and the RESP3 values that Redis 7 sends after a client
// has sent HELLO 3. A protocol that uses Redis as its server declares message types of its own, which are
// tried before the general ones; see [New].
//
// A request is an array of bulk strings or an inline command, which is a line of words. A reply is one value
// that does not identify its request, so a session matches each reply with the oldest request that waits for
// one. Published messages answer no request.
//
// A flat array of bulk strings has the type list; the strings are its arguments. An array with other elements
// has the type aggregate; its arguments are its tokens in order, including headers: *2 $3 foo :1. The
// arguments of a push of RESP3 are its tokens too.
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

// Protocol is the protocol of Redis with only the general message types. MaxData limits the total size of the
// bulk strings of one message. MaxLine limits an inline command and every reply that is a line; if it is zero
// in [codec.Options], it is [DefaultMaxLine].
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
		Framing:     Framing,
	}
}()

// Limits of Redis.
const (
	DefaultMaxLine = 64 << 10  // bytes of an inline command
	maxBulk        = 512 << 20 // bytes of a bulk string, proto-max-bulk-len
	maxCount       = 1<<31 - 1 // elements of an array

	// maxDepth is the maximum nesting of values. Redis itself has no limit.
	maxDepth = 128
)

// Grammar is the message types of a protocol that uses RESP, and its framing.
type Grammar struct {
	Types      []*codec.Type
	NewSession func(codec.Options) codec.Session
	Reread     func(*codec.Frame) (codec.Event, bool)
}
