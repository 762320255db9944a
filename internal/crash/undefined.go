package crash

import (
	"regexp"
	"strings"
)

var undefinedLine = regexp.MustCompile(`(?:^|\s)(\S+:\d+(?::\d+)?): runtime error: (.*)$`)

// undefinedKinds maps the messages of UndefinedBehaviorSanitizer to kinds.
var undefinedKinds = []struct {
	words *regexp.Regexp
	kind  string
}{
	{regexp.MustCompile(`^signed integer overflow|cannot be represented in type .*(?:negation|overflow)|^negation of`),
		"signed-integer-overflow"},
	{regexp.MustCompile(`^unsigned integer overflow`), "unsigned-integer-overflow"},
	{regexp.MustCompile(`null pointer`), "null-pointer"},
	{regexp.MustCompile(`misaligned address`), "misaligned-access"},
	{regexp.MustCompile(`^index .* out of bounds`), "index-out-of-bounds"},
	{regexp.MustCompile(`insufficient space`), "object-size"},
	{regexp.MustCompile(`^(?:left|right) shift|^shift exponent`), "shift"},
	{regexp.MustCompile(`^division by zero`), "division-by-zero"},
	{regexp.MustCompile(`pointer (?:index|arithmetic).*overflow|^(?:addition|subtraction) of unsigned offset|^applying .*offset`), "pointer-overflow"},
	{regexp.MustCompile(`is not a valid value for type`), "invalid-value"},
	{regexp.MustCompile(`is outside the range of representable values`), "float-cast-overflow"},
	{regexp.MustCompile(`unreachable program point`), "unreachable"},
	{regexp.MustCompile(`variable length array bound`), "array-bound"},
	{regexp.MustCompile(`vptr|does not point to an object`), "vptr"},
}

// parseUndefined parses a message of UndefinedBehaviorSanitizer, and the stack after it if print_stacktrace is set.
func parseUndefined(lines []string, i int) ([]Report, int) {
	m := undefinedLine.FindStringSubmatch(lines[i])
	if m == nil {
		return nil, 0
	}
	r := Report{Kind: "undefined-behavior", Tool: "UndefinedBehaviorSanitizer", Place: base(m[1])}
	r.Text = r.Place + ": runtime error: " + onAddress.ReplaceAllString(m[2], "")
	for _, k := range undefinedKinds {
		if k.words.MatchString(m[2]) {
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
		memory.MatchString(line)
}

var memory = regexp.MustCompile(`^ (?:[0-9a-f]{2} | )+[0-9a-f ]*$|^<memory cannot be printed>$`)
