// Package crash reads what a server process prints when it crashes or finds a fault in itself: reports of sanitizers and
// Valgrind, messages of the C library, backtraces, panics, and uncaught exceptions of several languages. A [Report] has
// the same [Report.Bucket] in each run of the same program.
package crash

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// Report is what the output of a server says about why it ended or what is wrong with it.
type Report struct {
	// Kind is the normalized kind: "heap-buffer-overflow", "heap-use-after-free", "double-free", "bad-free",
	// "heap-corruption", "stack-buffer-overflow", "stack-overflow", "out-of-memory", "leak", "data-race", "assertion",
	// "panic", "fatal error", "exception", a signal ("segmentation fault", "abort", "bus error"), or, from [Ended] alone,
	// "exit status 1". It is empty if only a stack is known.
	Kind string

	// Tool is what wrote the report: "AddressSanitizer", "LeakSanitizer", "MemorySanitizer", "ThreadSanitizer",
	// "UndefinedBehaviorSanitizer", "Valgrind", "glibc", "C++", "Go", "Java", "Node.js", "Perl", "Python", "Rust", or "".
	Tool string

	Text   string // the line that reports the fault, without process ID, program counter and paths of directories
	Signal string // the signal that ended the process, as os/exec writes it ("segmentation fault", "aborted"), or ""

	// Frames are functions, or "module+offset" where the function is not known, innermost first: at most 16. Frames of
	// the language's runtime, the allocator, the sanitizer and signal handlers above the first frame of the program are
	// left out. A stack overflow has the functions of the recursion, sorted; a data race has the function of each access,
	// sorted. A report without a stack has the position in the source as its only frame, if it states one.
	Frames []string

	Place  string // file, without its directory, and line of the innermost frame, as in "server.c:120"; "" if not known
	Leaked int64  // bytes, of a leak

	cause string // the text for the bucket, if Text has more than the report
}

const maxFrames = 16

// Bucket returns what crashes with one cause have in common: tool, kind, the first three frames and the place of the first.
// It is the same in each run, and differs for two places of a program. Without frames, it has the text without numbers.
func (r Report) Bucket() string {
	var b strings.Builder
	b.WriteString(strings.TrimSpace(r.Tool + " " + cmp.Or(r.Kind, "stack")))
	if len(r.Frames) == 0 {
		if text := normalize(cmp.Or(r.cause, r.Text)); text != "" && r.Tool != "" {
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

// Parse returns the first report in the output of a program. It returns false if there is none.
func Parse(output string) (Report, bool) {
	all := ParseAll(output)
	if len(all) == 0 {
		return Report{}, false
	}
	return all[0], true
}

// A parser reads the report that begins at line i. It returns the reports, usually one, and the line where the search for
// more continues, or no reports.
type parser struct {
	read  func(lines []string, i int) (found []Report, next int)
	hints []string // the first line of a report contains one of them
	ahead bool     // the hints are of the line after the first
}

// parsers are in the order in which they are tried for each line. The hints make the search in long logs fast.
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
	{read: parseNodeMemory, hints: []string{"FATAL ERROR: "}},
	{read: parseRust, hints: []string{" panicked at "}},
	{read: parseLibc, hints: []string{"***", "(): ", "double free", "corrupted ", "break adjusted", "malloc.c:", "Fatal error: "}},
	{read: parseTerminate, hints: []string{"terminate called ", "terminating "}},
	{read: parseAssertion, hints: []string{"ssert"}},
	{read: parseBacktrace, hints: []string{"[0x", " in "}},
	{read: parsePerl, hints: []string{" line "}},
}

// hinted reports whether a text contains a hint of the parser.
func (p *parser) hinted(text string) bool {
	return slices.ContainsFunc(p.hints, func(hint string) bool { return strings.Contains(text, hint) })
}

// ParseAll returns every report in the output of a program, in its order. LeakSanitizer and Valgrind report each allocation
// site of leaked memory. A stack that a signal handler prints after a message belongs to the report of the message.
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
	lines := strings.Split(escapes.ReplaceAllString(strings.ReplaceAll(output, "\r\n", "\n"), ""), "\n")
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
				for _, r := range found {
					all = add(all, r)
				}
				next = max(after, next)
				break
			}
		}
		i = next
	}
	return all
}

// add appends a report, unless it is about the same fault as the previous one.
func add(all []Report, r Report) []Report {
	if len(all) == 0 {
		return append(all, r)
	}
	last := &all[len(all)-1]
	bare := r.Kind == "" || r.Signal != "" && r.Kind == kindOf(r.Signal) // only how the process ended, and a stack
	switch {
	case bare && (r.Tool == "" || r.Tool == "Valgrind") && (len(last.Frames) == 0 || len(last.Frames) == 1 && message(last.Tool)):
		// a message, then the stack that a signal handler or Valgrind prints
		if len(r.Frames) > 0 {
			last.Frames, last.Place = r.Frames, cmp.Or(last.Place, r.Place)
		}
		last.Signal = cmp.Or(last.Signal, r.Signal)
	case bare && r.Tool == "Valgrind" && last.Tool == "Valgrind" && (slices.Equal(r.Frames, last.Frames) || r.Kind == last.Kind):
		last.Signal = r.Signal // an invalid access, then its signal
	default:
		return append(all, r)
	}
	return all
}

// message reports whether the reports of a tool are messages without a stack; an assertion names one function.
func message(tool string) bool { return tool == "glibc" || tool == "C++" || tool == "" }

var (
	escapes = regexp.MustCompile("\x1b\\[[0-9;]*m") // colors
	numbers = regexp.MustCompile(`0x[0-9a-fA-F]+|[0-9]+`)
	folders = regexp.MustCompile(`(?:\.{0,2}/)?(?:[\w.+-]+/)+([\w.+-]+)|/([\w.+-]+)`)
)

// normalize removes from a text what differs between runs: numbers, addresses and directories.
func normalize(s string) string {
	if len(s) > 200 {
		s = s[:200]
	}
	return numbers.ReplaceAllString(basenames(s), "#")
}

// basenames replaces paths in a text with their last element.
func basenames(s string) string {
	return folders.ReplaceAllString(s, "$1$2")
}
