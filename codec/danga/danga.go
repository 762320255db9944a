// Package danga speaks the protocol of the Danga draft, the first paper on
// GearMan: fourteen binary packets behind a header of nine bytes.
//
// The rows in types.go are the contract; manifest.go states what the draft
// says, and how we read it where it is silent, which is often.
package danga

import "jobwire/codec"

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
	Rules:       manifest,
	NewSession:  newSession,
}
