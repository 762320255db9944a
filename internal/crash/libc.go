package crash

import (
	"path"
	"slices"
	"strings"
)

// messages are messages of one line: those of the C library before it aborts a process, and that of Node.js that memory
// is exhausted. The stack after it is ignored, because it is that of the garbage collector.
var messages = []struct {
	line       pattern
	kind, tool string
}{
	{lazily(`^\*\*\* stack smashing detected \*\*\*`), "stack-buffer-overflow", "glibc"},
	{lazily(`^\*\*\* buffer overflow detected \*\*\*`), "buffer-overflow", "glibc"},
	{lazily(`^\*\*\* .* detected \*\*\*`), "fortify failure", "glibc"},
	{lazily(`^(?:\*\*\* Error in .*: )?(?:free\(\): double free|double free or corruption)`), "double-free",
		"glibc"},
	{lazily(`^(?:\*\*\* Error in .*: )?(?:(?:free|munmap_chunk|realloc)\(\): invalid (?:pointer|old size))`),
		"bad-free", "glibc"},
	{lazily(`^(?:\*\*\* Error in .*: )?(?:(?:malloc|free|realloc|calloc|malloc_consolidate|_int_malloc|munmap_chunk|tcache_\w+)\(\): |corrupted (?:size|double-linked list)|malloc\.c:\d+: |break adjusted to free)`), "heap-corruption", "glibc"},
	{lazily(`^Fatal error: glibc detected`), "abort", "glibc"},
	{lazily(`^FATAL ERROR: .*heap out of memory`), "out-of-memory", "Node.js"},
}

// parseMessage parses a message of one line.
func parseMessage(lines []string, i int) ([]Report, int) {
	for _, k := range messages {
		if k.line().MatchString(lines[i]) {
			return []Report{{Kind: k.kind, Tool: k.tool, Text: basenames(lines[i])}}, i + 1
		}
	}
	return nil, 0
}

var terminated = lazily(`terminate called (?:after throwing an instance of '(.+)'|(without an active exception|recursively))|terminating (?:due to|with) uncaught exception of type ([^ ]+?(?: \w+\*)?)(?:: (.*))?$`)

// parseTerminate parses the message of a C++ program that ends because of an uncaught exception.
func parseTerminate(lines []string, i int) ([]Report, int) {
	m := terminated().FindStringSubmatch(lines[i])
	if m == nil {
		return nil, 0
	}
	r := Report{Kind: "exception", Tool: "C++", Text: m[1] + m[3]}
	if m[2] != "" {
		r.Text = "terminate called " + m[2]
	}
	what := m[4]
	if i+1 < len(lines) {
		if w, ok := strings.CutPrefix(strings.TrimSpace(lines[i+1]), "what():  "); ok {
			what, i = w, i+1
		}
	}
	if what != "" {
		r.Text += ": " + what
	}
	return []Report{r}, i + 1
}

// assertions matches the messages of failed assertions of glibc, of musl, and of BSD and macOS.
var assertions = []pattern{
	lazily(`^(?:\S+: )?(?P<file>[^\s:]+):(?P<line>\d+): (?:(?P<function>[^:]+(?:::[^:]+)*): )?(?P<text>Assertion .* failed\.?)`),
	lazily(`^(?P<text>Assertion failed: .*?) \((?P<file>[^\s:]+): (?P<function>\w+): (?P<line>\d+)\)`),
	lazily(`^(?P<text>Assertion failed: .*), function (?P<function>.+), file (?P<file>[^\s,]+), line (?P<line>\d+)`),
	lazily(`^(?:.*\s)?(?P<file>[^\s:]+\.\w+):(?P<line>\d+):? .*(?P<text>[Aa]ssert(?:ion)? .*failed.*)$`),
	lazily(`(?P<text>\b[Aa]ssertion\b.*\bfailed\b.*)$`),
}

// parseAssertion parses the message of a failed assertion.
func parseAssertion(lines []string, i int) ([]Report, int) {
	if !strings.Contains(lines[i], "ssert") {
		return nil, 0
	}
	for _, re := range assertions {
		m := re().FindStringSubmatch(lines[i])
		if m == nil {
			continue
		}
		group := func(name string) string {
			if k := re().SubexpIndex(name); k >= 0 {
				return strings.TrimSpace(m[k])
			}
			return ""
		}
		r := Report{Kind: "assertion", Text: group("text")}
		if function := group("function"); function != "" {
			r.Frames = []string{function}
		}
		if group("file") != "" {
			r.Place = path.Base(group("file")) + ":" + group("line")
			r.Text = r.Place + ": " + r.Text
			if r.Frames == nil {
				r.Frames = []string{r.Place}
			}
		}
		if r.Place == "" {
			r.Tool = "assert" // with a tool, the bucket contains the text of the assertion
		}
		return []Report{r}, i + 1
	}
	return nil, 0
}

var (
	symbolLine = lazily(`(?:^|[\s=])([^\s()\[\]]+)(?: [^()\[\]]*)?\(([^()+\s]*)(?:\+(0x[0-9a-f]+))?\)\s*\[0x[0-9a-f]+\]`)
	namedLine  = lazily(`^[?#]\d+\s+0x[0-9a-f]+ in (\S+) at (\S+)$`)
	// prefix that gearmand writes before each line of backtrace_symbols
	numbered   = lazily(`^[?#]\d+\s+0x[0-9a-f]+ in `)
	stackTitle = lazily(`(?i)stack ?trace|backtrace`)
)

// parseBacktrace parses a stack in the format of backtrace_symbols, such as "/usr/sbin/gearmand(+0x1a2b)
// [0x55d0c1a2b]", or in the format of gearmand. A stack has at least two frames.
func parseBacktrace(lines []string, i int) ([]Report, int) {
	var stack []frame
	next := i
	for ; next < len(lines); next++ {
		if m := symbolLine().FindStringSubmatch(numbered().ReplaceAllString(lines[next], "")); m != nil {
			stack = append(stack, frame{function: m[2], module: base(m[1]), offset: m[3]})
		} else if m := namedLine().FindStringSubmatch(lines[next]); m != nil {
			stack = append(stack, frame{function: m[1], module: base(m[2])})
		} else {
			break
		}
	}
	if len(stack) < 2 {
		return nil, 0
	}
	r := Report{Text: "stack trace"}
	if i > 0 && stackTitle().MatchString(lines[i-1]) {
		r.Text = strings.TrimSpace(lines[i-1])
	}
	r.setStack(withoutStart(withoutHandler(stack)), internalC)
	return []Report{r}, next
}

// withoutHandler removes the frames of a signal handler, and the frame of the C library function that called it, which
// has no name.
func withoutHandler(stack []frame) []frame {
	i := slices.IndexFunc(stack, func(f frame) bool { return libraries().MatchString(f.module) })
	if i < 0 || i > 4 || i+1 >= len(stack) || stack[i].function != "" && stack[i].function != "__restore_rt" ||
		starts().MatchString(stack[i+1].function) {
		return stack
	}
	return stack[i+1:]
}

// base returns the last element of a path, or "" for an empty path.
func base(name string) string {
	if name == "" {
		return ""
	}
	return path.Base(name)
}
