package beanstalk_test

import (
	"bytes"
	"strconv"
	"testing"

	_ "jobwire/catalog" // registers the scenarios
	"jobwire/refpeer/beanstalk"
	"jobwire/refpeer/internal/drivetest"
)

// variants are correct clients. Each uses a freedom of the protocol that the reference client does not use.
var variants = []drivetest.Variant[beanstalk.Program]{
	{Name: "reference", Role: "Client", Edit: func(*beanstalk.Program) {}},
	{Name: "one connection per task", Role: "Client", Edit: func(p *beanstalk.Program) { p.PerTask = true }},
	{Name: "watches more tubes", Role: "Client", Edit: func(p *beanstalk.Program) {
		p.Watch = beanstalk.Sequence{{Do: "watch spare.1"}, {Do: "watch {TUBE}"}, {Do: "watch spare.2"}, {Do: "watch {TUBE}"}}
	}},
	{Name: "polls with reserve-with-timeout 0", Role: "Client", Edit: func(p *beanstalk.Program) { p.InPieces = true }},
	{Name: "waits for one second at a time", Role: "Client", Edit: func(p *beanstalk.Program) { p.InPieces, p.Piece = true, 1 }},
	{Name: "measures timeouts itself", Role: "Client", Edit: func(p *beanstalk.Program) { p.OwnLimit = true }},
	{Name: "reserves jobs by their IDs", Role: "Client", Edit: func(p *beanstalk.Program) { p.ByID = true }},
	{Name: "pipelined", Role: "Client", Edit: func(p *beanstalk.Program) { p.Pipelined = true }},
	{Name: "pipelined, on a connection per task, closed without quit", Role: "Client", Edit: func(p *beanstalk.Program) { p.Pipelined, p.PerTask, p.Leave = true, true, nil }},
	{Name: "asks for tubes before it uses one", Role: "Client", Edit: func(p *beanstalk.Program) {
		p.Use = beanstalk.Sequence{{Do: "list-tubes"}, {Do: "list-tube-used"}, {Do: "use {TUBE}"}, {Do: "list-tubes-watched"}, {Do: "stats-tube {TUBE}"}, {Do: "stats"}}
	}},
	{Name: "connects again with reserved jobs", Role: "Client", Edit: func(p *beanstalk.Program) { p.Reconnects = true }},
	{Name: "touches often", Role: "Client", Edit: func(p *beanstalk.Program) {
		reserved := func(t *beanstalk.Task) bool { return t.Reserved }
		p.Reserved = beanstalk.Sequence{{Do: "touch {ID}"}, {Do: "touch {ID}"}}
		p.Release = append(beanstalk.Sequence{{Do: "touch {ID}"}}, p.Release...)
		p.Bury = append(beanstalk.Sequence{{Do: "touch {ID}"}}, p.Bury...)
		p.Delete = append(beanstalk.Sequence{{Do: "touch {ID}", If: reserved}}, p.Delete...)
	}},
	{Name: "kicks by ID", Role: "Client", Edit: func(p *beanstalk.Program) {
		p.Bury = append(p.Bury, beanstalk.Step{Do: "kick-job {ID}"}, beanstalk.Step{Do: "reserve-job {ID}"}, p.Bury[0])
	}},
	{Name: "numbers with leading zeros", Role: "Client", Edit: func(p *beanstalk.Program) {
		zeros := func(_ *beanstalk.Task, b []byte) []byte {
			line, rest, _ := bytes.Cut(b, []byte("\r\n"))
			words := bytes.Fields(line)
			for i, w := range words {
				if _, err := strconv.ParseUint(string(w), 10, 64); err == nil {
					words[i] = append([]byte("000"), w...)
				}
			}
			return append(append(bytes.Join(words, []byte(" ")), "\r\n"...), rest...)
		}
		for _, s := range []beanstalk.Sequence{p.Put, p.Reserve, p.Delete, p.Release, p.Bury, p.Touch, p.Peek, p.Kick, p.Stats} {
			for i := range s {
				s[i].Raw = zeros
			}
		}
	}},
}

// TestVariants: all correct clients pass under all fault profiles, and violate no rule.
func TestVariants(t *testing.T) { drivetest.Variants(t, bench, 14, edited, variants) }
