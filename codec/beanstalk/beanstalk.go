// Package beanstalk speaks the Beanstalk protocol: text lines that end CR LF,
// some of them followed by a body whose size they announce.
//
// The rows in types.go are the contract. A reply says little about itself (OK
// may carry statistics or a list of tubes), so a session pairs each with the
// oldest request that waits for one. reserve-job stands beyond the document;
// later servers have it.
package beanstalk

import (
	_ "embed"

	"jobwire/codec"
)

//go:embed rules.txt
var rules string

// Protocol is Beanstalk's contract. Two limits differ from those of the codec
// where [codec.Options] leave a zero: MaxData is [DefaultMaxData] for the body
// of a put, MaxLine is [DefaultMaxLine].
var Protocol = &codec.Protocol{
	Name:         "beanstalk",
	Title:        "Beanstalk",
	DefaultPort:  11300,
	ServerName:   "Server",
	Roles:        []string{"Client", "Producer", "Worker"},
	Types:        types,
	DefaultQueue: defaultTube,
	OrderedIDs:   true,
	Refusal:      []string{"INTERNAL_ERROR"},
	Rules:        codec.ParseRules(rules),
	Complete:     RuleComplete,
	Answered:     RuleAnswered,
	MaxData:      DefaultMaxData,
	MaxLine:      DefaultMaxLine,
	NewSession:   newSession,
	Barrier:      codec.Barrier{Request: []string{"list-tube-used"}, Reply: []string{"USING"}},
	Caps:         []codec.RuleID{RuleLineLength},
	Recognition:  recognition,
}
