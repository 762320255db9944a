// Package report writes the findings of a fuzz run as text, JSON, Markdown, HTML, JUnit XML and SARIF. All formats
// contain the same facts, with the most severe finding first.
package report

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"jobwire/internal/version"
)

// Report describes a run and its findings.
type Report struct {
	Jobwire  version.Info `json:"-"`        // [Save] writes it
	Protocol string       `json:"protocol"` // name, such as "gearman"
	Title    string       `json:"title"`    // title of the protocol, such as "Gearman"
	Target   string       `json:"target"`   // address or command of the server
	Began    time.Time    `json:"began"`
	Summary  Summary      `json:"summary"`
	Findings []*Finding   `json:"findings"` // most severe finding first
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
	RuleSection string   `json:"rule_section,omitempty"` // section of the specification
	RuleText    string   `json:"rule_text,omitempty"`
	Text        string   `json:"text"` // observed behavior
	Output      string   `json:"last_output,omitempty"`
	Reproduced  bool     `json:"reproduced"`
	Observed    int      `json:"observed"`
	Shown       int      `json:"shown"`
	Tried       int      `json:"tried"`
	Evidence    string   `json:"evidence"` // sentence about how the finding was reproduced
	Plays       bool     `json:"plays"`
	Command     string   `json:"command"`    // command line that repeats the failure
	File        string   `json:"file"`       // file with the transcript
	Transcript  string   `json:"transcript"` // the messages, one a line; if there are several Inputs, a sentence for each
	Inputs      int      `json:"inputs,omitempty"`

	// Command was run Runs times, and has repeated the fault Repeated times. Runs is 0 if it was not checked.
	Runs     int `json:"command_runs"`
	Repeated int `json:"command_repeated"`

	// Symptoms are other findings that probably have the same cause, because the messages that lead to them have the
	// same unusual effects.
	Symptoms []*Finding `json:"symptoms,omitempty"`
}

// Summary contains the statistics of a run.
type Summary struct {
	Seconds    float64 `json:"seconds"`
	Executions int64   `json:"executions"`
	Timed      int64   `json:"executions_with_pauses"`
	Repeats    int64   `json:"leak_executions"`
	Messages   int64   `json:"messages"`
	Corpus     int     `json:"corpus"`
	Features   int     `json:"features"`
	Findings   int     `json:"findings"`
	Duplicates int     `json:"duplicates"`
	Candidates int     `json:"candidates"`
	Examined   int     `json:"examined"`
	Failed     int     `json:"not_reproduced"`
	Disputed   int     `json:"reference_fails_too"`
	Unexamined int     `json:"not_examined"`
	Starts     int     `json:"server_starts"`
	Seed       uint64  `json:"seed"`

	Saved       int    `json:"candidates_saved"`  // number of candidates that were saved without an examination
	Folder      string `json:"candidates_folder"` // directory with these candidates
	Interrupted bool   `json:"interrupted"`       // the user ended the run
	Reason      string `json:"ended_because"`     // why they were not examined: the event that ended the run
}

// Formats maps the names of the formats for standard output to the functions that write them.
var Formats = map[string]func(io.Writer, *Report) error{
	"text":     WriteText,
	"html":     WriteHTML,
	"json":     WriteJSON,
	"markdown": WriteMarkdown,
	"junit":    WriteJUnit,
	"sarif":    WriteSARIF,
	"github":   WriteGitHub,
}

// WriteJSON writes one JSON object per line: one for each finding, and then the summary.
func WriteJSON(w io.Writer, r *Report) error {
	type about struct {
		version.Head
		Seed   uint64 `json:"seed"`
		Target string `json:"target"`
	}
	run := about{version.NewHead(), r.Summary.Seed, r.Target}
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
		version.Head
		Summary
		Target string `json:"target"`
	}{version.NewHead(), r.Summary, r.Target})
}

// Headline returns the level, the severity and the title with the rule.
func (f *Finding) Headline() string { return fmt.Sprintf("%s: %s: %s", f.Level, f.Severity, f.what()) }

// what returns the title with the rule, and whether the finding was observed only during the run.
func (f *Finding) what() string {
	s := f.Title
	if f.Rule != "" {
		s += " [" + f.Rule + "]"
	}
	if !f.Reproduced {
		s += ", observed only during the run"
	}
	return s
}

// Cites returns the rule with its text and section, or "".
func (f *Finding) Cites() string {
	if f.RuleText == "" {
		return ""
	}
	return oneLine(fmt.Sprintf("%s: %s (%s)", f.Rule, f.RuleText, f.RuleSection))
}

// maxFrames is the number of functions of a stack that are shown.
const maxFrames = 4

// Frames returns the innermost functions of the stack on one line, or "".
func (f *Finding) Frames() string {
	return strings.Join(f.Stack[:min(len(f.Stack), maxFrames)], " < ")
}

// maxBrief is the maximum length of the observed behavior, in characters, in lists of findings.
const maxBrief = 72

// brief returns the observed behavior on one line, shortened to maxBrief characters.
func (f *Finding) brief() string {
	text := []rune(oneLine(f.Text))
	if len(text) <= maxBrief {
		return string(text)
	}
	return string(text[:maxBrief-3]) + "..."
}

// symptom returns the finding on one line, for the list of symptoms of another finding.
func (f *Finding) symptom() string {
	return fmt.Sprintf("%s: %s: %s", f.Severity, f.what(), oneLine(f.Text))
}

// seen returns Evidence with the number of observations, unless Evidence says how often the fault was observed.
func (f *Finding) seen() string {
	if f.Observed < 2 || strings.Contains(f.Evidence, "bserved ") {
		return f.Evidence
	}
	return fmt.Sprintf("%s Observed %d times.", f.Evidence, f.Observed)
}

// shows returns the heading of Transcript.
func (f *Finding) shows() string {
	if f.Inputs > 1 {
		return "What the clients and workers did before, in this order"
	}
	return "What happened"
}

// lastOutput returns at most n lines from the end of the server's output. Adjacent equal lines are combined to one
// line.
func (f *Finding) lastOutput(n int) []string {
	if f.Output == "" {
		return nil
	}
	var lines []string
	for rest := strings.Split(strings.TrimRight(f.Output, "\n"), "\n"); len(rest) > 0; {
		line, times := rest[0], 0
		for times < len(rest) && rest[times] == line {
			times++
		}
		if rest = rest[times:]; times > 1 {
			line += fmt.Sprintf(" (%d times)", times)
		}
		lines = append(lines, line)
	}
	return lines[max(0, len(lines)-n):]
}

// Rate returns the number of executions per second.
func (s *Summary) Rate() float64 { return float64(s.Executions) / max(s.Seconds, 0.001) }

// Duration returns the duration of the run, rounded to 100 ms.
func (s *Summary) Duration() time.Duration {
	return time.Duration(s.Seconds * float64(time.Second)).Round(100 * time.Millisecond)
}

// Verdict returns the number of findings, and of the candidates that were not examined, because they may be findings.
func (s *Summary) Verdict() string {
	text := counted(s.Findings, "finding", "findings")
	if s.Unexamined > 0 {
		text += ", " + counted(s.Unexamined, "candidate", "candidates") + " not examined"
	}
	return text
}

// Waiting returns a sentence with the number of candidates that were not examined, and where candidates are saved, or
// "".
func (s *Summary) Waiting() (text string) {
	if s.Unexamined > 0 {
		text = counted(s.Unexamined, "candidate was", "candidates were") + " not tried again before " + s.Reason
	}
	if s.Saved > 0 {
		if text != "" {
			text += "; "
		}
		text += fmt.Sprintf("%d saved in %s", s.Saved, s.Folder)
	}
	return text
}

func counted(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
