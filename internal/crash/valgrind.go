package crash

import (
	"strconv"
	"strings"
)

var (
	valgrindLine  = lazily(`^==\d+== ?(.*)$`)
	valgrindFrame = lazily(`^ +(?:at|by) (0x[0-9A-F]+): (.+)$`)
	valgrindAt    = lazily(`^(.*) \((?:in ([^()]+)|([^():]+):(\d+))\)$`)
	valgrindLost  = lazily(`^([\d,]+)(?: \(([\d,]+) direct, [\d,]+ indirect\))? bytes in [\d,]+ blocks are (?:definitely|possibly) lost`)
	valgrindEnd   = lazily(`^Process terminating with default action of signal \d+ \((\w+)\)`)
)

// valgrindKinds maps the first lines of Memcheck's reports to kinds.
var valgrindKinds = []struct{ prefix, kind string }{
	{"Invalid read of size", "invalid-read"}, {"Invalid write of size", "invalid-write"},
	{"Invalid free()", "bad-free"}, {"Mismatched free()", "alloc-dealloc-mismatch"},
	{"Conditional jump or move depends on uninit", "use-of-uninitialized-value"},
	{"Use of uninit", "use-of-uninitialized-value"},
	{"Syscall param", "use-of-uninitialized-value"}, {"Source and destination overlap", "memcpy-param-overlap"},
	{"Jump to the invalid address", "invalid-jump"}, {"Argument ", "allocation-size-too-big"},
	{"Possible data race", "data-race"},
}

// parseValgrind parses a report of Valgrind's tool Memcheck.
func parseValgrind(lines []string, i int) ([]Report, int) {
	text, ok := valgrind(lines[i])
	if !ok || text == "" {
		return nil, 0
	}
	r := Report{Tool: "Valgrind", Text: text}
	for _, k := range valgrindKinds {
		if strings.HasPrefix(text, k.prefix) {
			r.Kind = k.kind
		}
	}
	if m := valgrindLost().FindStringSubmatch(text); m != nil {
		n := m[1]
		if m[2] != "" {
			n = m[2]
		}
		r.Kind = "leak"
		r.Leaked, _ = strconv.ParseInt(strings.ReplaceAll(n, ",", ""), 10, 64)
		r.Text, _, _ = strings.Cut(text, " in loss record")
	}
	if m := valgrindEnd().FindStringSubmatch(text); m != nil {
		r.Signal = signalOf(m[1])
		r.Kind = kindOf(r.Signal)
	}
	if r.Kind == "" {
		return nil, 0
	}
	stack, note, next := valgrindStack(lines, i+1)
	switch {
	case strings.HasPrefix(r.Kind, "invalid-") && strings.Contains(note, " free'd"):
		r.Kind = "heap-use-after-free"
	case strings.HasPrefix(r.Kind, "invalid-") && strings.Contains(note, " alloc'd"):
		r.Kind = "heap-buffer-overflow"
	case r.Kind == "bad-free" && strings.Contains(note, " free'd"):
		r.Kind = "double-free"
	case strings.Contains(note, "Stack overflow"):
		r.Kind = "stack-overflow"
	}
	r.setStack(stack, internalC)
	return []Report{r}, next
}

// valgrind returns the text after the process ID in a line of Valgrind.
func valgrind(line string) (text string, ok bool) {
	m := valgrindLine().FindStringSubmatch(line)
	if m == nil {
		return "", false
	}
	return m[1], true
}

// valgrindStack parses the stack of a report, and the lines before and after the stack that describe the address.
func valgrindStack(lines []string, i int) (stack []frame, note string, next int) {
	ended := false
	for ; i < len(lines); i++ {
		text, ok := valgrind(lines[i])
		if !ok || text == "" {
			break
		}
		m := valgrindFrame().FindStringSubmatch(text)
		switch {
		case m == nil:
			note += text + "\n"
			ended = ended || len(stack) > 0
		case !ended:
			stack = append(stack, valgrindFrameOf(m[1], m[2]))
		}
	}
	return withoutStart(stack), note, i
}

// valgrindFrameOf parses the text after the address of a frame: "two (t.c:10)", "free (in /usr/lib/x.so)" or "???". If
// only the module is known, it uses the last 12 bits of the address as the offset, because the other bits depend on the
// address at which the module is loaded.
func valgrindFrameOf(address, text string) frame {
	f := frame{function: text}
	if m := valgrindAt().FindStringSubmatch(text); m != nil {
		f = frame{function: m[1], module: base(m[2]), file: m[3], line: m[4]}
	}
	if f.function == "???" {
		f.function = ""
		if f.module != "" && len(address) > 5 {
			f.offset = "…" + strings.ToLower(address[len(address)-3:])
		}
	}
	return f
}
