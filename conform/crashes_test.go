package conform

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"jobwire/codec/gearman"
	"jobwire/internal/target"
	"jobwire/internal/verdict"
	"jobwire/refserver"
	server "jobwire/refserver/gearman"
	"jobwire/refserver/inject"
)

// faulty returns a function that starts the reference server of Gearman with an edit, in memory.
func faulty(edit inject.Edit) func(context.Context) (target.Target, error) {
	p := injector
	return func(ctx context.Context) (target.Target, error) {
		return target.InMemory(ctx, "faulty", func(ctx context.Context, ln net.Listener) error {
			return p.Serve(ctx, ln, &inject.MutantSpec{Edit: edit})
		})
	}
}

var injector = inject.Protocol{Protocol: gearman.Protocol, New: func() refserver.Machine { return server.New(server.Options{}) }}

// edit returns the edit of a fault script.
func edit(script string) inject.Edit {
	e, err := injector.ParseFaults(script)
	if err != nil {
		panic(err)
	}
	return e
}

// echoing returns a function that starts servers that send back each message as an ECHO_RES. A server crashes the given time
// after it has received an ECHO_REQ with the data "poison", if poisoned returns true for the number of this message.
func echoing(after time.Duration, poisoned func(number int64) bool) func(context.Context) (target.Target, error) {
	var number atomic.Int64
	return func(ctx context.Context) (target.Target, error) {
		return target.InMemory(ctx, "echoing", func(ctx context.Context, ln net.Listener) error {
			ctx, end := context.WithCancelCause(ctx)
			defer context.AfterFunc(ctx, func() { ln.Close() })()
			var wait sync.WaitGroup
			defer wait.Wait()
			defer end(nil)
			for {
				c, err := ln.Accept()
				if err != nil {
					<-ctx.Done()
					return context.Cause(ctx)
				}
				wait.Go(func() {
					defer c.Close()
					defer context.AfterFunc(ctx, func() { c.Close() })()
					b := make([]byte, 1024)
					for {
						n, err := c.Read(b)
						if err != nil {
							return
						}
						b[3], b[7] = 'S', 17
						c.Write(b[:n])
						if string(b[12:n]) == "poison" && poisoned(number.Add(1)) {
							time.AfterFunc(after, func() {
								ln.Close() // as the exit of a process does, before the connections end
								end(errors.New("poisoned"))
							})
						}
					}
				})
			}
		})
	}
}

// crashSuite has a case that poisons the server of echoing, and a case after it.
func crashSuite(t *testing.T) *Suite {
	t.Helper()
	src := "@section s\n@rules gearman.echo.same-data\n"
	for _, data := range []string{"one", "poison", "two", "three"} {
		src += "@case " + data + "\n@about An echo.\nClient -> Job Server: ECHO_REQ " + data + "\nJob Server -> Client: ECHO_RES " + data + "\n"
		if data == "two" {
			src += "Job Server -> Client: nothing for 300ms\n"
		}
	}
	s, err := LoadFS(gearman.Protocol, fstest.MapFS{"a.wire": {Data: []byte(src)}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestLateCrash tests that the case that crashed the target is found, although the target crashes while the next case runs,
// or after the last case.
func TestLateCrash(t *testing.T) {
	all := crashSuite(t)
	// The server crashes 100 ms after the case poison: the next case of the whole suite runs then. Poison is the last case
	// of the other suite.
	for _, s := range []*Suite{all, all.With(all.Cases[:2]...)} {
		synctest.Test(t, func(t *testing.T) {
			r := Runner{Start: echoing(100*time.Millisecond, func(int64) bool { return true })}
			for _, res := range r.Run(t.Context(), s, nil) {
				want := verdict.Passed
				if res.Case.Family == "gearman.poison" {
					want = verdict.Crashed
				}
				if res.Verdict != want {
					t.Errorf("%s: %s (%s), want %s", res.Case.ID, res.Verdict, res.Note, want)
				}
			}
		})
	}
}

// TestLateHang tests that the case after which the target answers nothing is found, although it passes and the next case
// notices the hang.
func TestLateHang(t *testing.T) {
	hangs := edit("drop from-server * when notes.hung != nil\nnote ECHO_RES hung=yes when data == \"poison\"")
	synctest.Test(t, func(t *testing.T) {
		r := Runner{Start: faulty(hangs), Timeout: time.Second}
		for _, res := range r.Run(t.Context(), crashSuite(t), nil) {
			want := verdict.Passed
			if res.Case.Family == "gearman.poison" {
				want = verdict.Hung
			}
			if res.Verdict != want {
				t.Errorf("%s: %s (%s), want %s", res.Case.ID, res.Verdict, res.Note, want)
			}
		}
	})
}

// TestRareCrash tests that a profile can list a crash that no case causes alone, and that this does not excuse others.
func TestRareCrash(t *testing.T) {
	for name, tt := range map[string]struct {
		crashes func(n int64) bool
		want    string
	}{
		"once":   {func(n int64) bool { return n == 1 }, "passed, passed, flaky, passed"},
		"always": {func(int64) bool { return true }, "passed, crashed, passed, passed"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := Runner{Start: echoing(100*time.Millisecond, tt.crashes), Profile: &Profile{Rare: &Exception{Why: "rare"}}}
				var got []string
				for _, res := range r.Run(t.Context(), crashSuite(t), nil) {
					got = append(got, string(res.Verdict))
				}
				if strings.Join(got, ", ") != tt.want {
					t.Errorf("%s, want %s", strings.Join(got, ", "), tt.want)
				}
			})
		})
	}
}

// TestMostLikelyCrashingCaseIsReported tests which case is reported if no case crashes the target alone: a case that the
// profile lists as crashing, otherwise the case that noticed the crash.
func TestMostLikelyCrashingCaseIsReported(t *testing.T) {
	for listed, want := range map[string]string{
		"":             "passed, passed, crashed, passed",
		"gearman.two":  "passed, passed, flaky, passed",
		"gearman.one":  "flaky, passed, passed, passed",
		"gearman.none": "passed, passed, crashed, passed",
	} {
		synctest.Test(t, func(t *testing.T) {
			r := Runner{Start: echoing(100*time.Millisecond, func(n int64) bool { return n == 1 }),
				Profile: &Profile{Flaky: []Exception{{Cases: listed, Crash: true}}}}
			var got []string
			for _, res := range r.Run(t.Context(), crashSuite(t), nil) {
				if got = append(got, string(res.Verdict)); res.Verdict == verdict.Crashed && !strings.Contains(res.Note, "does not make the target crash") {
					t.Errorf("%s: %s", res.Case.ID, res.Note)
				}
			}
			if strings.Join(got, ", ") != want {
				t.Errorf("%q is listed: %s, want %s", listed, strings.Join(got, ", "), want)
			}
		})
	}
}

// fullListener fails at its fifth connection.
type fullListener struct {
	net.Listener
	number atomic.Int64
}

func (l *fullListener) Accept() (net.Conn, error) {
	if l.number.Add(1) >= 5 {
		l.Close()
		return nil, errors.New("the table of connections is full")
	}
	return l.Listener.Accept()
}

// TestElusiveCrashes tests a server that crashes at every fifth connection, whatever the case: the first cases that
// notice this are reported as crashed, and the others are tested.
func TestElusiveCrashes(t *testing.T) {
	src := "@section s\n@rules gearman.echo.same-data\n"
	for n := range 40 {
		src += fmt.Sprintf("@case c%[1]d\n@about An echo.\nClient -> Job Server: ECHO_REQ %[1]d\nJob Server -> Client: ECHO_RES %[1]d\n", n)
	}
	s, err := LoadFS(gearman.Protocol, fstest.MapFS{"a.wire": {Data: []byte(src)}})
	if err != nil {
		t.Fatal(err)
	}
	p := injector
	start := func(ctx context.Context) (target.Target, error) {
		return target.InMemory(ctx, "full", func(ctx context.Context, ln net.Listener) error {
			return p.Serve(ctx, &fullListener{Listener: ln}, &inject.MutantSpec{})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		got := map[verdict.Verdict]int{}
		for _, res := range (&Runner{Start: start, Timeout: time.Second}).Run(t.Context(), s, nil) {
			if got[res.Verdict]++; res.Verdict == verdict.Crashed && !strings.Contains(res.Note, "does not make the target crash when it runs alone") {
				t.Errorf("%s: %s", res.Case.ID, res.Note)
			}
		}
		if got[verdict.Crashed] != maxElusive || got[verdict.Passed] != len(s.Cases)-maxElusive {
			t.Errorf("%v, expected %d crashes, and that all others passed", got, maxElusive)
		}
	})
}
