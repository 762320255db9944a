package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"jobwire/internal/prose"
)

// Maximum numbers of lines of a transcript and of a server's output in the text report. The files contain all lines.
const (
	maxLines  = 18
	maxOutput = 5
)

// maxLine is the maximum length of a line in bytes; longer lines are shortened.
const maxLine = 200

// WriteText writes the findings and the summary as text for a terminal.
func WriteText(w io.Writer, r *Report) error {
	var b strings.Builder
	for i, f := range r.Findings {
		paragraph(&b, fmt.Sprintf("%d. ", i+1), f.Headline())
		paragraph(&b, "   ", f.Impact)
		paragraph(&b, "   Observed: ", shortened(oneLine(f.Text)))
		paragraph(&b, "   Rule ", f.Cites())
		paragraph(&b, "   Stack: ", f.Frames())
		paragraph(&b, "   ", f.seen())
		fmt.Fprintf(&b, "   To repeat it:\n     %s\n   %s:\n", f.Command, f.shows())
		lines := strings.Split(strings.TrimSuffix(f.Transcript, "\n"), "\n")
		if more := len(lines) - maxLines; more > 0 { // the end shows the fault
			between := fmt.Sprintf("... (%s left out)", counted(more, "line", "lines"))
			lines = slices.Concat(lines[:maxLines/3], []string{between}, lines[len(lines)-maxLines*2/3:])
		}
		for _, line := range lines {
			fmt.Fprintf(&b, "     %s\n", shortened(line))
		}
		if len(f.Symptoms) > 0 {
			b.WriteString("   Other symptoms, which probably have the same cause:\n")
		}
		for _, o := range f.Symptoms {
			fmt.Fprintf(&b, "     %s\n       %s\n", shortened(o.symptom()), o.File)
		}
		if len(f.Stack) == 0 && f.Output != "" {
			b.WriteString("   Last output of the server:\n")
			for _, line := range f.lastOutput(maxOutput) {
				fmt.Fprintf(&b, "     %s\n", shortened(line))
			}
		}
		b.WriteByte('\n')
	}
	s := &r.Summary
	until := ""
	if s.Interrupted {
		until = " until the interrupt"
	}
	fmt.Fprintf(&b, "%s in %v%s: %d executions, %.0f/s\n", s.Verdict(), s.Duration(), until, s.Executions, s.Rate())
	for i, f := range r.Findings {
		fmt.Fprintf(&b, "  %d. %-8s  %s\n      %s\n      %s\n", i+1, f.Level, f.what(), f.brief(), f.File)
	}
	paragraph(&b, "Candidates: ", fmt.Sprintf("%s, %d examined. Of these, %d did not appear again, and the reference "+
		"server fails in the same way in %d; the others are findings or duplicates.",
		counted(s.Candidates, "different failure", "different failures"), s.Examined, s.Failed, s.Disputed))
	paragraph(&b, "", s.Waiting())
	fmt.Fprintf(&b, "Executions: %d, of which %d with pauses; %d repetitions in search of memory leaks\n", s.Executions,
		s.Timed,
		s.Repeats)
	fmt.Fprintf(&b, "Corpus: %s, %s; %s\n", counted(s.Corpus, "input", "inputs"),
		counted(s.Features, "feature", "features"), counted(s.Starts, "server start", "server starts"))
	fmt.Fprintf(&b, "Random seed %d; jobwire %s\n", s.Seed, r.Jobwire)
	_, err := io.WriteString(w, b.String())
	return err
}

// paragraph writes text in lines of at most prose.Width characters after a heading on the first line. It writes nothing
// if text is empty.
func paragraph(b *strings.Builder, heading, text string) {
	if text != "" {
		b.WriteString(prose.Wrap(heading, "   ", text, prose.Width) + "\n")
	}
}

// shortened returns the first maxLine bytes of a line, and the number of omitted bytes.
func shortened(line string) string {
	if len(line) <= maxLine {
		return line
	}
	return fmt.Sprintf("%s ... and %d more bytes", strings.ToValidUTF8(line[:maxLine], ""), len(line)-maxLine)
}

// WriteMarkdown writes the findings for an issue tracker, one section for each finding.
func WriteMarkdown(w io.Writer, r *Report) error {
	var b strings.Builder
	s := &r.Summary
	fmt.Fprintf(&b, "# Fuzzing %s: %s\n\n", r.Title, s.Verdict())
	fmt.Fprintf(&b, "- Server: %s\n- Run: %s, %v, %d executions, random seed %d\n- jobwire %s\n\n",
		code(r.Target), r.Began.UTC().Format(time.RFC3339), s.Duration(), s.Executions, s.Seed, r.Jobwire)
	if len(r.Findings) > 0 {
		b.WriteString("| # | Level | Severity | Finding | Observed |\n|---|---|---|---|---|\n")
	}
	for i, f := range r.Findings {
		fmt.Fprintf(&b, "| %d | %s | %s | %s | %s |\n", i+1, f.Level, f.Severity, escaped(f.what()), escaped(f.brief()))
	}
	for i, f := range r.Findings {
		fmt.Fprintf(&b, "\n## %d. %s\n\n%s\n\n", i+1, escaped(f.Headline()), escaped(f.Impact))
		fmt.Fprintf(&b, "- Observed: %s\n", escaped(oneLine(f.Text)))
		if rule := f.Cites(); rule != "" {
			fmt.Fprintf(&b, "- Rule %s\n", escaped(rule))
		}
		fmt.Fprintf(&b, "- %s\n", escaped(f.seen()))
		fmt.Fprintf(&b, "\nTo repeat it:\n\n%s", block("sh", f.Command))
		fmt.Fprintf(&b, "\n%s:\n\n%s", f.shows(), block("text", f.Transcript))
		if len(f.Symptoms) > 0 {
			b.WriteString("\nOther symptoms, which probably have the same cause:\n\n")
		}
		for _, o := range f.Symptoms {
			fmt.Fprintf(&b, "- %s (%s)\n", escaped(shortened(o.symptom())), code(o.File))
		}
		if len(f.Stack) > 0 {
			fmt.Fprintf(&b, "\nStack, innermost function first:\n\n%s", block("text", strings.Join(f.Stack, "\n")))
		}
		if f.Output != "" {
			fmt.Fprintf(&b, "\nLast output of the server:\n\n%s", block("text", strings.Join(f.lastOutput(maxPageOutput), "\n")))
		}
	}
	if waiting := s.Waiting(); waiting != "" {
		fmt.Fprintf(&b, "\n%s.\n", escaped(waiting))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// maxPageOutput is the maximum number of lines of a server's output in Markdown and HTML.
const maxPageOutput = 60

// escaped returns text with Markdown markup escaped.
func escaped(s string) string { return markup.Replace(s) }

var markup = strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "<", "&lt;", ">",
	"&gt;", "|", `\|`, "#", `\#`)

// code returns text as a Markdown code span.
func code(s string) string {
	fence := codeFence(s, 1)
	return fence + " " + oneLine(s) + " " + fence
}

// block returns text as a Markdown code block.
func block(language, s string) string {
	fence := codeFence(s, 3)
	return fence + language + "\n" + strings.TrimRight(s, "\n") + "\n" + fence + "\n"
}

// codeFence returns a sequence of at least n backquotes that the text does not contain.
func codeFence(s string, n int) string {
	fence := strings.Repeat("`", n)
	for strings.Contains(s, fence) {
		fence += "`"
	}
	return fence
}
