package fuzz

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"syscall"
	"time"

	"jobwire/internal/target"
)

// verdict returns the fault of an execution, with the state of the process taken into account.
func verdict(t target.Target, f *Fault) *Fault {
	if f != nil && (f.Oracle == HangAll || f.Oracle == Disturbed || f.Oracle == HangConn) || ended(t) {
		if err := target.Died(t); err != nil {
			return death(t, err, f)
		}
	}
	if report := sanitizer(t.Output()); report != "" {
		s := &Fault{Oracle: Sanitizer, Law: normalize(report), Text: report, Conn: -1, Step: -1, Output: lastOutput(t.Output())}
		if f != nil {
			s.Conn, s.Step = f.Conn, f.Step
		}
		return s
	}
	return f
}

func ended(t target.Target) bool {
	select {
	case <-t.Done():
		return true
	default:
		return false
	}
}

// death returns the fault of a server that has ended.
func death(t target.Target, err error, f *Fault) *Fault {
	d := &Fault{Oracle: Exit, Conn: -1, Step: -1, Output: lastOutput(t.Output())}
	exit := err.Error()
	var e *target.Error
	if errors.As(err, &e) {
		exit, d.Output = e.Exit, lastOutput(e.Output)
		if exit == "" {
			exit = e.Reason
		}
	}
	d.Law = normalize(exit) + trace(d.Output)
	if cause := strings.TrimSpace(causes.FindString(d.Output)); cause != "" {
		d.Law += " " + normalize(cause)
	}
	d.Signal, d.Text = ending(exit, d.Output)
	if d.Signal != "" {
		d.Oracle, d.Law = Signal, d.Law+" "+d.Signal
	}
	if f != nil {
		d.Conn, d.Step = f.Conn, f.Step
	}
	d.Stack = strings.Fields(trace(d.Output))
	if report := sanitizer(d.Output); report != "" {
		d.Oracle, d.Law, d.Text = Sanitizer, normalize(report), report
	}
	return d
}

// causes matches the line in which a program reports why it ends.
var causes = regexp.MustCompile(`(?m)^(?:panic: .*|fatal error: .*|terminate called .*|.*[Aa]ssertion .*failed.*|\*\*\* .* \*\*\*.*)$`)

// signals are what programs print about signals that end them.
var signals = []struct {
	name  string
	words *regexp.Regexp
}{
	{"segmentation fault", regexp.MustCompile(`(?i)segmentation (?:fault|violation)|\bSIGSEGV\b`)},
	{"aborted", regexp.MustCompile(`\bSIGABRT\b|(?m)^Aborted\b`)},
	{"bus error", regexp.MustCompile(`(?i)\bbus error\b|\bSIGBUS\b`)},
	{"illegal instruction", regexp.MustCompile(`(?i)\billegal instruction\b|\bSIGILL\b`)},
	{"floating point exception", regexp.MustCompile(`(?i)\bfloating point exception\b|\bSIGFPE\b`)},
}

// ending returns the signal that ended a server, or "" if it is not known, and how the server ended. The signal may be that of a
// child, which a shell reports in its exit status, or one that the server has handled and printed.
func ending(exit, output string) (signal, text string) {
	if signal, ok := strings.CutPrefix(exit, "signal: "); ok {
		return strings.TrimSuffix(signal, " (core dumped)"), "the server process was killed by a signal: " + signal
	}
	text = "the server process ended: " + exit
	var status int
	if n, _ := fmt.Sscanf(exit, "exit status %d", &status); n == 1 && status > 128 && status <= 128+31 {
		signal = syscall.Signal(status - 128).String()
		return signal, fmt.Sprintf("%s, which means: killed by signal %d (%s)", text, status-128, signal)
	}
	for _, s := range signals {
		if s.words.MatchString(output) {
			return s.name, fmt.Sprintf("%s; its output reports: %s", text, s.name)
		}
	}
	if cause := strings.TrimSpace(causes.FindString(output)); cause != "" {
		return "", text + "; its output reports: " + cause
	}
	if trace(output) != "" {
		text += ", after it printed a stack trace"
	}
	return "", text
}

var reports = regexp.MustCompile(`(?m)^.*(?:AddressSanitizer|LeakSanitizer|ThreadSanitizer|MemorySanitizer|UndefinedBehaviorSanitizer|^\S+:\d+:\d+: runtime error: |WARNING: DATA RACE|Invalid (?:read|write) of size|SUMMARY: \w+Sanitizer).*$`)

// sanitizer returns the first line of a sanitizer report in the output of a server, or "".
func sanitizer(output string) string {
	if !strings.Contains(output, "anitizer") && !strings.Contains(output, "runtime error: ") && !strings.Contains(output, "DATA RACE") && !strings.Contains(output, "Invalid ") {
		return ""
	}
	return strings.TrimSpace(reports.FindString(output))
}

var numbers = regexp.MustCompile(`0x[0-9a-fA-F]+|[0-9]+`)

// normalize removes numbers, which differ from run to run.
func normalize(s string) string {
	if len(s) > 200 {
		s = s[:200]
	}
	return numbers.ReplaceAllString(s, "#")
}

var frames = regexp.MustCompile(`\((\+0x[0-9a-fA-F]+)\)`)

// trace returns the offsets in a stack trace, which are the same in each process, or "". It tells apart the crashes of a server
// that catches its signals.
func trace(words string) string {
	var b strings.Builder
	for _, m := range frames.FindAllStringSubmatch(words, 6) {
		b.WriteString(" " + m[1])
	}
	return b.String()
}

// lastOutput returns the end of the output of a server.
func lastOutput(out string) string {
	const most = 4000
	out = strings.TrimSpace(out)
	if len(out) > most {
		out = out[len(out)-most:]
	}
	return out
}

// reachable returns an error if the server at a fixed address no longer accepts connections.
func (f *Fuzzer) reachable(ctx context.Context, t target.Target) error {
	if ctx.Err() != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return target.Alive(ctx, t)
}

// unreachable returns the fault of a server at a fixed address that no longer accepts connections, or nil.
func (f *Fuzzer) unreachable(t target.Target) *Fault {
	err := f.reachable(context.Background(), t)
	if err == nil {
		return nil
	}
	var e *target.Error
	if errors.As(err, &e) && e.Err != nil {
		err = e.Err
	}
	oracle := HangAll
	if errors.Is(err, syscall.ECONNREFUSED) {
		oracle = Exit
	}
	return &Fault{Oracle: oracle, Law: "unreachable", Conn: -1, Step: -1, Text: fmt.Sprintf("the server at %s no longer accepts connections: %v", t.Addr(), err)}
}
