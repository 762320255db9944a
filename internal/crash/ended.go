package crash

import (
	"fmt"
	"strings"
	"syscall"
)

// signals are the names of signals, with expressions that match what programs print when a signal ends them.
var signals = []struct {
	name  string // as syscall.Signal writes it
	words pattern
}{
	{"segmentation fault", lazily(`(?i)segmentation (?:fault|violation)|\bSIGSEGV\b`)},
	{"aborted", lazily(`\bSIGABRT\b|(?m)^Aborted\b`)},
	{"bus error", lazily(`(?i)\bbus error\b|\bSIGBUS\b`)},
	{"illegal instruction", lazily(`(?i)\billegal instruction\b|\bSIGILL\b`)},
	{"floating point exception", lazily(`(?i)\bfloating point exception\b|\bSIGFPE\b`)},
}

// signalOf returns the name of the signal in a text, or "".
func signalOf(text string) string {
	if text == "abort" {
		return "aborted"
	}
	for _, s := range signals {
		if s.words().MatchString(text) {
			return s.name
		}
	}
	return ""
}

// kindOf returns Report.Kind for a crash of which only the signal is known.
func kindOf(signal string) string {
	if signal == "aborted" {
		return "abort"
	}
	return signal
}

// Ended returns the report about a process that has ended. exit is the text of os/exec, such as "signal: segmentation
// fault (core dumped)" or "exit status 1". An exit status above 128 means that the process is a shell whose child was
// ended by a signal. A process that was killed has not reported why. If the output contains no report, Kind is the
// signal or, if there is no signal, exit.
func Ended(exit, output string) Report {
	r := fatal(ParseAll(output))
	if strings.Contains(exit, "killed") && severity(r) < 2 { // the report is about an error that the process survived
		r = Report{}
	}
	signal, text := ending(exit)
	if signal == "" {
		signal = r.Signal
	}
	if signal == "" && r.Kind == "" {
		if signal = signalOf(output); signal != "" {
			text += "; its output reports: " + signal
		}
	}
	r.Signal = signal
	switch r.Kind {
	case "":
		r.Kind = kindOf(signal)
		if r.Kind == "" {
			r.Kind = strings.TrimSpace(exit)
		}
		if r.Text != "" {
			text += ", after it printed a stack trace"
		}
		r.Text = text
	default:
		if r.cause = r.Text; severity(r) < 2 { // the process may have ended for another reason than the report
			r.Text = text + "; its output reports: " + r.Text
		}
	}
	return r
}

// severity ranks reports. 2: errors of memory that a sanitizer or Valgrind reports. 1: other reports, after which a
// process may continue. 0: leaks, and stacks of goroutines without the panic that they follow.
func severity(r Report) int {
	switch {
	case r.Kind == "leak", r.Kind == "" && r.Tool == "Go":
		return 0
	case r.Tool == "Valgrind", strings.HasSuffix(r.Tool, "Sanitizer") && r.Tool != "UndefinedBehaviorSanitizer":
		return 2
	}
	return 1
}

// fatal returns the report that most likely explains the end of a process: the first report of a sanitizer, otherwise
// the last report.
func fatal(all []Report) Report {
	var best Report
	for i, r := range all {
		if s, b := severity(r), severity(best); i == 0 || s > b || s == b && s == 1 {
			best = r
		}
	}
	return best
}

// ending returns the signal that ended a process, or "" if it is unknown, and a sentence about the end of the process.
func ending(exit string) (signal, text string) {
	if signal, ok := strings.CutPrefix(exit, "signal: "); ok {
		return strings.TrimSuffix(signal, " (core dumped)"), "the server process was killed by a signal: " + signal
	}
	text = "the server process ended: " + exit
	var status int
	if n, _ := fmt.Sscanf(exit, "exit status %d", &status); n == 1 && status > 128 && status <= 128+31 {
		signal = syscall.Signal(status - 128).String()
		text = fmt.Sprintf("%s, which means: killed by signal %d (%s)", text, status-128, signal)
	}
	return signal, text
}
