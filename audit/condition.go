package audit

import (
	"bytes"
	"slices"
	"time"

	"jobwire/codec"
)

// Condition is something legal that a network or a server may do to a client or a worker.
type Condition struct {
	Name  string
	About string

	// Fails says that a driver may answer a task by an error, if it does the same task well
	// afterwards.
	Fails bool

	payload func(d *dialect, i int) []byte // of the i-th job; nil is a short text
	points  func(messages int) int         // how many runs there are, each with its own run.point; nil is one
	reply   func(w *wire, f *codec.Frame) [][]byte
	request func(w *wire, f *codec.Frame) (pass bool)
	write   func(w *wire, messages [][]byte) error
	needs   func(d *dialect) bool              // whether the protocol has what it takes; nil is any
	hold    time.Duration                      // how long messages of the server wait for more
	holds   func(w *wire, f *codec.Frame) bool // those that wait, which others overtake; nil is all
	ready   func(w *wire) bool                 // whether what waits may go; nil is when it has waited
	names   bool                               // jobs have other names than the server gave them
	batch   bool                               // only what has several jobs done at once
	forgets bool                               // the server forgets its jobs

	// patience is how many times as long as otherwise a task may take; 0 is once. Drivers may be slow with
	// much data, and libraries wait before they connect again.
	patience int
}

// Conditions are all that there are. Adding one is a row here.
var Conditions = []Condition{
	{Name: "plain", About: "nothing is special"},
	{Name: "bytewise", About: "what the server says comes byte by byte", write: pieces(func(_ *wire, m []byte) int { return 1 }, 100*time.Microsecond)},
	{Name: "header-apart", About: "the header, or first line, of a message comes before its body", write: pieces((*wire).head, 20*time.Millisecond)},
	{Name: "halves", About: "every message comes in two pieces", write: pieces(func(_ *wire, m []byte) int { return (len(m) + 1) / 2 }, 10*time.Millisecond)},
	{Name: "together", About: "messages come several in one segment", hold: 30 * time.Millisecond},
	{Name: "straddling", About: "segments end in the middle of messages", hold: 20 * time.Millisecond, write: straddling},
	{Name: "delays", patience: 4, About: "every message is 150 ms late", write: late(150 * time.Millisecond)},
	{Name: "needless-noops", About: "a worker gets NOOP before and after every message, asleep or not", reply: (*wire).disturbed, needs: func(d *dialect) bool { return d.needless != "" }},
	{Name: "interleaved", About: "of jobs that are done at once, the last is told first", hold: 150 * time.Millisecond, holds: (*wire).endsJob, ready: (*wire).allEnded, write: reversed, batch: true, needs: func(d *dialect) bool { return d.ends != "" }},
	{Name: "long-handles", About: "handles of jobs have the greatest length; IDs have 20 digits", names: true, needs: func(d *dialect) bool { return d.name != "" }},
	{Name: "nul-bytes", About: "payloads hold all bytes, NULs and line ends first", payload: func(_ *dialect, i int) []byte {
		b := []byte{'a' + byte(i), 0, 0, '\r', '\n'}
		for c := range 256 {
			b = append(b, byte(c))
		}
		return b
	}},
	{Name: "empty", About: "payloads are empty", payload: func(*dialect, int) []byte { return []byte{} }},
	{Name: "large", patience: 24, About: "payloads have 16 MiB, or as much as the protocol's servers take", payload: func(d *dialect, i int) []byte {
		return append(bytes.Repeat([]byte{'a' + byte(i)}, d.largest-1), 'z')
	}},
	{Name: "error-answers", patience: 4, About: "one request is answered by an error", Fails: true, points: each(1), request: (*wire).refuses, needs: func(d *dialect) bool { return d.refusal != nil }},
	{Name: "closed-behind", patience: 4, About: "the connection is closed behind a message of the server", Fails: true, points: each(1), write: cut(func(m []byte) int { return len(m) })},
	{Name: "closed-within", patience: 4, About: "the connection is closed in the middle of a message", Fails: true, points: each(2), write: cut(func(m []byte) int { return (len(m) + 1) / 2 })},
	{Name: "closed-before", patience: 4, About: "the connection is closed in place of an answer", Fails: true, points: each(2), write: cut(func([]byte) int { return 0 })},
	{Name: "restarts", patience: 4, About: "the server ends and comes back, without its jobs", Fails: true, points: each(3), write: restarting, forgets: true},
}

// maxPoints bounds the runs of a condition.
const maxPoints = 30

// each has a condition happen at every n-th message.
func each(n int) func(int) int {
	return func(messages int) int { return min(maxPoints, max(1, messages/n)) }
}

// ConditionNamed returns the condition of that name, or nil.
func ConditionNamed(name string) *Condition {
	k := slices.IndexFunc(Conditions, func(c Condition) bool { return c.Name == name })
	if k < 0 {
		return nil
	}
	return &Conditions[k]
}

// The longest that is written in small pieces of a message, in bytes; what is between its head and
// its end goes in one.
const (
	piecesHead = 2 << 10
	piecesTail = 16
)

// pieces writes messages in pieces of a size, with pauses between them.
func pieces(size func(*wire, []byte) int, pause time.Duration) func(*wire, [][]byte) error {
	return func(w *wire, messages [][]byte) error {
		for _, m := range messages {
			n := max(1, size(w, m))
			for off := 0; off < len(m); {
				end := min(off+n, len(m))
				if n == 1 && off >= piecesHead {
					end = max(end, len(m)-piecesTail)
				}
				if err := w.send(m[off:end]); err != nil {
					return err
				}
				if off = end; off < len(m) {
					time.Sleep(pause)
				}
			}
		}
		return nil
	}
}

func late(by time.Duration) func(*wire, [][]byte) error {
	return func(w *wire, messages [][]byte) error {
		time.Sleep(by)
		return w.send(slices.Concat(messages...))
	}
}

func straddling(w *wire, messages [][]byte) error {
	all := slices.Concat(messages...)
	half := len(all) - (len(messages[len(messages)-1])+1)/2
	if err := w.send(all[:half]); err != nil {
		return err
	}
	time.Sleep(10 * time.Millisecond)
	return w.send(all[half:])
}

// longestHold is how long messages wait at most until they may go.
const longestHold = 2 * time.Second

// endsJob reports whether a message of the server ends a job.
func (w *wire) endsJob(f *codec.Frame) bool { return f.Type.Name == w.run.dialect.ends }

// allEnded reports whether no job is under way of those that the driver waits for. The caller holds
// the lock.
func (w *wire) allEnded() bool { return w.begun <= w.ended }

// reversed writes the last message first.
func reversed(w *wire, messages [][]byte) error {
	slices.Reverse(messages)
	return w.send(slices.Concat(messages...))
}

// cut closes the connection at the run's point, with so much of the message sent.
func cut(keep func([]byte) int) func(*wire, [][]byte) error {
	return func(w *wire, messages [][]byte) error {
		for _, m := range messages {
			if w.run.happens() {
				if n := keep(m); n > 0 {
					w.send(m[:n])
				}
				w.run.expectEnd()
				return errClosed
			}
			if err := w.send(m); err != nil {
				return err
			}
		}
		return nil
	}
}

func restarting(w *wire, messages [][]byte) error {
	for _, m := range messages {
		if err := w.send(m); err != nil {
			return err
		}
		if w.run.happens() {
			w.run.expectEnd()
			w.run.restart()
		}
	}
	return nil
}

// disturbed puts NOOPs around a message to a worker.
func (w *wire) disturbed(f *codec.Frame) [][]byte {
	if !w.worker.Load() || f.Type.Name == w.run.dialect.needless && w.run.dialect.refuses {
		return [][]byte{f.Raw}
	}
	noop := w.run.dialect.message([]string{w.run.dialect.needless}, f.Raw)
	return [][]byte{noop, f.Raw, noop}
}

// refuses answers the request at the run's point itself.
func (w *wire) refuses(f *codec.Frame) bool {
	if !w.run.dialect.answered(f.Type) || !w.run.happens() {
		return true
	}
	w.inject(w.run.dialect.message(w.run.dialect.refusal, f.Raw))
	return false
}

// head is the length of a message's head.
func (w *wire) head(m []byte) int {
	if n := w.run.dialect.head(m); n > 0 && n < len(m) {
		return n
	}
	return len(m)
}
