package conform_test

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"jobwire/codec/gearman"
	"jobwire/conform"
	"jobwire/conform/report"
	"jobwire/internal/schemacheck"
	"jobwire/internal/target"
	"jobwire/internal/transport"
	"jobwire/internal/verdict"
)

// echoes returns a suite of n cases.
func echoes(t *testing.T, n int) *conform.Suite {
	t.Helper()
	src := head
	for i := range n {
		src += strings.Replace(echo, "@case echo", fmt.Sprintf("@case echo-%d", i), 1)
	}
	return load(t, src)
}

// reports returns a report in all formats except HTML.
func reports(t *testing.T, r *conform.Report) map[string]string {
	t.Helper()
	var text, json, junit, tap bytes.Buffer
	out := &report.Text{W: &text}
	for _, res := range r.Results {
		out.Case(res)
	}
	out.Summary(r)
	all := []*conform.Report{r}
	for _, err := range []error{report.WriteJSON(&json, all), report.WriteJUnit(&junit, all), report.WriteTAP(&tap, all)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return map[string]string{"text": text.String(), "json": json.String(), "junit": junit.String(), "tap": tap.String()}
}

// TestUnreachableTargetIsReportedOnce checks that there is one message, however many cases there are.
func TestUnreachableTargetIsReportedOnce(t *testing.T) {
	refused := func(context.Context) (target.Target, error) { return target.Address("memory:absent") }
	broken := func(context.Context) (target.Target, error) {
		return nil, &target.Error{Target: "server", Reason: "the program exited", Output: "no such file"}
	}
	for name, r := range map[string]conform.Runner{
		"address": {Start: refused, Parallel: 8},
		"program": {Start: broken, Parallel: 8},
		"fresh":   {Start: broken, Parallel: 8, NewServerPerCase: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := echoes(t, 40)
			report := &conform.Report{Protocol: gearman.Protocol, Target: "server", Results: run(t, r, s)}
			if n, left := report.Count(verdict.Unreachable), report.Count(verdict.NotRun); n != 1 || left != len(s.Cases)-1 {
				t.Errorf("%d cases unreachable, %d not run", n, left)
			}
			if why := report.Unreachable(); !strings.HasPrefix(why, "cannot test ") {
				t.Errorf("the report says %q", why)
			}
			if text := reports(t, report)["text"]; text != "" {
				t.Errorf("the text is not empty:\n%s", text)
			}
		})
	}
}

// TestTargetThatDisappears checks that there is one message about a run whose target, at a fixed address, disappears
// after some cases.
func TestTargetThatDisappears(t *testing.T) {
	t.Parallel()
	start := func(context.Context) (target.Target, error) {
		ln, err := transport.Listen(transport.Memory, nil)
		if err != nil {
			return nil, err
		}
		go func() {
			for i := range 11 { // one connection identifies the protocol
				c, err := ln.Accept()
				if err != nil {
					return
				}
				b := make([]byte, 4096)
				n, _ := c.Read(b)
				copy(b, "\x00RES\x00\x00\x00\x11")
				c.Write(b[:n])
				if i == 10 {
					ln.Close()
				}
				c.Close()
			}
		}()
		return target.Address(transport.Name(ln))
	}
	report := &conform.Report{Protocol: gearman.Protocol, Target: "server", Results: run(t, conform.Runner{Start: start}, echoes(t, 60))}
	if got, want := report.Unreachable(), "the run ended after 10 of 60 cases: "; !strings.HasPrefix(got, want) {
		t.Errorf("the report says %q, want %q", got, want)
	}
	for form, text := range reports(t, report) {
		if n := strings.Count(text, "cannot connect"); n < 1 || n > 2 {
			t.Errorf("%s: %d messages about the connection:\n%s", form, n, text)
		}
	}
}

// TestInterruptedRun checks that every report of a run that the user has interrupted states the interruption.
func TestInterruptedRun(t *testing.T) {
	t.Parallel()
	s := echoes(t, 30)
	var results []conform.Result
	synctest.Test(t, func(t *testing.T) {
		ctx, interrupt := context.WithCancel(t.Context())
		n := 0
		r := conform.Runner{Start: reference}
		results = r.Run(ctx, s, func(conform.Result) {
			if n++; n == 5 {
				interrupt()
			}
		})
	})
	stopped := &conform.Report{Protocol: gearman.Protocol, Target: "server", Results: results, Interrupted: true}
	if stopped.Count(verdict.Skipped) > 0 || stopped.Ran() < 5 || stopped.Ran() > 6 {
		t.Errorf("%d cases ran, %d were skipped", stopped.Ran(), stopped.Count(verdict.Skipped))
	}
	want := fmt.Sprintf("the run was interrupted after %d of 30 cases: %d did not run", stopped.Ran(), 30-stopped.Ran())
	all := reports(t, stopped)
	var page strings.Builder
	if err := report.WriteHTML(&page, s, []*conform.Report{stopped}); err != nil {
		t.Fatal(err)
	}
	all["html"] = page.String()
	all["json"] = strings.Replace(all["json"], `"interrupted": true`, want, 1)
	for form, text := range all {
		if !strings.Contains(text, want) {
			t.Errorf("%s: no %q in:\n%s", form, want, text)
		}
	}
}

// TestInterruptedAtAnyTime interrupts runs at eleven moments, from their begin to their end: the reports are valid
// and claim nothing that was not run, and a run that was interrupted after its last case is complete.
func TestInterruptedAtAnyTime(t *testing.T) {
	t.Parallel()
	src := head
	for i := range 12 {
		name := []string{"answered", "ignored", "crash", "one", "late", "two"}[i%6]
		src += fmt.Sprintf("@case echo-%d\n@about x\n@rules gearman.echo.same-data\n"+
			"Client -> Job Server: ECHO_REQ %s\nJob Server -> Client: ECHO_RES %[2]s\n", i, name)
	}
	s := load(t, src)
	synctest.Test(t, func(t *testing.T) {
		var late atomic.Bool // the server has not yet ignored the message "late"
		start := func(ctx context.Context) (target.Target, error) {
			return target.InMemory(ctx, "server", func(ctx context.Context, ln net.Listener) error {
				ctx, end := context.WithCancelCause(ctx)
				defer context.AfterFunc(ctx, func() { ln.Close() })()
				defer end(nil)
				var wait sync.WaitGroup
				defer wait.Wait()
				for {
					c, err := ln.Accept()
					if err != nil {
						return context.Cause(ctx)
					}
					wait.Go(func() {
						defer c.Close()
						defer context.AfterFunc(ctx, func() { c.Close() })()
						b := make([]byte, 100)
						for {
							n, err := c.Read(b)
							switch {
							case err != nil:
								return
							case bytes.Contains(b[:n], []byte("crash")):
								end(errors.New("crashed"))
							case bytes.Contains(b[:n], []byte("late")) && late.CompareAndSwap(true, false):
							case !bytes.Contains(b[:n], []byte("ignored")):
								time.Sleep(10 * time.Millisecond)
								b[3], b[7] = 'S', 17
								c.Write(b[:n])
							}
						}
					})
				}
			})
		}
		perform := func(t *testing.T, moment time.Duration) *conform.Report {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			late.Store(true)
			began := time.Now()
			stop := time.AfterFunc(moment, cancel)
			defer stop.Stop()
			r := conform.Runner{Start: start, Timeout: 100 * time.Millisecond, Parallel: 2}
			report := &conform.Report{Protocol: gearman.Protocol, Target: "server", Began: began, Results: r.Run(ctx, s, nil)}
			report.Took = time.Since(began)
			report.EndedBy(ctx.Err())
			return report
		}
		whole := perform(t, time.Hour)
		if whole.Interrupted || whole.Count(verdict.Crashed) != 2 || whole.Count(verdict.Failed) != 2 ||
			whole.Count(verdict.Passed) != 8 {
			t.Fatalf("the whole run: %+v", whole)
		}
		for i := range 11 {
			got := perform(t, whole.Took*time.Duration(i)/10)
			ran := 0
			for k, res := range got.Results {
				switch {
				case res.Case != s.Cases[k]:
					t.Errorf("moment %d: result %d is about %v", i, k, res.Case)
				case res.Verdict == verdict.NotRun && (res.Play != nil || res.Crash != nil ||
					!strings.Contains(res.Note, "interrupted")):
					t.Errorf("moment %d: a case that did not run: %+v", i, res)
				case res.Verdict == verdict.NotRun:
				case res.Verdict == whole.Results[k].Verdict:
					ran++
				case res.Verdict == verdict.Inconclusive && strings.Contains(res.Note, "before the case could be repeated"):
					ran++
				case res.Verdict == verdict.Crashed && strings.Contains(res.Note, "not confirmed"):
					ran++
				default:
					t.Errorf("moment %d: %s is %s (%s), and %s in the whole run", i,
						res.Case.ID, res.Verdict, res.Note, whole.Results[k].Verdict)
				}
			}
			if got.Interrupted != (ran < len(s.Cases)) || got.Ran() != ran {
				t.Errorf("moment %d: %d cases ran, interrupted: %v", i, ran, got.Interrupted)
			}
			texts := reports(t, got)
			says := fmt.Sprintf("the run was interrupted after %d of 12 cases: %d did not run", ran, 12-ran)
			for _, format := range []string{"text", "junit", "tap"} {
				if strings.Contains(texts[format], says) != got.Interrupted {
					t.Errorf("moment %d: %s:\n%s", i, format, texts[format])
				}
			}
			var page bytes.Buffer
			err := report.WriteHTML(&page, s, []*conform.Report{got})
			if err != nil || strings.Contains(page.String(), says) != got.Interrupted {
				t.Errorf("moment %d: the page: %v", i, err)
			}
			schemacheck.Check(t, "../docs/schema/conform.json", []byte(texts["json"]))
			if err := xml.Unmarshal([]byte(texts["junit"]), new(struct{ XMLName xml.Name })); err != nil {
				t.Errorf("moment %d: JUnit: %v", i, err)
			}
		}
	})
}
