package crash

import (
	"strings"
)

var undefinedLine = lazily(`(?:^|\s)(\S+:\d+(?::\d+)?): runtime error: (.*)$`)

// undefinedKinds maps the messages of UndefinedBehaviorSanitizer to kinds.
var undefinedKinds = []struct {
	words pattern
	kind  string
}{
	{lazily(`^signed integer overflow|cannot be represented in type .*(?:negation|overflow)|^negation of`),
		"signed-integer-overflow"},
	{lazily(`^unsigned integer overflow`), "unsigned-integer-overflow"},
	{lazily(`null pointer`), "null-pointer"},
	{lazily(`misaligned address`), "misaligned-access"},
	{lazily(`^index .* out of bounds`), "index-out-of-bounds"},
	{lazily(`insufficient space`), "object-size"},
	{lazily(`^(?:left|right) shift|^shift exponent`), "shift"},
	{lazily(`^division by zero`), "division-by-zero"},
	{lazily(`pointer (?:index|arithmetic).*overflow|^(?:addition|subtraction) of unsigned offset|^applying .*offset`), "pointer-overflow"},
	{lazily(`is not a valid value for type`), "invalid-value"},
	{lazily(`is outside the range of representable values`), "float-cast-overflow"},
	{lazily(`unreachable program point`), "unreachable"},
	{lazily(`variable length array bound`), "array-bound"},
	{lazily(`vptr|does not point to an object`), "vptr"},
}

// parseUndefined parses a message of UndefinedBehaviorSanitizer, and the stack after it if print_stacktrace is set.
func parseUndefined(lines []string, i int) ([]Report, int) {
	m := undefinedLine().FindStringSubmatch(lines[i])
	if m == nil {
		return nil, 0
	}
	r := Report{Kind: "undefined-behavior", Tool: "UndefinedBehaviorSanitizer", Place: base(m[1])}
	r.Text = r.Place + ": runtime error: " + onAddress().ReplaceAllString(m[2], "")
	for _, k := range undefinedKinds {
		if k.words().MatchString(m[2]) {
			r.Kind = k.kind
			break
		}
	}
	r.Frames = []string{r.Place}
	next := i + 1
	for next < len(lines) && next < i+4 && undefinedNote(lines[next]) {
		next++
	}
	if next < len(lines) && strings.HasPrefix(strings.TrimSpace(lines[next]), "#0 ") {
		var stack []frame
		stack, next = parseFrames(lines, next)
		r.setStack(stack, internalC)
	}
	return []Report{r}, next
}

// undefinedNote reports whether a line shows the memory to which a message refers.
func undefinedNote(line string) bool {
	return strings.Contains(line, "note: pointer points here") || strings.TrimSpace(line) == "^" ||
		memory().MatchString(line)
}

var memory = lazily(`^ (?:[0-9a-f]{2} | )+[0-9a-f ]*$|^<memory cannot be printed>$`)
