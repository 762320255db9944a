// Package servertest runs the test suites against correct servers: the reference servers, a second server of the Danga
// draft, variants of the reference servers that use the freedoms of the specifications, servers without one message
// type, and real servers. A case that fails on one of them may be wrong.
//
// Its tests take minutes and depend on the time limits that users have, so they run without the race detector.
package servertest

import (
	"context"
	"net"
	"slices"
	"testing"
	"time"

	"jobwire/catalog"
	"jobwire/codec"
	"jobwire/codec/danga"
	"jobwire/conform"
	"jobwire/conform/mutanttest"
	"jobwire/internal/peers"
	"jobwire/internal/target"
	"jobwire/play"
	"jobwire/refserver"
)

// everySegmentation is all ways to divide messages into writes.
var everySegmentation = []play.Segmentation{play.Plain, play.Bytewise, play.Coalesced}

// TestReferenceServers tests the reference servers. With -short, only the first instance of each case runs.
func TestReferenceServers(t *testing.T) {
	t.Parallel()
	for _, e := range catalog.All() {
		t.Run(e.Protocol.Name, func(t *testing.T) {
			t.Parallel()
			suite := mutanttest.Load(t, e.Protocol)
			if testing.Short() {
				suite = suite.First()
			}
			r := conform.Runner{Start: embedded(e), StartProcess: process(e, "none"), Programs: e.Programs, Parallel: 8, Timeout: 5 * time.Second}
			for _, res := range r.Run(t.Context(), suite, nil) {
				if res.Verdict != conform.Passed {
					t.Errorf("%s: %s\n%s", res.Case.ID, res.Verdict, res.Text())
				}
			}
		})
	}
}

// TestSecondDangaServer tests a server that shares no code with the reference server. No real server of the Danga draft
// exists. A case that fails here requires one of two interpretations of the specification. With -short, only the first
// instance of each case runs.
func TestSecondDangaServer(t *testing.T) {
	t.Parallel()
	r := conform.Runner{Parallel: 8, Timeout: 5 * time.Second, Segments: everySegmentation,
		Start: func(ctx context.Context) (target.Target, error) { return target.Func(ctx, "naive", serveNaiveDanga) }}
	suite := mutanttest.Load(t, danga.Protocol).InProcess()
	if testing.Short() {
		suite = suite.First()
	}
	for _, res := range r.Run(t.Context(), suite, nil) {
		if res.Verdict != conform.Passed && res.Verdict != conform.NonStrict {
			t.Errorf("%s: %s\n%s", res.Case.ID, res.Verdict, res.Text())
		}
	}
}

// TestRealServers tests the servers that have profiles. They must have only the deviations that their profiles list. With
// -short, only the first instance of each case runs.
func TestRealServers(t *testing.T) {
	t.Parallel()
	for _, e := range catalog.All() {
		for _, name := range realServers(e.Protocol) {
			t.Run(name, func(t *testing.T) {
				peers.Need(t, name)
				t.Parallel()
				s := mutanttest.Load(t, e.Protocol)
				profile, err := conform.LoadProfile(name, s)
				if err != nil {
					t.Fatal(err)
				}
				if testing.Short() {
					s = s.First()
				}
				r := conform.Runner{Programs: e.Programs, Parallel: 8, Timeout: 2 * time.Second, Profile: profile, Start: executed(profile)}
				for _, res := range r.Run(t.Context(), s, nil) {
					if res.Verdict.FailsRun() {
						t.Errorf("%s: %s\n%s", res.Case.ID, res.Verdict, res.Text())
					}
				}
			})
		}
	}
}

// realServers returns the names of the profiles of servers that are not part of jobwire.
func realServers(p *codec.Protocol) []string {
	return slices.DeleteFunc(conform.Profiles(p), func(name string) bool { return name == "embedded" })
}

// embedded returns a function that starts the reference server of the protocol in this process.
func embedded(e *catalog.Entry) func(context.Context) (target.Target, error) {
	return func(ctx context.Context) (target.Target, error) {
		return target.Func(ctx, "embedded", func(ctx context.Context, ln net.Listener) error {
			return refserver.New(e.New(), refserver.Options{Protocol: e.Protocol}).Serve(ctx, ln)
		})
	}
}

// executed returns a function that starts the real server of the profile.
func executed(profile *conform.Profile) func(context.Context) (target.Target, error) {
	return func(ctx context.Context) (target.Target, error) { return target.Exec(ctx, profile.Exec) }
}
