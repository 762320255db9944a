package report_test

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"jobwire/codec/gearman"
	"jobwire/pcap/internal/pcaptest"
	"jobwire/pcap/report"
)

// TestListingWidth checks that a listing for a terminal has no line that is longer than the terminal is wide, with and
// without color, and that it has the same text as a listing without a limit.
func TestListingWidth(t *testing.T) {
	capture := pcaptest.Capture(t, gearman.Protocol, `
Client -> Job Server: SUBMIT_JOB_BG a-long-name-of-a-function a-long-unique-id "some words and some more words and others"
Job Server -> Client: JOB_CREATED H:a-host-with-a-long-name.example.org:1
Client -> Job Server: raw 00 "REQ" 00 00 00 6f 00 00 00 00
`)
	list := func(o report.ListingOptions) string {
		var out bytes.Buffer
		l := report.NewListing(&out, o)
		pcaptest.Decode(t, capture, l.Add)
		if err := l.Flush(); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	text := func(s string) string { return strings.Join(strings.Fields(strings.ReplaceAll(s, "#", "")), "") }
	for _, o := range []report.ListingOptions{{Lines: true}, {}, {Lines: true, Full: true}} {
		whole := list(o)
		for _, width := range []int{40, 80, 120} {
			o.Width = width
			got := list(o)
			for line := range strings.Lines(got) {
				if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
					t.Errorf("%+v: expected lines of at most %d characters, got %d: %s", o, width, n, line)
				}
			}
			if text(got) != text(whole) {
				t.Errorf("%+v: expected the words of\n%s\ngot\n%s", o, whole, got)
			}
			o.Color = true
			if colored := list(o); strings.Count(colored, "\n") != strings.Count(got, "\n") {
				t.Errorf("%+v: expected the lines of\n%s\ngot\n%s", o, got, colored)
			}
			o.Color = false
		}
	}
}
