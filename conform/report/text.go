// Package report writes the results of runs of conform: as text, HTML, JSON, JUnit XML and TAP, and as a page that
// compares several servers by requirement.
package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"jobwire/conform"
	"jobwire/internal/prose"
	"jobwire/internal/verdict"
	"jobwire/play"
)

// Text writes a report about a run as text: all cases that did not pass, and the causes. If this needs more than
// maxLines lines, it only writes the worst causes, each with an example.
type Text struct {
	W       io.Writer
	Color   bool
	Verbose bool // write all cases, also those that passed, as soon as they end
	section string
	note    string           // the note of the previous case
	pending []conform.Result // results so far of a case with further instances
}

// maxLines is the maximum number of lines of a report, unless it is verbose.
const maxLines = 60

func (t *Text) paint(v verdict.Verdict, s string) string {
	if !t.Color {
		return s
	}
	return prose.Color(v.Row().Color) + s + prose.Color("0")
}

// indent precedes the lines about a case.
const indent = "      "

// Case adds one result. If the report is verbose, it writes the case when the results of all its instances have
// arrived, a failed case with its conversation. It does not write cases that did not run; the summary counts them.
func (t *Text) Case(r conform.Result) {
	if !t.Verbose {
		return
	}
	if len(t.pending) > 0 && t.pending[0].Case.Family != r.Case.Family {
		t.flush()
	}
	if t.pending = append(t.pending, r); len(r.Case.Params) == 0 {
		t.flush()
	}
}

// flush writes the case whose results are pending.
func (t *Text) flush() {
	if len(t.pending) > 0 {
		t.write(foldOne(t.pending))
		t.pending = nil
	}
}

// write writes a case with its verdict, and if it did not pass, what happened. It writes the heading of a section
// before the first case of the section, and a note that the previous case also has only once.
func (t *Text) write(r conform.Result) {
	switch r.Verdict {
	case verdict.Passed, verdict.Skipped:
		if !t.Verbose {
			return
		}
	case verdict.NotRun, verdict.Unreachable:
		return
	}
	c := r.Case
	if c.Section != t.section {
		t.section = c.Section
		fmt.Fprintf(t.W, "\n%s\n", c.Section)
	}
	name := c.ID
	if r.Instances > 0 && r.Verdict == verdict.Passed {
		name = fmt.Sprintf("%s (%d instances)", c.Family, r.Instances)
	}
	if r.ExcusedCrash() {
		name += " (crashed)"
	}
	fmt.Fprintf(t.W, "  %s  %s\n", t.paint(r.Verdict, fmt.Sprintf("%-16s", r.Verdict)), name)
	if r.Verdict == verdict.Passed {
		return
	}
	if explained(&r) {
		writeExplanation(t.W, r, play.ReportOptions{Color: t.Color, Indent: indent})
		return
	}
	writeWrapped(t.W, c.About, indent)
	if r.Verdict == verdict.Different {
		writeWrapped(t.W, "The specification is silent; jobwire's interpretation: "+r.Interpretation(), indent)
	}
	if r.Note != t.note {
		writeWrapped(t.W, r.Note, indent)
		if r.Quote != "" {
			writeWrapped(t.W, fmt.Sprintf("The specification says: \"%s\"", r.Quote), indent)
		}
	}
	t.note = r.Note
	if r.Values != "" {
		writeWrapped(t.W, "Instances: "+r.Values, indent)
	}
}

// explained reports whether reports show the rules and the conversation for the result.
func explained(r *conform.Result) bool {
	return r.Play != nil && (r.Verdict.FailsRun() && r.Verdict != verdict.Unexpected || r.Verdict == verdict.Inconclusive)
}

// writeExplanation writes the description of a case, the rules that its result is about, the reason for the
// failure, the conversation, and the command line that runs only this case.
func writeExplanation(w io.Writer, r conform.Result, o play.ReportOptions) {
	c := r.Case
	writeWrapped(w, c.About, o.Indent)
	if c.Interpretation != "" {
		writeWrapped(w, "Interpretation: "+c.Interpretation, o.Indent)
	}
	for _, id := range c.Rules {
		if !r.Concerns(id) {
			continue
		}
		rule := c.Script.Protocol.Rule(id)
		writeWrapped(w, fmt.Sprintf("Rule %s (%s, specification section %q): %s", id, rule.Level, rule.Section, rule.Text),
			o.Indent)
	}
	fmt.Fprintln(w)
	writeWrapped(w, fmt.Sprintf("Result: %s", r.Note), o.Indent)
	if r.Values != "" {
		writeWrapped(w, fmt.Sprintf("Instances: %s", r.Values), o.Indent)
	}
	fmt.Fprintln(w)
	if r.Play != nil {
		play.WriteReport(w, r.Performed(), r.Play, o)
	}
	if r.Command != "" {
		fmt.Fprintf(w, "\n%sTo run only this case:\n%s  %s\n", o.Indent, o.Indent, r.Command)
	}
}

// writeWrapped writes text with line breaks, in lines of at most prose.Width characters unless a word is longer. It
// keeps the line breaks and the indentation of the text.
func writeWrapped(w io.Writer, s, indent string) {
	for line := range strings.Lines(s) {
		start := indent + line[:len(line)-len(strings.TrimLeft(line, " \t"))]
		fmt.Fprintln(w, prose.Wrap(start, start, line, prose.Width))
	}
}

// Summary writes the rest of the report: the causes and the counts and, unless the report is verbose, the cases that
// did not pass. It writes nothing if the target could not be reached before the first case.
func (t *Text) Summary(r *conform.Report) {
	t.flush()
	if r.Ran() == 0 && r.Unreachable() != "" {
		return
	}
	causes := r.Causes()
	if t.Verbose {
		t.causes(causes)
		t.counts(r)
		return
	}
	var whole bytes.Buffer
	all := *t
	all.W = &whole
	for _, res := range Fold(r.Results) {
		if all.write(res); bytes.Count(whole.Bytes(), []byte("\n")) > maxLines {
			t.brief(r, causes)
			return
		}
	}
	all.causes(causes)
	if all.counts(r); bytes.Count(whole.Bytes(), []byte("\n")) > maxLines {
		t.brief(r, causes)
		return
	}
	t.W.Write(whole.Bytes())
}

// counts writes the last lines of the report: the number of cases by verdict, and why the run ended early.
func (t *Text) counts(r *conform.Report) {
	var counts, plain []string // with and without colors
	for _, row := range verdict.Cases {
		v := row.Verdict
		if n := r.Count(v); n > 0 {
			count := fmt.Sprintf("%d %s", n, v)
			if n := excusedCrashes(r, v); n > 0 {
				count += fmt.Sprintf(" (%d crashed)", n)
			}
			plain, counts = append(plain, count), append(counts, t.paint(v, count))
		}
	}
	cases := conform.CountCases(len(Fold(r.Results)), len(r.Results))
	subject := fmt.Sprintf("\n%s tested against %s:", r.Target, r.Protocol.Title)
	result := fmt.Sprintf("%s: %s in %.1f s", cases, strings.Join(plain, ", "), r.Took.Seconds())
	between := " "
	if len(subject)+len(result) > prose.Width {
		between = "\n"
	}
	fmt.Fprintf(t.W, "%s%s%s: %s in %.1f s\n", subject, between, cases, strings.Join(counts, ", "), r.Took.Seconds())
	for _, note := range r.Notes {
		writeWrapped(t.W, note, "")
	}
	if why := r.Stopped(); why != "" {
		fmt.Fprintln(t.W, why)
	}
}

// maxCauseCases is the maximum number of cases that the text lists for a cause.
const maxCauseCases = 6

// someOf returns the first of the names.
func someOf(names []string) string {
	if n := len(names) - maxCauseCases; n > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxCauseCases], ", "), n)
	}
	return strings.Join(names, ", ")
}

// causeIndent precedes the lines about a cause.
const causeIndent = "     "

// causes writes the causes of failures if they concern at least two cases.
func (t *Text) causes(causes []conform.Cause) {
	cases := 0
	for _, c := range causes {
		cases += len(c.Cases)
	}
	if cases < 2 {
		return
	}
	fmt.Fprint(t.W, causesTitle)
	for i := range causes {
		t.cause(i, &causes[i])
		t.hints(i, &causes[i], len(causes[i].Try))
	}
}

// hints writes how to run the cases of the i-th cause, and its first n hints.
func (t *Text) hints(i int, c *conform.Cause, n int) {
	hints := c.Try[:min(n, len(c.Try))]
	if c.Instances > 1 {
		hints = append([]conform.Hint{{About: "run these cases", Option: fmt.Sprintf("--run cause:%d", i+1)}}, hints...)
	}
	for _, h := range hints {
		fmt.Fprintln(t.W, prose.Wrap(causeIndent+"- ", causeIndent+"  ", h.About+": "+h.Option, prose.Width))
	}
}

const causesTitle = "\nCauses, the worst first:\n"

// cause writes the text of the i-th cause and its cases.
func (t *Text) cause(i int, c *conform.Cause) {
	v := verdict.Failed
	title := c.Text
	switch {
	case c.Expected:
		v, title = verdict.Known, title+" (the profile expects it)"
	case c.Kind == conform.CauseSetup || c.Kind == conform.CauseInconclusive:
		v = verdict.Inconclusive
	}
	title = prose.Wrap(fmt.Sprintf("%3d. ", i+1), causeIndent, firstLine(title, maxTitle), prose.Width)
	fmt.Fprintf(t.W, "\n%s\n", t.paint(v, title))
	writeWrapped(t.W, c.Count()+": "+someOf(c.Cases), causeIndent)
}

// firstLine returns the first line of a text in at most most bytes and an ellipsis. It ends after a word, unless the
// word is as long as half of the line.
func firstLine(text string, most int) string {
	first, _, _ := strings.Cut(text, "\n")
	if len(first) <= most {
		return first
	}
	short := strings.ToValidUTF8(first[:most], "")
	if k := strings.LastIndexByte(short, ' '); k > most/2 {
		short = short[:k]
	}
	return strings.TrimRight(short, " :,;") + "…"
}

const (
	maxTitle = 300 // bytes of the text of a cause
	maxShort = 12  // number of causes that the brief report has in one line each, after those with an example
)

// brief writes the report in at most maxLines lines: the worst causes with an example and what to run next, others in
// one line, the number of the rest, and the counts.
func (t *Text) brief(r *conform.Report, causes []conform.Cause) {
	var end bytes.Buffer
	last := *t
	last.W = &end
	for _, row := range verdict.Cases {
		if row.Class != verdict.Note && row.Class != verdict.Excused {
			continue
		}
		var names []string
		for _, res := range Fold(r.Results) {
			if res.Verdict == row.Verdict {
				names = append(names, res.Case.Family)
			}
		}
		if len(names) > 0 {
			writeWrapped(&end, fmt.Sprintf("\n%s: %s", row.Verdict, someOf(names)), "")
		}
	}
	last.counts(r)
	fmt.Fprintln(&end, "--verbose shows all causes, and all cases with their messages.")
	const others = 5 // the title, the line about the other causes, and the empty lines before them
	left := maxLines - bytes.Count(end.Bytes(), []byte("\n")) - others
	if len(causes) > 0 {
		fmt.Fprint(t.W, causesTitle)
	}
	n := 0 // causes that were written
	for ; n < len(causes); n++ {
		var one bytes.Buffer
		text := *t
		text.W = &one
		text.cause(n, &causes[n])
		text.example(n, &causes[n])
		lines := bytes.Count(one.Bytes(), []byte("\n"))
		if lines+min(len(causes)-n-1, maxShort) > left {
			break
		}
		left -= lines
		t.W.Write(one.Bytes())
	}
	if n < len(causes) {
		fmt.Fprintln(t.W)
	}
	for ; n < len(causes) && left > 0; n++ {
		c := &causes[n]
		count := " (" + conform.CountCases(len(c.Cases), c.Instances) + ")"
		fmt.Fprintf(t.W, "%3d. %s%s\n", n+1, firstLine(c.Text, prose.Width-len(causeIndent)-len(count)-1), count)
		left--
	}
	if n < len(causes) {
		cases, instances := 0, 0
		for _, c := range causes[n:] {
			cases, instances = cases+len(c.Cases), instances+c.Instances
		}
		fmt.Fprintf(t.W, "\n... and %d more causes (%s)\n", len(causes)-n, conform.CountCases(cases, instances))
	}
	t.W.Write(end.Bytes())
}

// maxExample is the maximum number of lines of the conversation that the report shows in full for the first cause.
const maxExample = 20

// example writes the shortest conversation of a cause, only its end unless it is the first cause, and how to run the
// cases.
func (t *Text) example(i int, c *conform.Cause) {
	res := c.Example
	var whole bytes.Buffer
	script, p := res.Conversation()
	if res.Play != nil && i == 0 {
		play.WriteReport(&whole, script, p, play.ReportOptions{Color: t.Color, Indent: indent})
	}
	switch {
	case p == nil:
	case whole.Len() > 0 && bytes.Count(whole.Bytes(), []byte("\n")) <= maxExample:
		fmt.Fprintf(t.W, "\n%s\n", whole.Bytes())
	default:
		for _, line := range play.Excerpt(script, p, prose.Width-len(causeIndent)-2) {
			fmt.Fprintf(t.W, "%s  %s\n", causeIndent, line)
		}
	}
	t.hints(i, c, 1)
}

// excusedCrashes returns the number of cases with the verdict that crashed the target as the profile expects.
func excusedCrashes(r *conform.Report, v verdict.Verdict) int {
	n := 0
	for _, c := range r.Results {
		if c.Verdict == v && c.ExcusedCrash() {
			n++
		}
	}
	return n
}

// Result returns a result as the text report shows it with the option Verbose, or "" if the case did not run.
func Result(r conform.Result) string {
	var b strings.Builder
	(&Text{W: &b, Verbose: true}).write(r)
	return b.String()
}
