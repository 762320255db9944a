// Package servertest runs the test suites against correct servers: a second server of the Danga draft, variants of the
// reference servers that use the freedoms of the specifications, and servers without one message type. A case that
// fails on one of them may be wrong. These servers run in memory and virtual time, with the time limits of users.
//
// CI tests the reference servers over TCP with "jobwire conform PROTOCOL", and the real servers with --profile.
package servertest

import (
	"context"
	"testing"
	"testing/synctest"

	"jobwire/codec/danga"
	"jobwire/conform"
	"jobwire/conform/mutanttest"
	"jobwire/conform/report"
	"jobwire/internal/target"
	"jobwire/internal/verdict"
	"jobwire/play"
)

// TestSecondDangaServer tests a server that shares no code with the reference server. No real server of the Danga draft
// exists. A case that fails here requires one of two interpretations of the specification. With -short, only the first
// instance of each case runs.
func TestSecondDangaServer(t *testing.T) {
	t.Parallel()
	suite := mutanttest.Load(t, danga.Protocol).InProcess()
	if testing.Short() {
		suite = suite.First()
	}
	for _, how := range everySegmentation {
		t.Run(how.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := &conform.Runner{Segments: []play.Segmentation{how}, Start: func(ctx context.Context) (target.Target, error) {
					return target.InMemory(ctx, "naive", serveNaiveDanga)
				}}
				for _, res := range runInBubble(t, r, suite) {
					if res.Verdict != verdict.Passed && res.Verdict != verdict.NonStrict {
						t.Errorf("%s: %s\n%s", res.Case.ID, res.Verdict, report.Result(res))
					}
				}
			})
		})
	}
}
