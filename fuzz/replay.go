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

// replayer runs single inputs, each on a new server.
type replayer struct {
	cfg      *Config
	ctx      context.Context
	t        target.Target
	x        *executor
	used     bool
	held     int                    // inputs that this server has run
	gone     bool                   // the server at a fixed address no longer accepts connections
	first    uint64                 // number of the first prefix at a fixed address
	died     func(*Fault, []*Input) // called for each crash; may be nil
	patience time.Duration
	runs     int
	leakRuns int // executions that show a leak; 0: unknown
}

// ready starts a new server if necessary.
func (l *replayer) ready() error {
	if l.ctx.Err() != nil || l.gone {
		return errOver
	}
	if l.t == nil {
		t, err := l.cfg.Start(l.ctx)
		if err != nil {
			return err
		}
		l.t, l.used, l.held = t, false, 0
		l.x = nil
	}
	if l.used && !l.cfg.Fixed {
		if l.x != nil {
			l.x.closeCanary()
		}
		if err := l.t.Restart(); err != nil {
			l.t.Stop()
			l.t = nil
			return l.ready()
		}
		l.x, l.used, l.held = nil, false, 0
	}
	if l.x == nil {
		to, err := resolve(l.t.Addr())
		if err != nil {
			return err
		}
		l.x = newExecutor(l.cfg.Protocol, to, &l.cfg.Known, l.patience)
		l.x.thorough = true
		l.x.over = func() bool { return l.ctx.Err() != nil }
	}
	l.x.patience = l.patience
	return nil
}

func (l *replayer) close() {
	if l.t != nil {
		if l.x != nil {
			l.x.closeCanary()
		}
		l.t.Stop()
		l.t = nil
	}
}

// execute runs an input on a new server. The fault is nil if no oracle reports one, or if no server could be started.
func (l *replayer) execute(c *Input) (*Record, *Fault) {
	if l.ready() != nil {
		return &Record{}, nil
	}
	l.used = true
	l.runs++
	l.held++
	l.x.ping() // the canary connects first
	r := l.x.execute(c, l.prefix())
	v := verdict(l.t, r.Fault)
	if l.ctx.Err() != nil {
		return &Record{}, nil // the run has ended
	}
	if l.cfg.Fixed && v != nil && v.grave() {
		if end := unreachable(l.t); end != nil {
			l.gone, v = true, end
		}
	}
	l.observe(v, []*Input{c})
	l.used = v != nil || !r.Clean || !l.x.d.reuse || changesQueues(c)
	return r, v
}

// prefix returns the prefix of an input on a server that cannot be restarted.
func (l *replayer) prefix() string {
	if !l.cfg.Fixed {
		return ""
	}
	if l.first == 0 {
		l.first = unusedNames()
	}
	return prefixOf('a', l.first+uint64(l.runs))
}

// observe reports a crash.
func (l *replayer) observe(v *Fault, inputs []*Input) {
	if l.died != nil && v != nil && (v.ends() || l.gone) {
		l.died(v, inputs)
	}
}

// unreachable returns the fault of a server at a fixed address that no longer accepts connections, or nil.
func unreachable(t target.Target) *Fault {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err := target.Alive(ctx, t)
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

// test returns a function that runs an input on a new server and reports the fault of the oracle.
func (l *replayer) test(oracle string) func(*Input) *Fault {
	switch oracle {
	case Processor:
		return l.spins
	case Memory:
		return l.grows
	case Descriptors:
		return l.keeps
	}
	return func(c *Input) *Fault {
		_, f := l.execute(c)
		if f != nil && l.held > 1 && !l.cfg.Fixed {
			l.used = true // an earlier input may be the cause
			_, f = l.execute(c)
		}
		if f == nil && oracle == Sanitizer {
			time.Sleep(10 * time.Millisecond) // its output may arrive late
			f = verdict(l.t, nil)
			l.used = true
		}
		return f
	}
}
