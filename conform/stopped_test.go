package conform_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"jobwire/codec/gearman"
	"jobwire/conform"
	"jobwire/internal/target"
	"jobwire/internal/transport"
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
	out := &conform.Text{W: &text}
	for _, res := range r.Results {
		out.Case(res)
	}
	out.Summary(r)
	all := []*conform.Report{r}
	for _, err := range []error{conform.WriteJSON(&json, all), conform.WriteJUnit(&junit, all), conform.WriteTAP(&tap, all)} {
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
			if n, left := report.Count(conform.Unreachable), report.Count(conform.NotRun); n != 1 || left != len(s.Cases)-1 {
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

// TestTargetThatDisappears checks that there is one message about a run whose target, at a fixed address, disappears after
// some cases.
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
	report := &conform.Report{Protocol: gearman.Protocol, Target: "server", Results: results, Interrupted: true}
	if report.Count(conform.Skipped) > 0 || report.Ran() < 5 || report.Ran() > 6 {
		t.Errorf("%d cases ran, %d were skipped", report.Ran(), report.Count(conform.Skipped))
	}
	want := fmt.Sprintf("the run was interrupted after %d of 30 cases: %d did not run", report.Ran(), 30-report.Ran())
	all := reports(t, report)
	all["html"] = htmlOf(t, s, []*conform.Report{report})
	all["json"] = strings.Replace(all["json"], `"interrupted": true`, want, 1)
	for form, text := range all {
		if !strings.Contains(text, want) {
			t.Errorf("%s: no %q in:\n%s", form, want, text)
		}
	}
}
