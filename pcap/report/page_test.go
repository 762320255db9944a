package report_test

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"jobwire/codec/gearman"
	"jobwire/pcap"
	"jobwire/pcap/internal/pcaptest"
	"jobwire/pcap/report"
)

// pageOf returns the page about a capture of jobs that complete, and of one that does not end.
func pageOf(t *testing.T, count int, function string) string {
	t.Helper()
	var script strings.Builder
	fmt.Fprintf(&script, "Worker -> Job Server: CAN_DO %q\n", function)
	for i := range count {
		handle := fmt.Sprintf("%q", fmt.Sprintf("H:<i>:%d", i))
		fmt.Fprintf(&script, "Client -> Job Server: SUBMIT_JOB %q \"\" input\nJob Server -> Client: JOB_CREATED %s\n", function, handle)
		fmt.Fprintf(&script, "Worker -> Job Server: GRAB_JOB\nJob Server -> Worker: JOB_ASSIGN %s %q input\n", handle, function)
		fmt.Fprintf(&script, "Worker -> Job Server: WORK_COMPLETE %s output\nJob Server -> Client: WORK_COMPLETE %s output\n", handle, handle)
	}
	fmt.Fprintf(&script, "Client -> Job Server: SUBMIT_JOB %q \"\" input\nJob Server -> Client: JOB_CREATED H:forgotten\n", function)
	p := report.New()
	d := pcaptest.Decode(t, pcaptest.Capture(t, gearman.Protocol, script.String()), p.Add)
	var page bytes.Buffer
	if err := p.WriteHTML(&page, `</title><b>"a" & 'b'`, d); err != nil {
		t.Fatal(err)
	}
	return page.String()
}

// TestPageIsSelfContained tests that the page about a capture loads and runs nothing, shows the phases of each job, and
// shows text of the capture as text and not as markup.
func TestPageIsSelfContained(t *testing.T) {
	page := strings.ReplaceAll(pageOf(t, 3, "<script>reverse"), "&#43;", "+")
	for _, want := range []string{"4 jobs, 21 messages", "2 connections", "H:&lt;i&gt;:2", "&lt;script&gt;reverse", "never assigned",
		"submitted (connection 2), created +1.00 ms (connection 2), assigned +3.00 ms (connection 1), completed +4.00 ms (connection 1), result delivered +5.00 ms"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if found := regexp.MustCompile(`(?i)\b(src|href)\s*=\s*"?[^"d]|https?:|@import|url\(|<script`).FindString(page); found != "" {
		t.Errorf("the page fetches or runs something: %s", found)
	}
	if strings.Contains(page, "</title><b>") || strings.Contains(page, "H:<i>") {
		t.Error("what a capture says is taken for markup")
	}
	if strings.Contains(page, "ZgotmplZ") {
		t.Error("the template refuses a value")
	}
	for _, class := range []string{"wait", "run", "return", "up", "down"} {
		if !strings.Contains(page, `<i class="`+class+`" style="left:`) {
			t.Errorf("there is no bar of class %s", class)
		}
	}
}

// TestPageIsBounded tests that the page about a capture with many jobs draws only some of them, and says how many it
// omits.
func TestPageIsBounded(t *testing.T) {
	page := pageOf(t, 1500, "reverse")
	if n := len(page); n > 250_000 {
		t.Errorf("the page has %d bytes", n)
	}
	n, left := 0, 0
	_, text, _ := strings.Cut(page, "with the first message about its job")
	if _, err := fmt.Sscanf(strings.TrimLeft(text, ". \n"), "%d jobs are shown, %d,%03d are not", &n, new(int), &left); err != nil || n < 100 || n > 150 {
		t.Errorf("%d jobs are drawn: %v", n, err)
	}
	if rows := strings.Count(page, `<span class="name`) - 2; rows != n { // and two connections
		t.Errorf("%d rows are drawn, not %d", rows, n)
	}
}

// TestPageOfEmptyCapture tests that the page about a capture without jobs says that there are none.
func TestPageOfEmptyCapture(t *testing.T) {
	p := report.New()
	var page bytes.Buffer
	if err := p.WriteHTML(&page, "empty", pcap.NewDecoder(pcap.Options{}, p.Add)); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(page.String(), "The capture contains no jobs.") {
		t.Error("it is not said that no jobs were seen")
	}
}
