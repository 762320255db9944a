// Package gearman implements the Gearman protocol: binary packets 1 to 42 and the administrative text lines,
// which share a connection.
//
// The message types in types.go are the contract. The types 37 to 42 and the commands that gearmand and its
// libraries add are not in the specification; their Section field marks them.
package gearman

import (
	_ "embed"

	"jobwire/codec"
)

//go:embed rules.txt
var rules string

// Protocol is the contract of Gearman.
var Protocol = &codec.Protocol{
	Name:        "gearman",
	Title:       "Gearman",
	DefaultPort: 4730,
	ServerName:  "Job Server",
	Roles:       []string{"Client", "Worker", "Admin"},
	Types:       types,
	OrderedIDs:  true,
	Refusal:     []string{"ERROR", "QUEUE_ERROR", "temporary server error"},
	Rules:       codec.ParseRules(rules),
	Complete:    RuleComplete,
	Answered:    RuleAnswered,
	NewSession:  newSession,
	Barriers: []codec.Barrier{
		{Request: []string{"ECHO_REQ", codec.Nonce}, Reply: []string{"ECHO_RES", codec.Nonce}},
		{Request: []string{"GET_STATUS", "H:none:" + codec.Nonce},
			Reply: []string{"STATUS_RES", "H:none:" + codec.Nonce, "0", "0", "0", "0"}},
		{Request: []string{"GET_STATUS_UNIQUE", codec.Nonce}, Reply: []string{"STATUS_RES_UNIQUE", codec.Nonce}},
	},
	Caps:        []codec.RuleID{RuleAdminLine, RuleSizeCap, RuleAdminPending},
	Binary:      func(begin []byte) bool { return len(begin) > 0 && begin[0] == 0 },
	Recognition: recognition,
	Framing:     framing,
}
