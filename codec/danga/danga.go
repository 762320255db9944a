// Package danga implements the protocol of the Danga draft, the first paper on GearMan: fourteen types of
// binary packets with a header of nine bytes.
//
// The message types in types.go are the contract. rules.txt states the requirements of the draft, and the
// interpretation where the draft is silent, which is often the case.
package danga

import (
	_ "embed"

	"jobwire/codec"
)

//go:embed rules.txt
var rules string

// Protocol is the contract of the draft.
var Protocol = &codec.Protocol{
	Name:  "danga",
	Title: "the Danga draft",
	// The draft names no port. The servers that were developed from it listened on 7003 before port 4730 was assigned
	// to them.
	DefaultPort: 7003,
	ServerName:  "Job Server",
	Roles:       []string{"Application", "Worker"},
	Types:       types,
	Rules:       codec.ParseRules(rules),
	Complete:    RuleComplete,
	Answered:    RuleAnswered,
	NewSession:  newSession,
	// The server knows no job with this handle.
	Barriers: []codec.Barrier{{Request: []string{"job_status_req", "none:" + codec.Nonce},
		Reply: []string{"job_status_res", "\x00\x00\x00\x00", "\x00\x00\x00\x00", "\xff\xff\xff\xff"}}},
	Binary:      func([]byte) bool { return true },
	Recognition: codec.Recognition{Begins: framing.Header.Begins, Next: framing.Header.Next, AnyMagic: true},
	Framing:     framing,
}

func newSession(o codec.Options) codec.Session {
	o = o.WithDefaults()
	return framing.Header.Session(&o, nil)
}
