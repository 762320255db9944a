package exec

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"jobwire/internal/crash"
	"jobwire/internal/target"
)

// Verdict returns the fault of an execution, or nil. f is the fault that the executor has reported, or nil. A crash of
// the server and a sanitizer report in its output replace f.
func Verdict(t target.Target, f *Fault) *Fault {
	if f != nil && (f.Oracle == HangAll || f.Oracle == Disturbed || f.Oracle == HangConn) || Ended(t) {
		if err := target.Died(t); err != nil {
			return Death(t, err).at(f)
		}
	}
	if v := reported(wholeOutput(t)); v != nil && (f == nil || v.Oracle != Undefined) {
		return v.at(f)
	}
	return f
}

// Undefined is the oracle for a report of UndefinedBehaviorSanitizer after which the server goes on.
const Undefined = "undefined"

// maxReport is the time within which a sanitizer writes the rest of a report that it has begun. On a busy machine,
// reading the symbols of the program takes seconds.
const maxReport = 30 * time.Second

// wholeOutput returns the output of a server. If a sanitizer has begun to report an error, wholeOutput waits for the
// summary at the end of the report, or for the end of the process.
func wholeOutput(t target.Target) string {
	for end := time.Now().Add(maxReport); ; time.Sleep(10 * time.Millisecond) {
		if out := t.Output(); !crash.Unfinished(out) || Ended(t) || time.Now().After(end) {
			return t.Output()
		}
	}
}

// reported returns the fault of a server whose output contains a report of a sanitizer, of Valgrind or of the race
// detector, or nil. The server may still be running. Reports of undefined behavior do not replace other reports.
func reported(output string) *Fault {
	if !strings.Contains(output, "anitizer") && !strings.Contains(output, "runtime error: ") &&
		!strings.Contains(output, "DATA RACE") && !strings.Contains(output, "Invalid ") {
		return nil
	}
	var undefined *Fault
	for _, r := range crash.ParseAll(output) {
		switch r.Tool {
		case "Go":
			if r.Kind != "data-race" {
				continue
			}
		case "Valgrind":
		case "UndefinedBehaviorSanitizer":
			if undefined == nil {
				undefined = crashed(Undefined, r, output)
			}
			continue
		default:
			if !strings.HasSuffix(r.Tool, "Sanitizer") {
				continue
			}
		}
		return crashed(Sanitizer, r, output)
	}
	return undefined
}

// crashed returns the fault that a report in the output of the server describes.
func crashed(oracle string, r crash.Report, output string) *Fault {
	if r.Kind == "leak" {
		oracle = LeakReport
	}
	return &Fault{Oracle: oracle, Law: r.Bucket(), Text: r.Text, Conn: -1, Step: -1, Output: lastOutput(output),
		Stack: r.Frames, Signal: r.Signal}
}

// at sets the connection and step of f to those of g, if g is not nil, and returns f.
func (f *Fault) at(g *Fault) *Fault {
	if g != nil {
		f.Conn, f.Step = g.Conn, g.Step
	}
	return f
}

// Death returns the fault of a server whose process has ended with err.
func Death(t target.Target, err error) *Fault {
	exit, output := err.Error(), t.Output()
	var e *target.Error
	if errors.As(err, &e) {
		if exit, output = e.Exit, e.Output; exit == "" {
			exit = e.Reason
		}
	}
	r := crash.Ended(exit, output)
	oracle := Exit
	switch {
	case strings.HasSuffix(r.Tool, "Sanitizer") || r.Tool == "Valgrind":
		oracle = Sanitizer
	case r.Signal != "":
		oracle = Signal
	}
	return crashed(oracle, r, output)
}

// lastOutput returns the last bytes of the output of a server: from the beginning of the last crash report on, at most
// 16 KiB, or 4000 bytes if that is more.
func lastOutput(out string) string {
	const most, mostOfReport = 4000, 16 << 10
	out = strings.TrimSpace(out)
	from := max(0, len(out)-most)
	if at := crash.Begin([]byte(out), mostOfReport); at >= 0 && at < from {
		from = at
	}
	return out[from:min(len(out), from+mostOfReport)]
}

// Reachable returns an error if the server at a fixed address does not accept a connection within a second.
func Reachable(ctx context.Context, t target.Target) error {
	if ctx.Err() != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return target.Alive(ctx, t)
}

// Unreachable returns a fault if the server at a fixed address no longer accepts connections, and otherwise nil.
func Unreachable(t target.Target) *Fault {
	err := Reachable(context.Background(), t)
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
	return &Fault{Oracle: oracle, Law: "unreachable", Conn: -1, Step: -1,
		Text: fmt.Sprintf("the server at %s no longer accepts connections: %v", t.Addr(), err)}
}

// CPULoop returns the fault of a server that is busy although no request waits for it.
func CPULoop() *Fault {
	return &Fault{Oracle: Processor, Law: "busy while idle", Conn: -1, Step: -1,
		Text: "the server keeps a CPU core busy, although no request waits"}
}

// MemoryGrows returns the fault of a server whose memory grows while messages are repeated.
func MemoryGrows() *Fault {
	return &Fault{Oracle: Memory, Law: "memory grows", Conn: -1, Step: -1,
		Text: "the server uses more memory after repetitions of the messages"}
}
