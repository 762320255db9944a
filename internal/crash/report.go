// Package crash parses the output of a server process that has crashed or has detected an error: reports of sanitizers
// and Valgrind, messages of the C library, backtraces, panics, and uncaught exceptions of several languages. For the
// same fault of a program, [Report.Bucket] returns the same text in every run.
package crash

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Report is the explanation in the output of a server why the server ended, or what is wrong with it.
type Report struct {
	// Kind is the normalized kind: "heap-buffer-overflow", "heap-use-after-free", "double-free", "bad-free",
	// "heap-corruption", "stack-buffer-overflow", "stack-overflow", "out-of-memory", "leak", "data-race", "assertion",
	// "panic", "fatal error", "exception", a signal ("segmentation fault", "abort", "bus error"), or, from [Ended] alone,
	// "exit status 1". It is empty if only a stack is known.
	Kind string

	// Tool is the program or library that wrote the report: "AddressSanitizer", "LeakSanitizer", "MemorySanitizer",
	// "ThreadSanitizer", "UndefinedBehaviorSanitizer", "Valgrind", "glibc", "C++", "Go", "Java", "Node.js", "Perl",
	// "PHP", "Python", "Ruby", "Rust", or "".
	Tool string

	Text   string // the line that reports the fault, without process ID, program counter and paths of directories
	Signal string // the signal that ended the process, as os/exec writes it ("segmentation fault", "aborted"), or ""

	// Frames are functions, or "module+offset" if the function is unknown, innermost first, at most 16. The frames of
	// the runtime, the allocator, the sanitizer and signal handlers above the first frame of the program are omitted.
	// For a stack overflow, Frames are the functions of the recursion, sorted; for a data race, the function of each
	// access, sorted. For a report without a stack, the only frame is the position in the source, if the report states
	// it.
	Frames []string

	Place  string // file, without its directory, and line of the innermost frame, as in "server.c:120"; "" if not known
	Leaked int64  // leaked bytes, if the report is about a leak

	// Lines are the first lines of the output that belong to the report, at most 8, and their number.
	Lines []string
	Total int

	cause string // the text of the report without additions, for the bucket; "": Text
}

const (
	maxFrames = 16
	maxLines  = 8
)

// Fault returns the text of the report in the output of a process, such as the line of a panic or a failed assertion.
// [Ended] has returned r. Fault returns "" if the output has no report or only a stack.
func (r Report) Fault() string { return r.cause }

// Where returns the first frame of the program with its position, such as "main.(*queue).pop at queue.go:5", or "".
func (r Report) Where() string {
	if len(r.Frames) == 0 {
		return ""
	}
	if r.Place == "" || r.Place == r.Frames[0] {
		return r.Frames[0]
	}
	return r.Frames[0] + " at " + r.Place
}

// Bucket returns a text that is the same for all crashes with the same cause: the tool, the kind, the first three
// frames and the position of the first frame. Without frames, it contains the text of the report without numbers.
func (r Report) Bucket() string {
	var b strings.Builder
	b.WriteString(strings.TrimSpace(r.Tool + " " + cmp.Or(r.Kind, "stack")))
	if len(r.Frames) == 0 {
		if text := Normalize(cmp.Or(r.cause, r.Text)); text != "" && r.Tool != "" {
			b.WriteString(": " + text)
		}
		return b.String()
	}
	b.WriteString(": ")
	b.WriteString(strings.Join(r.Frames[:min(3, len(r.Frames))], " < "))
	if r.Place != "" && r.Place != r.Frames[0] {
		b.WriteString(" at " + r.Place)
	}
	return b.String()
}

// A pattern is a regular expression that is compiled when it is used first, because most runs see no crash.
type pattern = func() *regexp.Regexp

func lazily(expression string) pattern {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}

// A parser parses the report that begins at line i. It returns nil if no report begins there. Otherwise it returns the
// reports, usually one, and the index of the line at which to continue.
type parser struct {
	read  func(lines []string, i int) (found []Report, next int)
	hints []string // texts of which the first line of a report contains at least one
	ahead bool     // the second line of a report contains a hint, instead of the first
}

// parsers are the parsers in the order in which each line is tried. Their hints make it fast to search long outputs.
var parsers = []parser{
	{read: parseSanitizer, hints: []string{"Sanitizer: "}},
	{read: parseSummary, hints: []string{"SUMMARY: "}},
	{read: parseValgrind, hints: []string{"== "}},
	{read: parseGo, hints: []string{"panic", "fatal error: ", "goroutine ", "DATA RACE", "unexpected fault", "SIG"}},
	{read: parseUndefined, hints: []string{": runtime error: "}},
	{read: parsePython, hints: []string{"Traceback ", "Fatal Python error: "}},
	{read: parseJava, hints: []string{"\tat ", " at "}, ahead: true},
	{read: parseJavaCrash, hints: []string{"#  SIG"}},
	{read: parseNode, hints: []string{" at "}, ahead: true},
	{read: parseRuby, hints: []string{".rb:"}},
	{read: parsePHP, hints: []string{"Fatal error:"}},
	{read: parseRust, hints: []string{" panicked at "}},
	{read: parseMessage, hints: []string{"FATAL ERROR: ", "***", "(): ", "double free", "corrupted ", "break adjusted",
		"malloc.c:", "Fatal error: "}},
	{read: parseTerminate, hints: []string{"terminate called ", "terminating "}},
	{read: parseAssertion, hints: []string{"ssert"}},
	{read: parseBacktrace, hints: []string{"[0x", " in "}},
	{read: parsePerl, hints: []string{" line "}},
}

// hinted reports whether a text contains one of the strings in the parser's field hints. Only then
// can the parser find a report in it.
func (p *parser) hinted(text string) bool {
	return slices.ContainsFunc(p.hints, func(hint string) bool { return strings.Contains(text, hint) })
}

// ParseAll returns all reports in the output of a program, in order. LeakSanitizer and Valgrind report each allocation
// site of leaked memory separately. If a signal handler prints a stack after a message, the message and the stack are
// one report.
func ParseAll(output string) []Report {
	var use []parser
	for _, p := range parsers {
		if p.hinted(output) {
			use = append(use, p)
		}
	}
	if use == nil {
		return nil
	}
	lines := strings.Split(escapes().ReplaceAllString(strings.ReplaceAll(output, "\r\n", "\n"), ""), "\n")
	var all []Report
	for i := 0; i < len(lines); {
		next := i + 1
		for _, p := range use {
			at := i
			if p.ahead {
				at++
			}
			if lines[i] == "" || at == len(lines) || !p.hinted(lines[at]) {
				continue
			}
			if found, after := p.read(lines, i); found != nil {
				next = max(after, next)
				for k, r := range found {
					if k == 0 {
						r.Total = next - i
						r.Lines = slices.Clone(lines[i:min(next, i+maxLines, len(lines))])
					}
					all = add(all, r)
				}
				break
			}
		}
		i = next
	}
	return all
}

// add appends a report, or merges it with the previous report if both are about the same fault.
func add(all []Report, r Report) []Report {
	if len(all) == 0 {
		return append(all, r)
	}
	last := &all[len(all)-1]
	bare := r.Kind == "" || r.Signal != "" && r.Kind == kindOf(r.Signal) // the report contains only a signal and a stack
	switch {
	case bare && (r.Tool == "" || r.Tool == "Valgrind") &&
		(len(last.Frames) == 0 || len(last.Frames) == 1 && message(last.Tool)):
		// The previous report is a message, and r is the stack that a signal handler or Valgrind prints after it.
		if len(r.Frames) > 0 {
			last.Frames, last.Place = r.Frames, cmp.Or(last.Place, r.Place)
		}
		last.Signal = cmp.Or(last.Signal, r.Signal)
		last.Lines = append(last.Lines, r.Lines[:max(0, min(maxLines-len(last.Lines), len(r.Lines)))]...)
		last.Total += r.Total
	case bare && r.Tool == "Valgrind" && last.Tool == "Valgrind" &&
		(slices.Equal(r.Frames, last.Frames) || r.Kind == last.Kind):
		last.Signal = r.Signal // the previous report is the invalid access that caused the signal
	default:
		return append(all, r)
	}
	return all
}

// message reports whether the reports of a tool are messages without a stack. An assertion has one frame.
func message(tool string) bool { return tool == "glibc" || tool == "C++" || tool == "" }

var (
	escapes = lazily("\x1b\\[[0-9;]*m") // colors
	numbers = lazily(`0x[0-9a-fA-F]+|\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b|` +
		`\b[0-9a-f]{12,}\b|` +
		`\[[0-9a-f:]*:[0-9a-f:.]*\]|[0-9]+(?:\.[0-9]+)*(?:(?:ns|µs|us|ms|s|m|h)\b)?`)
	folders = lazily(`(?:\.{0,2}/)?(?:[\w.+-]+/)+([\w.+-]+)|/([\w.+-]+)`)
)

// Normalize replaces what differs between runs in a text by "#": numbers, durations, addresses of memory and of the
// network, and job IDs of hexadecimal digits. It removes directories, and uses at most 200 bytes.
func Normalize(s string) string {
	if len(s) > 200 {
		s = s[:200]
	}
	return numbers().ReplaceAllString(basenames(s), "#")
}

// basenames replaces paths in a text with their last element.
func basenames(s string) string {
	return folders().ReplaceAllString(s, "$1$2")
}
