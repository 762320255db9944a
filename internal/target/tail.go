package target

import (
	"bytes"
	"fmt"
	"strings"
	"sync"

	"jobwire/internal/crash"
)

const (
	tailSize = 64 << 10 // how many bytes at the end of a program's output are kept
	headSize = 8 << 10  // how many bytes of a crash report before the tail are kept
)

// Tail keeps the last tailSize bytes written to it, and the head of the last crash report before them.
type Tail struct {
	mu   sync.Mutex
	buf  []byte // grows to twice tailSize, and is then cut to its last half
	head []byte // beginning of a crash report in the part that was cut
	cut  int    // bytes that were cut since the beginning of head, including head
}

// Write adds output of the program. It never fails, and it takes any number of bytes.
func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(p)
	for len(p) > 0 {
		piece := p[:min(len(p), tailSize)]
		p = p[len(piece):]
		if len(t.buf)+len(piece) > 2*tailSize {
			t.shorten()
		}
		t.buf = append(t.buf, piece...)
	}
	return n, nil
}

// shorten cuts buf to its last tailSize bytes.
func (t *Tail) shorten() {
	gone := len(t.buf) - tailSize
	if at := crash.Begin(t.buf[:gone], headSize); at >= 0 {
		t.head = bytes.Clone(t.buf[at:min(at+headSize, gone)])
		t.cut = -at
	}
	t.cut += gone
	t.buf = t.buf[:copy(t.buf, t.buf[gone:])]
}

// String returns the last tailSize bytes. If a crash report began before them, its head comes first.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	from := max(0, len(t.buf)-tailSize)
	head, cut := t.head, t.cut+from
	if at := crash.Begin(t.buf[:from], headSize); at >= 0 {
		head, cut = t.buf[at:min(at+headSize, from)], from-at
	}
	if len(head) == 0 || crash.Begin(t.buf[from:], headSize) >= 0 {
		return string(t.buf[from:])
	}
	return fmt.Sprintf("%s\n[%d bytes left out]\n%s", head, cut-len(head), t.buf[from:])
}

const (
	lastLines = 5   // of an output without a crash report
	lineBytes = 200 // of a line
)

func shorten(line string) string {
	if len(line) > lineBytes {
		return fmt.Sprintf("%s [%d bytes left out]", line[:lineBytes], len(line)-lineBytes)
	}
	return line
}

// Excerpt returns the part of a program's output that errors show, with each line indented by two spaces, and its
// title. The part is the head of a crash report and its summary, or else the last lines.
func Excerpt(output string) (title, text string) {
	split := func(s string) (lines []string) {
		for line := range strings.FieldsFuncSeq(s, func(r rune) bool { return r == '\n' || r == '\r' }) {
			lines = append(lines, "  "+shorten(line))
		}
		return lines
	}
	report := crash.Ended("", output)
	if report.Total == 0 {
		lines := split(output)
		return "last output", strings.Join(lines[max(0, len(lines)-lastLines):], "\n")
	}
	lines := split(strings.Join(report.Lines, "\n"))
	if n := report.Total - len(report.Lines); n > 0 {
		lines = append(lines, fmt.Sprintf("  [%d lines left out]", n))
		if m := crash.Summary(output); m != "" {
			lines = append(lines, "  "+m)
		}
	}
	return "crash report", strings.Join(lines, "\n")
}
