package beanstalk_test

import (
	"bytes"
	"strconv"
	"testing"

	_ "jobwire/catalog" // registers the scenarios
	"jobwire/refpeer/beanstalk"
	"jobwire/refpeer/internal/drivetest"
	"jobwire/refpeer/internal/peer"
)

// variants are correct clients. Each uses a freedom of the protocol that the reference client does not use.
var variants = []drivetest.Variant{
	{Name: "reference", Role: "Client", Edit: func(*peer.Program) {}},
	{Name: "one connection per task", Role: "Client", Edit: func(p *peer.Program) { p.PerTask = true }},
	{Name: "watches more tubes", Role: "Client", Edit: func(p *peer.Program) {
		p.Steps["Watch"] = peer.Sequence{{Do: "watch spare.1"}, {Do: "watch {QUEUE}"}, {Do: "watch spare.2"}, {Do: "watch {QUEUE}"}}
	}},
	{Name: "polls with reserve-with-timeout 0", Role: "Client", Edit: func(p *peer.Program) { own(p).InPieces = true }},
	{Name: "waits for one second at a time", Role: "Client", Edit: func(p *peer.Program) { own(p).InPieces, own(p).Piece = true, 1 }},
	{Name: "measures timeouts itself", Role: "Client", Edit: func(p *peer.Program) { own(p).OwnLimit = true }},
	{Name: "reserves jobs by their IDs", Role: "Client", Edit: func(p *peer.Program) { own(p).ByID = true }},
	{Name: "pipelined", Role: "Client", Edit: func(p *peer.Program) { p.Pipelined = true }},
	{Name: "pipelined, on a connection per task, closed without quit", Role: "Client", Edit: func(p *peer.Program) { p.Pipelined, p.PerTask, p.Steps["Quit"] = true, true, nil }},
	{Name: "asks for tubes before it uses one", Role: "Client", Edit: func(p *peer.Program) {
		p.Steps["Use"] = peer.Sequence{{Do: "list-tubes"}, {Do: "list-tube-used"}, {Do: "use {QUEUE}"}, {Do: "list-tubes-watched"}, {Do: "stats-tube {QUEUE}"}, {Do: "stats"}}
	}},
	{Name: "connects again with reserved jobs", Role: "Client", Edit: func(p *peer.Program) { own(p).Reconnects = true }},
	{Name: "touches often", Role: "Client", Edit: func(p *peer.Program) {
		reserved := func(t peer.Task) bool { return t["RESERVED"] != "" }
		p.Steps["Reserved"] = peer.Sequence{{Do: "touch {JOB_ID}"}, {Do: "touch {JOB_ID}"}}
		p.Steps["Release"] = append(peer.Sequence{{Do: "touch {JOB_ID}"}}, p.Steps["Release"]...)
		p.Steps["Bury"] = append(peer.Sequence{{Do: "touch {JOB_ID}"}}, p.Steps["Bury"]...)
		p.Steps["Delete"] = append(peer.Sequence{{Do: "touch {JOB_ID}", If: reserved}}, p.Steps["Delete"]...)
	}},
	{Name: "kicks by ID", Role: "Client", Edit: func(p *peer.Program) {
		p.Steps["Bury"] = append(p.Steps["Bury"], peer.Step{Do: "kick-job {JOB_ID}"}, peer.Step{Do: "reserve-job {JOB_ID}"}, p.Steps["Bury"][0])
	}},
	{Name: "numbers with leading zeros", Role: "Client", Edit: func(p *peer.Program) {
		zeros := func(_ peer.Task, b []byte) []byte {
			line, rest, _ := bytes.Cut(b, []byte("\r\n"))
			words := bytes.Fields(line)
			for i, w := range words {
				if _, err := strconv.ParseUint(string(w), 10, 64); err == nil {
					words[i] = append([]byte("000"), w...)
				}
			}
			return append(append(bytes.Join(words, []byte(" ")), "\r\n"...), rest...)
		}
		for _, s := range []peer.Sequence{p.Steps["Put"], p.Steps["Reserve"], p.Steps["Delete"], p.Steps["Release"], p.Steps["Bury"], p.Steps["Touch"], p.Steps["Peek"], p.Steps["Kick"], p.Steps["Stats"]} {
			for i := range s {
				s[i].Raw = zeros
			}
		}
	}},
}

// TestVariants: all correct clients pass under all fault profiles, and violate no rule.
func TestVariants(t *testing.T) { bench.Variants(t, 14, variants) }

func own(p *peer.Program) *beanstalk.Options { return p.Own.(*beanstalk.Options) }
