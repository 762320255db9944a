package conform

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"jobwire/codec/gearman"
	"jobwire/internal/target"
	"jobwire/internal/verdict"
)

// busy is a target to which some connections fail: those whose numbers, counted from 1, are in fails.
type busy struct {
	target.Target
	number atomic.Int64
	fails  func(number int64) bool
}

func (b *busy) Addr() string {
	if b.fails(b.number.Add(1)) {
		return "memory:nothing listens here"
	}
	return b.Target.Addr()
}

// TestConnectionFails tests that a connection that fails while others succeed is tried again, and does not end the run.
func TestConnectionFails(t *testing.T) {
	src := "@section s\n@rules gearman.echo.same-data\n"
	for _, name := range []string{"a", "b", "c", "d"} {
		src += "@case " + name + "\n@about An echo.\nClient -> Job Server: ECHO_REQ x\nJob Server -> Client: ECHO_RES x\n"
	}
	s, err := LoadFS(gearman.Protocol, fstest.MapFS{"a.wire": {Data: []byte(src)}})
	if err != nil {
		t.Fatal(err)
	}
	// Connection 1 checks the server, 2 and 3 are of the cases a and b, 4 is the first attempt of c, and 5 its second.
	for _, tt := range []struct {
		name  string
		fails func(number int64) bool
		want  string
	}{
		{"never", func(int64) bool { return false }, "passed, passed, passed, passed"},
		{"once", func(n int64) bool { return n == 4 }, "passed, passed, passed, passed"},
		{"twice", func(n int64) bool { return n == 4 || n == 5 }, "passed, passed, inconclusive, passed"},
		{"from then on", func(n int64) bool { return n >= 4 }, "passed, passed, unreachable, not run"},
		{"always", func(int64) bool { return true }, "unreachable, not run, not run, not run"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := func(ctx context.Context) (target.Target, error) {
					srv, err := faulty(nil)(ctx)
					return &busy{Target: srv, fails: tt.fails}, err
				}
				var got []string
				for _, res := range (&Runner{Start: start, Timeout: time.Second}).Run(t.Context(), s, nil) {
					got = append(got, string(res.Verdict))
				}
				if strings.Join(got, ", ") != tt.want {
					t.Errorf("expected %s, got %s", tt.want, strings.Join(got, ", "))
				}
			})
		})
	}
}

// TestServersThatDoNotStart tests a program of which only one server can run at a time: the run goes on with this
// one, and a note has the number of servers.
func TestServersThatDoNotStart(t *testing.T) {
	s, err := LoadFS(gearman.Protocol, setupSuite)
	if err != nil {
		t.Fatal(err)
	}
	for most, want := range map[int64]string{
		1: "3 of 4 servers did not start, so fewer cases ran at the same time: the port is in use",
		4: "",
	} {
		var started atomic.Int64
		report := Report{Protocol: gearman.Protocol}
		synctest.Test(t, func(t *testing.T) {
			start := func(ctx context.Context) (target.Target, error) {
				if started.Add(1) > most {
					return nil, errors.New("the port is in use")
				}
				return faulty(nil)(ctx)
			}
			note := func(note string) { report.Notes = append(report.Notes, note) }
			report.Results = (&Runner{Start: start, Timeout: time.Second, Parallel: 4, Note: note}).Run(t.Context(), s, nil)
		})
		if report.Count(verdict.Passed) != len(s.Cases) || strings.Join(report.Notes, " ") != want {
			t.Errorf("%d servers: %d of %d cases passed, notes %q, expected %q", most, report.Count(verdict.Passed), len(s.Cases), report.Notes, want)
		}
	}
}
