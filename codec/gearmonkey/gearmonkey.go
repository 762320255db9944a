// Package gearmonkey implements GearMonkey: job queues in Redis. Its message types are the commands of the
// specification and the replies of Redis to them. All other messages of such a connection have the general
// types of package resp.
//
// A request has the first of these types that it matches exactly, and otherwise the type command, so these
// types never make a message illegal. Letter case of command words is ignored; they are written in capitals.
// The replies have the form of RESP2, which the peers of the specification use. Where RESP3 has another form,
// as for the job's data and for events, the general types are used.
package gearmonkey

import (
	_ "embed"
	"slices"

	"jobwire/codec"
	"jobwire/codec/resp"
)

//go:embed rules.txt
var rules string

var grammar = resp.New(anyone, fields, typeDecls)

// Protocol is the contract of GearMonkey. Its limits are those of [resp.Protocol].
var Protocol = &codec.Protocol{
	Name:        "gearmonkey",
	Title:       "GearMonkey",
	DefaultPort: 6379,
	ServerName:  "Server",
	Roles:       []string{"Client", "Worker", "Operator"},
	Types:       grammar.Types,
	Rules:       slices.Concat(codec.ParseRules(rules), resp.Protocol.Rules),
	Complete:    resp.RuleComplete,
	Answered:    resp.RuleAnswered,
	MaxLine:     resp.DefaultMaxLine,
	NewSession:  grammar.NewSession,
	Recognition: resp.Recognition,
	Framing:     resp.Framing,
	Reread:      grammar.Reread,
	ScopedIDs:   true,
	Unowned:     true,
	Refusal:     []string{"error", "ERR", "temporary server error"},
	Commands:    commands,
	Barriers: []codec.Barrier{
		{Request: []string{"command", "PING", codec.Nonce}, Reply: []string{"bulk", codec.Nonce}},
		{Request: []string{"command", "ECHO", codec.Nonce}, Reply: []string{"bulk", codec.Nonce}},
	},
	Unsafe: unsafeWords,
	Caps:   []codec.RuleID{resp.RuleCap, resp.RuleLineLength},
}
