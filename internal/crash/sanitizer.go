package crash

import (
	"slices"
	"strconv"
	"strings"
)

var (
	sanitizerLine = lazily(`(?:ERROR|WARNING): (Address|Leak|Memory|Thread|HWAddress)Sanitizer: (.*)$`)
	frameLine     = lazily(`^\s*#\d+ +(?:0x[0-9a-f]+ +)?(?:in +)?(.*)$`)
	buildID       = lazily(` +\(BuildId: \w+\)$`)
	frameModule   = lazily(`(?:^| )\(?([^\s()]+)\+(0x[0-9a-f]+)\)?$`)
	frameSource   = lazily(`(?:^| )([^\s()][^()]*?):(\d+)(?::\d+)?$`)
	leakLine      = lazily(`^(Direct|Indirect) leak of (\d+) byte\(s\) in (\d+) object\(s\) allocated from:`)
	access        = lazily(`^(READ|WRITE) of size \d+`)
	parenthesis   = lazily(` *\(.*$`)
	counters      = lazily(` +(?:at pc |\(pc |\(pid=).*$`)
	onAddress     = lazily(` (?:on|at|in) (?:unknown )?(?:address )?0x[0-9a-f]{9,}(?: in thread T\d+:?)?| in thread T\d+:?`)
)

// parseFrame parses a line of a sanitizer's stack, such as "#1 0x55b69a32a399 in two /src/t.c:10".
func parseFrame(line string) (frame, bool) {
	m := frameLine().FindStringSubmatch(line)
	if m == nil {
		return frame{}, false
	}
	var f frame
	rest := buildID().ReplaceAllString(strings.TrimRight(m[1], " "), "")
	if m := frameModule().FindStringSubmatchIndex(rest); m != nil {
		f.module, f.offset = base(rest[m[2]:m[3]]), rest[m[4]:m[5]]
		rest = strings.TrimRight(rest[:m[0]], " ")
	}
	rest = strings.TrimSpace(strings.TrimSuffix(rest, "<null>"))
	if m := frameSource().FindStringSubmatchIndex(rest); m != nil {
		f.file, f.line = rest[m[2]:m[3]], rest[m[4]:m[5]]
		if i := strings.LastIndexByte(f.file, ' '); i >= 0 { // the name of the function contains spaces
			f.file = f.file[i+1:]
		}
		rest = strings.TrimSpace(strings.TrimSuffix(rest[:m[5]], f.file+":"+f.line))
	}
	if f.function = strings.TrimSpace(strings.TrimSuffix(rest, "<null>")); f.function != "" {
		f.offset = "" // this offset is relative to the module
	}
	return f, true
}

// parseFrames parses the stack that begins in one of the 8 lines from line i on. A blank line ends the search.
func parseFrames(lines []string, i int) (stack []frame, next int) {
	for limit := i + 8; i < len(lines); i++ {
		f, ok := parseFrame(lines[i])
		switch {
		case ok:
			stack = append(stack, f)
		case len(stack) > 0 || i > limit || strings.TrimSpace(lines[i]) == "" || sanitizerLine().MatchString(lines[i]):
			return withoutStart(stack), i
		}
	}
	return withoutStart(stack), i
}

// parseSanitizer parses the report of a sanitizer, such as AddressSanitizer, that begins at line i. It returns the
// index of the line after the report, and no report if none begins there.
func parseSanitizer(lines []string, i int) ([]Report, int) {
	m := sanitizerLine().FindStringSubmatch(lines[i])
	if m == nil {
		return nil, 0
	}
	r := Report{Tool: m[1] + "Sanitizer"}
	if strings.HasPrefix(m[2], "detected memory leaks") {
		return parseLeaks(lines, i+1)
	}
	r.Kind = sanitizerKind(m[2])
	r.Signal = signalOf(r.Kind)
	r.Text = r.Tool + ": " + onAddress().ReplaceAllString(counters().ReplaceAllString(m[2], ""), "")
	if i+1 < len(lines) && access().MatchString(lines[i+1]) {
		r.Text += ": " + access().FindString(lines[i+1])
	}
	stack, next := parseFrames(lines, i+1)
	r.setStack(stack, internalC)
	if r.Kind == "data-race" {
		second, _ := parseFrames(lines, next+1)
		r.setRace(stack, second, internalC)
	}
	return []Report{r}, next
}

// setRace sets the frames of a data race: the innermost function of each access, sorted, because either access may be
// reported first.
func (r *Report) setRace(first, second []frame, internal func(frame) bool) {
	var other Report
	other.setStack(second, internal)
	r.Frames = append(slices.Clip(r.Frames[:min(1, len(r.Frames))]), other.Frames[:min(1, len(other.Frames))]...)
	slices.Sort(r.Frames)
	r.Place = ""
}

// sanitizerKinds maps kinds that sanitizers write in several words to normalized kinds.
var sanitizerKinds = []struct{ prefix, kind string }{
	{"SEGV", "segmentation fault"}, {"BUS", "bus error"}, {"FPE", "floating point exception"},
	{"ILL", "illegal instruction"}, {"ABRT", "abort"}, {"TRAP", "trap"},
	{"attempting double-free", "double-free"}, {"attempting free on", "bad-free"},
	{"attempting to call", "bad-malloc-usable-size"}, {"requested allocation size", "allocation-size-too-big"},
	{"allocator is out of memory", "out-of-memory"}, {"out of memory", "out-of-memory"}, {"data race", "data-race"},
	{"CHECK failed", "check failed"},
}

// sanitizerKind returns the kind of a fault. text is the text after the name of the sanitizer.
func sanitizerKind(text string) string {
	for _, k := range sanitizerKinds {
		if strings.HasPrefix(text, k.prefix) {
			return k.kind
		}
	}
	text, _, _ = strings.Cut(parenthesis().ReplaceAllString(text, ""), " on ")
	text, _, _ = strings.Cut(text, ": ")
	return strings.ReplaceAll(strings.TrimSuffix(text, ":"), " ", "-")
}

// parseLeaks parses a report of LeakSanitizer after its first line. Each direct leak is one report. Leaked memory may
// refer to further memory, which is an indirect leak; indirect leaks are reports only if there is no direct leak.
func parseLeaks(lines []string, i int) (found []Report, next int) {
	var indirect []Report
	for ; i < len(lines) && !strings.HasPrefix(lines[i], "SUMMARY:"); i++ {
		m := leakLine().FindStringSubmatch(lines[i])
		if m == nil {
			if sanitizerLine().MatchString(lines[i]) {
				break
			}
			continue
		}
		r := Report{Kind: "leak", Tool: "LeakSanitizer", Text: strings.TrimSuffix(m[0], " allocated from:")}
		r.Leaked, _ = strconv.ParseInt(m[2], 10, 64)
		var stack []frame
		stack, next = parseFrames(lines, i+1)
		r.setStack(stack, internalC)
		i = max(i, next-1)
		if m[1] == "Direct" {
			found = append(found, r)
		} else {
			indirect = append(indirect, r)
		}
	}
	if found == nil {
		found = indirect
	}
	if found == nil { // the output ends before the first leak
		found = []Report{{Kind: "leak", Tool: "LeakSanitizer", Text: "LeakSanitizer: detected memory leaks"}}
	}
	if i < len(lines) && strings.HasPrefix(lines[i], "SUMMARY:") {
		i++
	}
	return found, i
}

var summaryLine = lazily(`SUMMARY: (\w+Sanitizer): (.*)$`)

// parseSummary parses the last line of a report whose beginning is missing in the output.
func parseSummary(lines []string, i int) ([]Report, int) {
	m := summaryLine().FindStringSubmatch(lines[i])
	if m == nil || precedes(lines[:i], m[1]) {
		return nil, 0
	}
	if strings.Contains(m[2], "leaked in") {
		return []Report{{Kind: "leak", Tool: "LeakSanitizer", Text: m[0]}}, i + 1
	}
	kind, rest, _ := strings.Cut(m[2], " ")
	if strings.HasPrefix(m[2], "data race ") {
		kind, rest = "data-race", strings.TrimPrefix(m[2], "data race ")
	}
	r := Report{Kind: sanitizerKind(kind), Tool: m[1], Text: basenames(m[0])}
	r.Signal = signalOf(r.Kind)
	if where, function, ok := strings.Cut(rest, " in "); ok {
		if f, ok := parseFrame("#0 " + function + " " + where); ok {
			if r.Kind == "stack-overflow" { // the innermost function of a stack overflow differs between runs
				f.line = ""
			}
			r.setStack([]frame{f}, internalC)
		}
	}
	return []Report{r}, i + 1
}

// precedes reports whether the lines contain the report of a tool to which a following summary belongs.
func precedes(lines []string, tool string) bool {
	for _, l := range slices.Backward(lines) {
		if strings.Contains(l, "SUMMARY: ") {
			return false
		}
		if strings.Contains(l, tool+": ") || strings.Contains(l, "LeakSanitizer: detected") ||
			strings.Contains(l, ": runtime error: ") {
			return true
		}
	}
	return false
}
