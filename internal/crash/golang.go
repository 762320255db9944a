package crash

import (
	"slices"
	"strings"
)

var (
	goPanic     = lazily(`(?:^|\s)(panic|fatal error): (.*)$|^(http: panic serving \S+: .*|unexpected fault address .*|SIG[A-Z]+: .*)$`)
	goRoutine   = lazily(`^goroutine \d+ .*\[(.*)\]:$`)
	goSource    = lazily(`^\s+(\S.*\.(?:go|s)):(\d+)(?: \+0x[0-9a-f]+.*)?$`)
	goRecovered = lazily(` \[recovered(?:, repanicked)?\]$`)
	goSignal    = lazily(`^\[signal (SIG[A-Z]+)`)
)

// parseGo parses a panic, a fatal error, a stack or a data race report of a Go program.
func parseGo(lines []string, i int) ([]Report, int) {
	if strings.HasPrefix(lines[i], "WARNING: DATA RACE") {
		return parseGoRace(lines, i)
	}
	r := Report{Tool: "Go"}
	if m := goPanic().FindStringSubmatch(lines[i]); m != nil {
		r.Kind, r.Text = m[1], m[1]+": "+goRecovered().ReplaceAllString(m[2], "")
		if m[1] == "" {
			r.Kind, r.Text = "panic", m[3]
			r.Signal = signalOf(m[3])
		}
	} else if !goRoutine().MatchString(lines[i]) {
		return nil, 0
	}
	start := i
	for ; i < len(lines) && i < start+40 && !goRoutine().MatchString(lines[i]); i++ {
		if m := goSignal().FindStringSubmatch(lines[i]); m != nil {
			r.Signal = signalOf(m[1])
		}
	}
	if i == len(lines) || !goRoutine().MatchString(lines[i]) {
		if !strings.HasPrefix(lines[start], r.Kind) || r.Kind == "" {
			return nil, 0
		}
		return []Report{r}, start + 1 // the output contains no stack
	}
	switch {
	case r.Kind == "fatal error" && strings.Contains(r.Text, "stack overflow"):
		r.Kind = "stack-overflow"
	case r.Kind == "fatal error" && strings.Contains(r.Text, "out of memory"):
		r.Kind = "out-of-memory"
	}
	stack, next := goStack(lines, i+1)
	// Omit the frames above the panic, which are those of the deferred functions.
	if raised := lastPanic(stack); raised > 0 {
		stack = stack[raised:]
	}
	r.setStack(stack, goInternal)
	for next < len(lines) && (strings.HasPrefix(lines[next], "goroutine ") ||
		strings.HasPrefix(lines[next], "created by ") || lines[next] == "" || lines[next] == "...") {
		_, next = goStack(lines, next+1) // skip the stacks of other goroutines
	}
	if r.Text == "" {
		r.Text = lines[i]
	}
	return []Report{r}, next
}

// goStack parses the pairs of lines of a stack: a function with its arguments, and its position.
func goStack(lines []string, i int) (stack []frame, next int) {
	for ; i+1 < len(lines); i += 2 {
		if strings.HasPrefix(lines[i], "...") { // "...additional frames elided..."
			i--
			continue
		}
		m := goSource().FindStringSubmatch(lines[i+1])
		if m == nil {
			break
		}
		function := strings.TrimSpace(lines[i])
		if strings.HasPrefix(function, "created by ") {
			i += 2
			break
		}
		if k := strings.LastIndexByte(function, '('); k > 0 {
			function = function[:k]
		}
		stack = append(stack, frame{function: function, file: m[1], line: m[2]})
	}
	return stack, i
}

// lastPanic returns the index of the frame that called panic first.
func lastPanic(stack []frame) int {
	last := 0
	for i, f := range stack {
		if f.function == "panic" || f.function == "runtime.gopanic" {
			last = i + 1
		}
	}
	if last == len(stack) {
		return 0
	}
	return last
}

func goInternal(f frame) bool {
	return f.function == "panic" || slices.ContainsFunc([]string{"runtime.", "internal/runtime/", "runtime/debug.", "internal/abi."}, func(p string) bool {
		return strings.HasPrefix(f.function, p)
	})
}

// parseGoRace parses a report of Go's race detector.
func parseGoRace(lines []string, i int) ([]Report, int) {
	r := Report{Kind: "data-race", Tool: "Go", Text: lines[i]}
	if i+2 >= len(lines) {
		return []Report{r}, i + 1
	}
	first, next := goStack(lines, i+2)
	var second []frame
	if next+1 < len(lines) && strings.HasPrefix(lines[next+1], "Previous ") {
		second, next = goStack(lines, next+2)
	}
	r.setStack(first, goInternal)
	r.setRace(first, second, goInternal)
	return []Report{r}, next
}
