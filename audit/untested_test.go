package audit

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"jobwire/codec/gearman"
	"jobwire/internal/target"
	"jobwire/internal/verdict"
)

// TestUntested tests that drivers that send no message have not passed: neither one that supports no task, nor one that
// answers tasks without a connection or on one that it does not use.
func TestUntested(t *testing.T) {
	t.Parallel()
	answers := func(answer func(task string) string) Driver {
		return func(_ context.Context, _ string, tasks io.Reader, w io.Writer) error {
			lines := bufio.NewScanner(tasks)
			for lines.Scan() {
				fmt.Fprintln(w, answer(lines.Text()))
			}
			return nil
		}
	}
	for name, tt := range map[string]struct {
		driver  Driver
		verdict verdict.Verdict
		note    string
	}{
		"unsupported": {answers(func(string) string { return "error unsupported" }), verdict.Unsupported, ""},
		"pretended": {answers(func(task string) string {
			if strings.HasSuffix(task, " background") {
				return "ok H:host:1"
			}
			return "error unsupported"
		}), verdict.WrongResult, "the driver reported success, but sent no message"},
	} {
		synctest.Test(t, func(t *testing.T) {
			all, err := Stress(t.Context(), StressOptions{Protocol: gearman.Protocol,
				FaultProfiles: []*FaultProfile{FaultProfileNamed("plain")},
				Drivers:       map[string]Driver{"Client": tt.driver}, Start: func(ctx context.Context) (target.Target, error) {
					return target.InMemory(ctx, "server", func(ctx context.Context, _ net.Listener) error { <-ctx.Done(); return nil })
				}})
			if err != nil || len(all) != 1 {
				t.Fatal(all, err)
			}
			if got := UntestedRoles(all); !slices.Equal(got, []string{"Client"}) || all[0].Verdict != tt.verdict ||
				all[0].Note != tt.note {
				t.Errorf("%s: got the verdict %s, %q and %v", name, all[0].Verdict, all[0].Note, got)
			}
			report := &StressReport{Protocol: gearman.Protocol, Outcomes: all}
			var out bytes.Buffer
			if report.WriteJSON(&out); !strings.Contains(out.String(), `"passed": false`) {
				t.Errorf("%s: %s", name, out.String())
			}
			out.Reset()
			if report.WriteSummary(&out); !strings.Contains(out.String(), " 0 passed, ") {
				t.Errorf("%s: %s", name, out.String())
			}
		})
	}
}
