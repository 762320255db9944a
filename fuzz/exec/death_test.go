package exec

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"jobwire/internal/target"
)

// printer is a server that runs, and whose output changes with time.
type printer struct {
	target.Target
	output func() string
	done   chan struct{}
}

func (p printer) Done() <-chan struct{} { return p.done }
func (p printer) Output() string        { return p.output() }
func (p printer) Err() error            { return nil }

// TestSanitizerReports tests that a report of undefined behavior after which the server goes on is not a crash and hides no
// other fault, that the report of another sanitizer is one, and that it is read to its end.
func TestSanitizerReports(t *testing.T) {
	const undefined = "queue.c:25:32: runtime error: signed integer overflow: 2147483647 + 1 cannot be represented in type 'int'\n"
	const begin = "==7==ERROR: AddressSanitizer: heap-use-after-free on address 0x602000000010 at pc 0x55\nWRITE of size 8 at 0x602000000010 thread T0\n    #0 0x55 in pop /src/queue.c:20\n"
	const summary = "SUMMARY: AddressSanitizer: heap-use-after-free /src/queue.c:20 in pop\n"
	running := make(chan struct{})
	server := func(output string) printer { return printer{done: running, output: func() string { return output }} }
	wrong := &Fault{Oracle: Law, Law: "missing message", Conn: 1, Step: 2}
	for _, tt := range []struct {
		output string
		fault  *Fault
		want   string
		ends   bool
	}{
		{"ready\n", nil, "", false}, {undefined, nil, Undefined, false}, {undefined, wrong, Law, false},
		{undefined + begin + summary, nil, Sanitizer, true}, {begin + summary, wrong, Sanitizer, true},
	} {
		got := Verdict(server(tt.output), tt.fault)
		if got == nil {
			got = &Fault{}
		}
		if got.Oracle != tt.want || got.Ends() != tt.ends {
			t.Errorf("%q, %v: got %+v", tt.output, tt.fault, got)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		started := time.Now()
		long := strings.Repeat("  0x0c047fff8000: fa fa fd fd\n", 300)
		v := Verdict(printer{done: make(chan struct{}), output: func() string {
			if time.Since(started) < 2*time.Second {
				return begin
			}
			return begin + long + summary
		}}, nil)
		if v == nil || !strings.HasPrefix(v.Output, "==7==ERROR") || !strings.HasSuffix(v.Output+"\n", summary) {
			t.Errorf("the report is cut: %+v", v)
		}
	})
}
