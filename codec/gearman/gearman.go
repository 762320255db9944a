// Package gearman speaks the Gearman protocol: binary packets 1 to 42 and the
// administrative text lines, which share a connection.
//
// The rows in types.go are the contract. Beyond the document stand the types 37
// to 42 and the commands that gearmand and its libraries use; each such row
// says so in its section.
package gearman

import "jobwire/codec"

// Protocol is Gearman's contract.
var Protocol = &codec.Protocol{
	Name:        "gearman",
	Title:       "Gearman",
	DefaultPort: 4730,
	ServerName:  "Job Server",
	Roles:       []string{"Client", "Worker", "Admin"},
	Types:       types,
	Rules:       manifest,
	NewSession:  newSession,
}
