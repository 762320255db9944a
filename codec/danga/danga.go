// Package danga speaks the protocol of the Danga draft, the first paper on
// GearMan: fourteen binary packets behind a header of nine bytes.
//
// The rows in types.go are the contract; rules.txt states what the draft
// requires, and the interpretation where it is silent, which is often.
package danga

import (
	_ "embed"

	"jobwire/codec"
)

//go:embed rules.txt
var rules string

// Protocol is the draft's contract.
var Protocol = &codec.Protocol{
	Name:  "danga",
	Title: "the Danga draft",
	// The draft names no port. 7003 is what the servers that grew out of it
	// listened on before 4730 was assigned to them.
	DefaultPort: 7003,
	ServerName:  "Job Server",
	Roles:       []string{"Application", "Worker"},
	Types:       types,
	Rules:       codec.ParseRules(rules),
	Complete:    RuleComplete,
	Answered:    RuleAnswered,
	NewSession:  newSession,
	// No job has the handle.
	Barrier:     codec.Barrier{Request: []string{"job_status_req", "none:" + codec.Nonce}, Reply: []string{"job_status_res", "\x00\x00\x00\x00", "\x00\x00\x00\x00", "\xff\xff\xff\xff"}},
	Binary:      func([]byte) bool { return true },
	Recognition: recognition,
}
