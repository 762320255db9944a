package crash

import "strings"

// firstLine matches the first line of crash reports of language runtimes and sanitizers, also of those that no parser
// reads.
var firstLine = lazily(`(?m)^(panic: |fatal error: |runtime: |SIG[A-Z]+: |unexpected fault address|thread .* panicked at|(PHP )?Fatal error: |(Exception in thread .*|[A-Z]\w*(Error|Exception)\b.*)\n\s+at |.*:\d+:in .*\([A-Z]\w*\)$|Traceback \(most recent call last\)|terminate called|\*\*\* .*(detected|terminated)|Uncaught |free\(\): |malloc\(\): |double free|malloc_consolidate\(\)|corrupted |.*==\d+==\s*ERROR: |.*ERROR: \w+Sanitizer|.*WARNING: \w+Sanitizer|.*WARNING: DATA RACE|.*runtime error: |.*[Aa]ssert(ion)?\b.*[Ff]ail|.*[Aa]bort(ed|ing)?\b|.*(?i:stack ?trace|backtrace|bug report start|segmentation fault))`)

// Begin returns the offset of the last crash report in the output of a program, or -1. A report may contain several
// lines that look like a first line, so a match within size bytes of the beginning of a report belongs to that report.
func Begin(output []byte, size int) int {
	at := -1
	for _, m := range firstLine().FindAllIndex(output, -1) {
		if at < 0 || m[0]-at > size {
			at = m[0]
		}
	}
	return at
}

var lastLine = lazily(`(?m)^SUMMARY: .*$`)

// Summary returns the line with which a sanitizer summarizes the fault, or "".
func Summary(output string) string { return lastLine().FindString(output) }

var beginning = lazily(`(?:ERROR|WARNING): \w+Sanitizer: `)

// Unfinished reports whether an output ends within the report of a sanitizer, which ends with a summary.
func Unfinished(output string) bool {
	if !strings.Contains(output, "Sanitizer: ") {
		return false
	}
	all := beginning().FindAllStringIndex(output, -1)
	return all != nil && Summary(output[all[len(all)-1][1]:]) == ""
}
