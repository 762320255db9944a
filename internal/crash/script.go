package crash

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

var (
	pythonFrame = lazily(`^\s+File "(.+)", line (\d+)(?:,)? in (.+)$`)
	pythonLast  = lazily(`^[A-Za-z_][\w.]*(?:: .*)?$`)
	pythonMore  = lazily(`^\s+\[Previous line repeated \d+ more times?\]$`)
	pythonLib   = lazily(`/lib/python[\d.]+/|^<frozen `)
)

// parsePython parses a traceback of Python, or a report of its module faulthandler about a signal.
func parsePython(lines []string, i int) ([]Report, int) {
	text, fatal := strings.CutPrefix(lines[i], "Fatal Python error: ")
	if !fatal && !strings.HasSuffix(lines[i], "Traceback (most recent call last):") {
		return nil, 0
	}
	r := Report{Kind: "exception", Tool: "Python"}
	if fatal {
		r.Text, r.Signal, r.Kind = lines[i], signalOf(text), cmp.Or(kindOf(signalOf(text)), "fatal error")
	}
	var stack []frame
	for i++; i < len(lines); i++ {
		if m := pythonFrame().FindStringSubmatch(lines[i]); m != nil {
			stack = append(stack, frame{function: m[3], file: m[1], line: m[2]})
		} else if pythonMore().MatchString(lines[i]) && len(stack) > 0 {
			last := stack[len(stack)-1]
			stack = append(stack, last, last)
		} else if fatal && len(stack) > 0 || !fatal && pythonLast().MatchString(lines[i]) {
			break
		}
	}
	if !fatal {
		slices.Reverse(stack)
		if i < len(lines) {
			r.Text = basenames(lines[i])
			i++
		}
		r.Kind = exceptionKind(r.Text)
	}
	r.setStack(stack, func(f frame) bool {
		return pythonLib().MatchString(f.file) &&
			!strings.Contains(f.file, "-packages/")
	})
	if i+2 < len(lines) && strings.HasPrefix(lines[i+1], "The above exception was the direct cause") {
		for i += 2; i < len(lines) && !strings.HasPrefix(lines[i], "Traceback "); i++ {
		}
		if i < len(lines) {
			_, next := parsePython(lines, i) // skip the traceback of the second exception; the report is about its cause
			i = max(i, next)
		}
	}
	return []Report{r}, i
}

// exceptionKind returns Report.Kind for an exception. text begins with the type of the exception.
func exceptionKind(text string) string {
	kind, _, _ := strings.Cut(text, ":")
	switch kind = kind[strings.LastIndexByte(kind, '.')+1:]; {
	case kind == "RecursionError", kind == "StackOverflowError",
		strings.Contains(text, "Maximum call stack size exceeded"):
		return "stack-overflow"
	case kind == "MemoryError", kind == "OutOfMemoryError":
		return "out-of-memory"
	case strings.HasPrefix(kind, "Assertion"):
		return "assertion"
	}
	return "exception"
}

var (
	javaTitle  = lazily(`^(?:Exception in thread "[^"]*" |.*\s)?((?:[a-z_]\w*\.)+[A-Z][\w$]*(?:Exception|Error|Throwable)?(?:: .*)?)$`)
	javaFrame  = lazily(`^\s+at (?:[\w.@-]+/+)?([\w.$<>]+)\(([^()]*)\)$`)
	javaLib    = lazily(`^(?:java|javax|jdk|sun|com\.sun)\.`)
	javaSource = lazily(`^(.+):(\d+)$`)
	javaCrash  = lazily(`^#\s+(SIG[A-Z]+) \(0x[0-9a-f]+\) at pc=`)
	javaNative = lazily(`^# [CVJj]\s+(?:\d+ )?(?:\[([^\]+]+)\+(0x[0-9a-f]+)\]|(.*))`)
)

// parseJava parses the exception of a Java program that begins at line i. The report is about the innermost cause. Line
// i+1 exists, because the parser has the option ahead.
func parseJava(lines []string, i int) ([]Report, int) {
	m := javaTitle().FindStringSubmatch(lines[i])
	if m == nil || !javaFrame().MatchString(lines[i+1]) {
		return nil, 0
	}
	var stack []frame
	text := m[1]
	for i++; i < len(lines); i++ {
		if m := javaFrame().FindStringSubmatch(lines[i]); m != nil {
			f := frame{function: m[1]}
			if s := javaSource().FindStringSubmatch(m[2]); s != nil {
				f.file, f.line = s[1], s[2]
			}
			stack = append(stack, f)
		} else if cause, ok := strings.CutPrefix(lines[i], "Caused by: "); ok {
			text, stack = cause, nil // the cause replaces the exception that wraps it
		} else if !strings.HasPrefix(lines[i], "\t... ") && !strings.HasPrefix(lines[i], "\tSuppressed: ") {
			break
		}
	}
	r := Report{Kind: exceptionKind(text), Tool: "Java", Text: text}
	r.setStack(stack, func(f frame) bool { return javaLib().MatchString(f.function) })
	return []Report{r}, i
}

// parseJavaCrash parses the message of the Java virtual machine about a signal.
func parseJavaCrash(lines []string, i int) ([]Report, int) {
	m := javaCrash().FindStringSubmatch(lines[i])
	if m == nil {
		return nil, 0
	}
	signal := signalOf(m[1])
	r := Report{Kind: kindOf(signal), Tool: "Java", Text: "fatal error in the Java virtual machine: " + signal,
		Signal: signal}
	for next := i + 1; next < len(lines) && strings.HasPrefix(lines[next], "#"); next++ {
		if m := javaNative().FindStringSubmatch(lines[next]); m != nil {
			r.setStack([]frame{{function: m[3], module: path.Base(m[1]), offset: m[2]}}, func(frame) bool { return false })
			return []Report{r}, next + 1
		}
	}
	return []Report{r}, i + 1
}

var nodeFrame = lazily(`^\s+at (?:(?:async )?(.+?) \((.+?)(?::(\d+))?(?::\d+)?\)|(?:async )?(\S+?):(\d+):\d+)$`)

// parseNode parses an exception of a Node.js program: the text and then the stack.
func parseNode(lines []string, i int) ([]Report, int) {
	if strings.HasPrefix(lines[i], " ") || !nodeFrame().MatchString(lines[i+1]) {
		return nil, 0
	}
	r := Report{Kind: exceptionKind(lines[i]), Tool: "Node.js", Text: basenames(strings.TrimPrefix(lines[i], "Uncaught "))}
	var stack []frame
	for i++; i < len(lines); i++ {
		m := nodeFrame().FindStringSubmatch(lines[i])
		if m == nil {
			break
		}
		stack = append(stack, frame{function: cmp.Or(m[1], "<anonymous>"), file: m[2] + m[4], line: m[3] + m[5]})
	}
	r.setStack(stack, func(f frame) bool { return strings.HasPrefix(f.file, "node:") || f.file == "<anonymous>" })
	if k := slices.IndexFunc(r.Frames, func(f string) bool { return strings.HasPrefix(f, "Module._") }); k > 0 {
		r.Frames = r.Frames[:k]
	}
	return []Report{r}, i
}

var rustPanic = lazily(`^thread '.*' (?:\(\d+\) )?panicked at (?:'(.*)', )?([^\s,']+:\d+:\d+):?$`)

// parseRust parses the message of a Rust panic. It ignores the stack, because the message contains the position.
func parseRust(lines []string, i int) ([]Report, int) {
	m := rustPanic().FindStringSubmatch(lines[i])
	if m == nil {
		return nil, 0
	}
	r := Report{Kind: "panic", Tool: "Rust", Text: m[1], Place: path.Base(m[2])}
	if r.Text == "" && i+1 < len(lines) {
		r.Text = lines[i+1]
		i++
	}
	r.Frames = []string{r.Place}
	return []Report{r}, i + 1
}

var (
	perlLine    = lazily(`^(.+) at (\S+) line (\d+)(?:, <\S+> (?:line|chunk) \d+)?\.?$`)
	perlCalled  = lazily(`^\s+(\S+)\(.*\) called at (\S+) line (\d+)$`)
	perlEval    = lazily(`^\s+(?:eval \{\.\.\.\}|require \S+) called at \S+ line \d+$`)
	perlWarning = lazily(`^(?:Use of uninitialized value|Argument ".*" isn't numeric|Deep recursion on|Odd number of elements|Wide character in|substr outside of string|Name ".*" used only once|Subroutine .* redefined|.* masks earlier declaration)`)
)

// parsePerl parses a message with a position in a Perl program, and the callers if Carp prints them. It ignores
// warnings of Perl itself. It must be the last parser, because such a message looks like an English sentence.
func parsePerl(lines []string, i int) ([]Report, int) {
	m := perlLine().FindStringSubmatch(lines[i])
	if m == nil || perlWarning().MatchString(m[1]) || strings.HasPrefix(lines[i], " ") || strings.HasPrefix(lines[i], "\t") {
		return nil, 0
	}
	r := Report{Kind: "exception", Tool: "Perl", Text: m[1], Place: path.Base(m[2]) + ":" + m[3]}
	next := i + 1
	for ; next < len(lines); next++ {
		if m := perlCalled().FindStringSubmatch(lines[next]); m != nil && len(r.Frames) < maxFrames {
			r.Frames = append(r.Frames, m[1])
		} else if !perlEval().MatchString(lines[next]) {
			break
		}
	}
	if r.Frames == nil {
		r.Frames = []string{r.Place}
	}
	return []Report{r}, next
}

var (
	rubyTitle = lazily("^(\\S+\\.rb):(\\d+):in (?:[`'](?:.*#)?(.+?)'): (.*\\(([A-Z][\\w:]*)\\))$")
	rubyFrame = lazily("^\\s+from (\\S+):(\\d+):in [`'](?:.*#)?(.+?)'$")
)

// parseRuby parses an exception of a Ruby program.
func parseRuby(lines []string, i int) ([]Report, int) {
	m := rubyTitle().FindStringSubmatch(lines[i])
	if m == nil {
		return nil, 0
	}
	r := Report{Kind: "exception", Tool: "Ruby", Text: m[4]}
	switch m[5] {
	case "SystemStackError":
		r.Kind = "stack-overflow"
	case "NoMemoryError":
		r.Kind = "out-of-memory"
	}
	stack := []frame{{function: m[3], file: m[1], line: m[2]}}
	for i++; i < len(lines); i++ {
		m := rubyFrame().FindStringSubmatch(lines[i])
		if m == nil {
			break
		}
		stack = append(stack, frame{function: m[3], file: m[1], line: m[2]})
	}
	r.setStack(stack, func(f frame) bool {
		return strings.Contains(f.file, "/lib/ruby/") && !strings.Contains(f.file, "/gems/")
	})
	return []Report{r}, i
}

var phpStack = lazily(`^(?:#|Stack trace:|  thrown in )`)

var phpError = lazily(`(?:PHP )?Fatal error:\s+(?:Uncaught )?(.+?) in ` +
	`(\S+?)(?:\(\d+\) : .*)?(?::(\d+)| on line (\d+))$`)

// parsePHP parses a fatal error of a PHP program. It ignores the stack, because the message contains the position.
func parsePHP(lines []string, i int) ([]Report, int) {
	m := phpError().FindStringSubmatch(lines[i])
	if m == nil {
		return nil, 0
	}
	r := Report{Kind: "exception", Tool: "PHP", Text: m[1], Place: path.Base(m[2]) + ":" + m[3] + m[4]}
	if strings.HasPrefix(r.Text, "Allowed memory size") {
		r.Kind = "out-of-memory"
	}
	r.Frames = []string{r.Place}
	next := i + 1
	for next < len(lines) && phpStack().MatchString(lines[next]) {
		next++
	}
	return []Report{r}, next
}
