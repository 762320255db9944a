package conform

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"jobwire/codec/gearman"
	"jobwire/internal/target"
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
