package fuzz

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"jobwire/internal/target"
)

// lab performs conversations alone, each on a server that has just been started.
type lab struct {
	cfg      *Config
	ctx      context.Context
	t        target.Target
	x        *performer
	used     bool
	held     int // conversations that this server has held
	patience time.Duration
	runs     int
	leakRuns int // how often it takes to see a leak; 0 is not known
}

// ready makes a fresh server, and somebody to talk to it.
func (l *lab) ready() error {
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
			l.x.dismiss()
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
		l.x = newPerformer(l.cfg.Protocol, to, &l.cfg.Known, l.patience)
		l.x.thorough = true
	}
	l.x.patience = l.patience
	return nil
}

func (l *lab) close() {
	if l.t != nil {
		if l.x != nil {
			l.x.dismiss()
		}
		l.t.Stop()
		l.t = nil
	}
}

// perform holds a conversation with a fresh server. The fault is nil if nobody objects, or if
// no server could be started.
func (l *lab) perform(c *Conv) (*Record, *Fault) {
	if l.ready() != nil {
		return &Record{}, nil
	}
	l.used = true
	l.runs++
	l.held++
	l.x.ask() // the bystander comes first
	r := l.x.perform(c, l.prefix())
	v := verdict(l.t, r.Fault)
	l.used = v != nil || !r.Clean || !l.x.d.reuse || sticky(l.x.d, c)
	return r, v
}

// prefix tells apart the conversations with a server that cannot be started anew.
func (l *lab) prefix() string {
	if !l.cfg.Fixed {
		return ""
	}
	return fmt.Sprintf("y%0*x.", len(place)-2, (time.Now().Unix()<<8+int64(l.runs))&0xfffff)
}

// verdict returns the fault of a performance in the light of what became of the process.
func verdict(t target.Target, f *Fault) *Fault {
	if f != nil && (f.Oracle == HangAll || f.Oracle == Disturbed || f.Oracle == HangConn) || f == nil && ended(t) {
		if err := target.Died(t); err != nil {
			return death(t, err, f)
		}
	}
	if report := sanitizer(t.Output()); report != "" {
		s := &Fault{Oracle: Sanitizer, Law: blur(report), Text: report, Conn: -1, Step: -1, Words: lastWords(t.Output())}
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

// death is the fault of a server that has ended.
func death(t target.Target, err error, f *Fault) *Fault {
	d := &Fault{Oracle: Exit, Conn: -1, Step: -1, Text: err.Error(), Words: lastWords(t.Output())}
	var e *target.Error
	if errors.As(err, &e) {
		d.Text = e.Exit
		d.Words = lastWords(e.Output)
	}
	if strings.HasPrefix(d.Text, "signal") {
		d.Oracle = Signal
	}
	d.Law = blur(d.Text) + trace(d.Words)
	if f != nil {
		d.Conn, d.Step = f.Conn, f.Step
	}
	if report := sanitizer(d.Words); report != "" {
		d.Oracle, d.Law, d.Text = Sanitizer, blur(report), report
	}
	return d
}

var reports = regexp.MustCompile(`(?m)^.*(?:AddressSanitizer|LeakSanitizer|ThreadSanitizer|MemorySanitizer|UndefinedBehaviorSanitizer|^\S+:\d+:\d+: runtime error: |WARNING: DATA RACE|Invalid (?:read|write) of size|SUMMARY: \w+Sanitizer).*$`)

// sanitizer returns the first line of a report in a server's output, or "".
func sanitizer(output string) string {
	if !strings.Contains(output, "anitizer") && !strings.Contains(output, "runtime error: ") && !strings.Contains(output, "DATA RACE") && !strings.Contains(output, "Invalid ") {
		return ""
	}
	return strings.TrimSpace(reports.FindString(output))
}

var numbers = regexp.MustCompile(`0x[0-9a-fA-F]+|[0-9]+`)

// blur takes out of a text what differs from time to time.
func blur(s string) string {
	if len(s) > 200 {
		s = s[:200]
	}
	return numbers.ReplaceAllString(s, "#")
}

var frames = regexp.MustCompile(`\((\+0x[0-9a-fA-F]+)\)`)

// trace returns where in its code a server says that it has died, in terms that are the same in
// each of its processes, or "". Without it every crash of a server that catches its signals is one.
func trace(words string) string {
	var b strings.Builder
	for _, m := range frames.FindAllStringSubmatch(words, 6) {
		b.WriteString(" " + m[1])
	}
	return b.String()
}

// lastWords returns the end of what a server printed.
func lastWords(out string) string {
	const most = 4000
	out = strings.TrimSpace(out)
	if len(out) > most {
		out = out[len(out)-most:]
	}
	return out
}

// test returns what is to be asked of a conversation that is suspected of a fault: does it show
// again, on a fresh server?
func (l *lab) test(oracle string) func(*Conv) *Fault {
	switch oracle {
	case Processor:
		return l.spins
	case Memory:
		return l.grows
	case Descriptors:
		return l.keeps
	}
	return func(c *Conv) *Fault {
		_, f := l.perform(c)
		if f != nil && l.held > 1 && !l.cfg.Fixed {
			l.used = true // it may be of one that was held before
			_, f = l.perform(c)
		}
		if f == nil && oracle == Sanitizer {
			time.Sleep(10 * time.Millisecond) // what it prints takes another way
			f = verdict(l.t, nil)
			l.used = true
		}
		return f
	}
}
