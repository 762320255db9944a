// Package gearmonkey speaks GearMonkey: job queues in Redis. Its rows are the
// document's own commands and what Redis answers to them; everything else that
// stands on such a connection is read by the general rows of package resp.
//
// A request is read as the first typed row that fits it exactly, else as
// command, so typed rows never make a message illegal. Words of commands are
// read without regard to letter case, and written in capitals. Replies have the
// form of RESP2, as the document's peers get them; where RESP3 has another, as
// for the job's data and for events, the general rows read them.
package gearmonkey

import (
	_ "embed"
	"slices"

	"jobwire/codec"
	"jobwire/codec/resp"
)

//go:embed rules.txt
var rules string

var grammar = resp.New(anyone, fields, rows)

// Protocol is GearMonkey's contract. Limits are those of [resp.Protocol].
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
	Reread:      grammar.Reread,
	ScopedIDs:   true,
	Unowned:     true,
	Refusal:     []string{"error", "ERR", "temporary server error"},
	Commands:    commands,
	Barrier:     codec.Barrier{Request: []string{"command", "PING", codec.Nonce}, Reply: []string{"bulk", codec.Nonce}},
	Unsafe:      unsafeWords,
	Caps:        []codec.RuleID{resp.RuleCap, resp.RuleLineLength},
}
