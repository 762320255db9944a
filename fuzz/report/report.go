// Package report writes the findings of a fuzz run: as text, JSON, Markdown, HTML, JUnit XML and SARIF. Each format has
// the same facts, the most severe finding first.
package report

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"jobwire/internal/version"
)

// Report is a run and its findings.
type Report struct {
	Jobwire  version.Info
	Protocol string // name, such as "gearman"
	Title    string // of the protocol, such as "Gearman"
	Target   string // address or command of the server
	Began    time.Time
	Summary  Summary
	Findings []*Finding // the most severe first
}

// Finding is a fault of the server.
type Finding struct {
	Name        string   `json:"name"`
	Severity    string   `json:"severity"` // such as "remote crash"
	Level       string   `json:"level"`    // critical, high, medium or low
	Title       string   `json:"title"`
	Impact      string   `json:"impact"` // one sentence
	Oracle      string   `json:"oracle"`
	Signal      string   `json:"signal,omitempty"`
	Stack       []string `json:"stack,omitempty"` // functions, innermost first
	Rule        string   `json:"rule,omitempty"`
	RuleLevel   string   `json:"rule_level,omitempty"`
	RuleSection string   `json:"rule_section,omitempty"` // of the specification
	RuleText    string   `json:"rule_text,omitempty"`
	Text        string   `json:"text"` // what was observed
	Output      string   `json:"last_output,omitempty"`
	Reproduced  bool     `json:"reproduced"`
	Observed    int      `json:"observed"`
	Shown       int      `json:"shown"`
	Tried       int      `json:"tried"`
	Evidence    string   `json:"evidence"` // how it was reproduced, in words
	Plays       bool     `json:"plays"`
	Command     string   `json:"command"` // that repeats it
	File        string   `json:"file"`    // of the transcript
	Transcript  string   `json:"transcript"`

	// Symptoms are other failures that probably have the same cause: the messages that lead to them do the same unusual things.
	Symptoms []*Finding `json:"symptoms,omitempty"`
}

// Summary is what a run has done.
type Summary struct {
	Seconds    float64 `json:"seconds"`
	Executions int64   `json:"executions"`
	Messages   int64   `json:"messages"`
	Corpus     int     `json:"corpus"`
	Features   int     `json:"features"`
	Findings   int     `json:"findings"`
	Duplicates int     `json:"duplicates"`
	Failed     int     `json:"not_reproduced"`
	Disputed   int     `json:"reference_fails_too"`
	Unexamined int     `json:"not_examined"`
	Starts     int     `json:"server_starts"`
	Seed       uint64  `json:"seed"`

	Saved  int    `json:"-"` // candidates that were not examined
	Folder string `json:"-"` // where they are saved
	Reason string `json:"-"` // why they were not examined
}

// Formats are the formats for standard output, by name.
var Formats = map[string]func(io.Writer, *Report) error{
	"text":     WriteText,
	"json":     WriteJSON,
	"markdown": WriteMarkdown,
	"junit":    WriteJUnit,
	"sarif":    WriteSARIF,
}

// WriteJSON writes one JSON object per line: each finding, and then the summary.
func WriteJSON(w io.Writer, r *Report) error {
	type about struct {
		Seed    uint64       `json:"seed"`
		Target  string       `json:"target"`
		Jobwire version.Info `json:"jobwire"`
	}
	run := about{r.Summary.Seed, r.Target, r.Jobwire}
	e := json.NewEncoder(w)
	for _, f := range r.Findings {
		if err := e.Encode(struct {
			*Finding
			about
		}{f, run}); err != nil {
			return err
		}
	}
	return e.Encode(struct {
		Summary
		Target  string       `json:"target"`
		Jobwire version.Info `json:"jobwire"`
	}{r.Summary, r.Target, r.Jobwire})
}

// Headline returns the severity and the title with the rule.
func (f *Finding) Headline() string { return fmt.Sprintf("%s: %s: %s", f.Level, f.Severity, f.what()) }

// what returns the title with the rule.
func (f *Finding) what() string {
	s := f.Title
	if f.Rule != "" {
		s += " [" + f.Rule + "]"
	}
	if !f.Reproduced {
		s += ", not reproduced"
	}
	return s
}

// Cites returns the rule with its section and text, or "".
func (f *Finding) Cites() string {
	if f.RuleText == "" {
		return ""
	}
	return oneLine(fmt.Sprintf("%s: %s (%s)", f.Rule, f.RuleText, f.RuleSection))
}

// maxFrames is how many functions of a stack are shown.
const maxFrames = 4

// Frames returns the innermost functions of the stack in one line, or "".
func (f *Finding) Frames() string {
	return printable(strings.Join(f.Stack[:min(len(f.Stack), maxFrames)], " < "))
}

// maxBrief is how many characters of what was observed lists of findings show.
const maxBrief = 72

// brief returns the beginning of what was observed.
func (f *Finding) brief() string {
	text := []rune(oneLine(f.Text))
	if len(text) <= maxBrief {
		return string(text)
	}
	return string(text[:maxBrief-3]) + "..."
}

// symptom returns a finding in one line, as one of the symptoms of another.
func (f *Finding) symptom() string {
	return fmt.Sprintf("%s: %s: %s", f.Severity, f.what(), oneLine(f.Text))
}

// Evidence with the number of observations.
func (f *Finding) seen() string {
	if f.Observed < 2 {
		return f.Evidence
	}
	return fmt.Sprintf("%s Observed %d times.", f.Evidence, f.Observed)
}

// lastOutput returns the last lines of the output of the server, at most n. Equal lines that follow each other are one line.
func (f *Finding) lastOutput(n int) []string {
	if f.Output == "" {
		return nil
	}
	var lines []string
	times := 0 // how often the server has printed the last of them
	for line := range strings.SplitSeq(printable(strings.TrimRight(f.Output, "\n")), "\n") {
		if times > 0 && line == lines[len(lines)-1] {
			times++
			continue
		}
		lines = repeated(lines, times)
		lines, times = append(lines, line), 1
	}
	lines = repeated(lines, times)
	return lines[max(0, len(lines)-n):]
}

// repeated says of the last line how often it was printed.
func repeated(lines []string, times int) []string {
	if times > 1 {
		lines[len(lines)-1] += fmt.Sprintf(" (%d times)", times)
	}
	return lines
}

// Rate returns the executions per second.
func (s *Summary) Rate() float64 { return float64(s.Executions) / max(s.Seconds, 0.001) }

// Duration returns how long the run took.
func (s *Summary) Duration() time.Duration {
	return time.Duration(s.Seconds * float64(time.Second)).Round(100 * time.Millisecond)
}

// Waiting says how many candidates were not examined, or "".
func (s *Summary) Waiting() string {
	if s.Unexamined == 0 {
		return ""
	}
	text := counted(s.Unexamined, "candidate was", "candidates were") + " not tried again before " + s.Reason
	if s.Saved > 0 {
		text += fmt.Sprintf("; %d saved in %s", s.Saved, s.Folder)
	}
	return text
}

func counted(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}

func oneLine(s string) string { return printable(strings.Join(strings.Fields(s), " ")) }

// printable replaces control characters, except newlines, by question marks.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && (r < ' ' || r == 0x7f || r == 0xfffe || r == 0xffff) {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
}
