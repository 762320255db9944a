// Package beanstalk implements the Beanstalk protocol: text lines that end with CR LF, some of them followed
// by a body whose size they announce.
//
// The message types in types.go are the contract. A reply does not identify its request (OK may contain
// statistics or a list of tubes), so a session matches each reply with the oldest request that waits for one.
// reserve-job is not in the specification; later servers have it.
package beanstalk

import (
	_ "embed"

	"jobwire/codec"
)

//go:embed rules.txt
var rules string

// Protocol is the contract of Beanstalk. Two limits that are zero in [codec.Options] have other defaults than
// those of package codec: MaxData, which limits the body of a put, is [DefaultMaxData], and MaxLine is
// [DefaultMaxLine].
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
	Barriers: []codec.Barrier{
		{Request: []string{"list-tube-used"}, Reply: []string{"USING"}},
		{Request: []string{"list-tubes-watched"}, Reply: []string{"list-reply"}},
		{Request: []string{"list-tubes"}, Reply: []string{"list-reply"}},
	},
	Caps:        []codec.RuleID{RuleLineLength},
	Recognition: recognition,
	Framing:     framing,
}
