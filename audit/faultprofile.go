package audit

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"jobwire/codec"
)

// Profile is a fault profile: a legal behavior of a network or server that a client or worker must handle.
type Profile struct {
	Name  string
	About string

	// Fails is true if a driver may report that a task has failed, and must complete the task when it is repeated.
	Fails bool

	// Reported is true if the protocol does not require clients and workers to handle this. The result is reported, but is
	// not a failure.
	Reported bool

	// returns the payload of the i-th job; nil: every payload is a short text
	payload func(d *protocolFaults, i int) string
	points  func(*census) []point // where it takes effect, one run each; nil: everywhere, in one run
	reply   func(w *faultyConn, f *codec.Frame) [][]byte
	request func(w *faultyConn, f *codec.Frame) (pass bool)
	write   func(w *faultyConn, messages [][]byte) error
	// whether the protocol has what the profile needs; nil: any protocol has
	needs func(d *protocolFaults) bool
	// how long messages of the server are delayed to wait for more messages
	delay time.Duration
	// whether a message is delayed, so that others overtake it; nil: all are
	delays func(w *faultyConn, f *codec.Frame) bool
	ready  func(w *faultyConn) bool // whether delayed messages can be sent; nil: after the delay
	ids    uint64                   // if not 0, job IDs are changed for the peer, to at most this number
	batch  bool                     // only steps with several concurrent jobs
	text   bool                     // payloads are text, which drivers may have to decode

	Restarts bool // the server restarts and forgets its jobs

	// slower is the factor by which a task may take longer; 0: 1. Drivers may be slow with much data, and libraries wait
	// before they connect again.
	slower int
}

// Profiles contains all fault profiles.
var Profiles = []Profile{
	{Name: "plain", About: "no fault"},
	{Name: "bytewise", About: "messages of the server arrive one byte at a time",
		write: pieces(func(_ *faultyConn, m []byte) int { return 1 }, 100*time.Microsecond)},
	{Name: "header-apart", About: "the header (or first line) of each server message arrives 20 ms before the rest of the message", write: pieces((*faultyConn).head, 20*time.Millisecond)},
	{Name: "halves", About: "every server message arrives in two halves, 10 ms apart",
		write: pieces(func(_ *faultyConn, m []byte) int { return (len(m) + 1) / 2 }, 10*time.Millisecond)},
	{Name: "together", About: "several server messages arrive together, in one write", delay: 30 * time.Millisecond},
	{Name: "straddling", About: "writes end in the middle of server messages", delay: 20 * time.Millisecond,
		write: splitAcross},
	{Name: "pieces", About: "server messages arrive in pieces of 2 bytes; in further repetitions of 3, 4, ... 25 bytes",
		points: repetitions(24), write: pieces(func(w *faultyConn, m []byte) int { return w.run.point.message + 2 },
			time.Millisecond)},
	{Name: "delays", slower: 4, About: "every server message arrives 150 ms later",
		write: delayed(150 * time.Millisecond)},
	{Name: "needless-noops", About: "a worker receives a NOOP before and after every server message, even when it is not asleep", reply: (*faultyConn).addNoops, needs: func(d *protocolFaults) bool { return d.wake != nil }},
	{Name: "interleaved", About: "results of concurrent jobs arrive in reverse order", delay: 150 * time.Millisecond,
		delays: (*faultyConn).endsJob, ready: (*faultyConn).allEnded, write: reversed, batch: true,
		needs: func(d *protocolFaults) bool { return d.ends != nil }},
	{Name: "long-handles", About: "job handles have the maximum length; job IDs have 16 digits", ids: 1<<53 - 1,
		needs: func(d *protocolFaults) bool { return d.renames }},
	{Name: "huge-ids", About: "job IDs have 20 digits", Reported: true, ids: math.MaxUint64,
		needs: func(d *protocolFaults) bool { return d.numbers }},
	{Name: "nul-bytes", About: "payloads contain all byte values and begin with NUL and line ends",
		payload: func(_ *protocolFaults, i int) string {
			b := []byte{'a' + byte(i), 0, 0, '\r', '\n'}
			for c := range 256 {
				b = append(b, byte(c))
			}
			return string(b)
		}},
	{Name: "multibyte", text: true, About: "payloads are UTF-8 text with characters of two to four bytes",
		payload: func(_ *protocolFaults, i int) string {
			return "caf\u00e9 \u65e5\u672c\u8a9e \U0001f600" + string('a'+rune(i))
		}},
	{Name: "empty", About: "payloads are empty", payload: func(*protocolFaults, int) string { return "" }},
	{Name: "large", slower: 24, About: "payloads are 16 MiB, or the largest size that servers of the protocol accept",
		payload: func(d *protocolFaults, i int) string {
			size := cmp.Or(d.protocol.MaxData, largePayload)
			var b strings.Builder
			b.Grow(size)
			for piece := strings.Repeat(string('a'+rune(i)), readSize); b.Len() < size-1; {
				b.WriteString(piece[:min(len(piece), size-1-b.Len())])
			}
			b.WriteByte('z')
			return b.String()
		}},
	{Name: "late-progress", About: "the client receives a progress report about a job after the end of the job",
		Reported: true, reply: (*faultyConn).lateProgress,
		needs: func(d *protocolFaults) bool { return d.progress != nil && d.ends != nil }},
	{Name: "unknown-handles", About: "the client receives a progress report about a job that it has not submitted before it receives the end of its job", Reported: true, reply: (*faultyConn).unknownProgress, needs: func(d *protocolFaults) bool { return d.progress != nil && d.ends != nil }},
	{Name: "unrequested-jobs", About: "a worker that asks for a job receives two, if the server has two", Reported: true,
		request: (*faultyConn).requestTwice, reply: (*faultyConn).withoutSecondRefusal,
		needs: func(d *protocolFaults) bool { return d.wake != nil && !d.wakeMeansNoJob }},
	{Name: "error-answers", slower: 4, About: "the server replies to one request with an error", Fails: true,
		points: eachAndTypes(codec.Peer, 1), request: (*faultyConn).rejectRequest,
		needs: func(d *protocolFaults) bool { return d.refusal != nil }},
	{Name: "closed-after", slower: 4, About: "the server closes the connection after a message", Fails: true,
		points: eachAndTypes(codec.Server, 1), write: cut(func(m []byte) int { return len(m) })},
	{Name: "closed-within", slower: 4, About: "the server closes the connection in the middle of a message", Fails: true,
		points: eachAndTypes(codec.Server, 2), write: cut(func(m []byte) int { return (len(m) + 1) / 2 })},
	{Name: "closed-before", slower: 4, About: "the server closes the connection instead of replying", Fails: true,
		points: eachAndTypes(codec.Server, 2), write: cut(func([]byte) int { return 0 })},
	{Name: "restarts", slower: 4, About: "the server restarts and loses all jobs", Fails: true,
		points: each(codec.Server, 3), write: restart, Restarts: true},
}

// changesMessages reports whether the profile changes only some messages, possibly none that a driver receives.
func (c *Profile) changesMessages() bool {
	return c.reply != nil || c.request != nil || c.ids > 0 || c.delay > 0
}

// large reports whether a run needs much memory.
func (c *Profile) large() bool { return c.Name == "large" }

// unchanged reports whether the profile passes on all bytes as they arrive.
func (c *Profile) unchanged() bool { return c.points == nil && c.write == nil && !c.changesMessages() }

// Note returns what a failure under the profile means. It begins with a semicolon, or is "".
func (c *Profile) Note() string {
	switch {
	case c.Reported:
		return "; the protocol does not require a library to handle this, so a failure here is only reported"
	case c.Fails:
		return "; the library may fail a task here, if it completes later tasks"
	}
	return ""
}

// largePayload is the size of a large payload in bytes if the protocol does not limit it.
const largePayload = 16 << 20

// maxPoints limits the number of runs of a profile.
const maxPoints = 30

// point is where a profile takes effect in a run.
type point struct {
	message int         // the number of the message, from 0
	of      *codec.Type // the type of the counted messages; nil: all types
}

// census contains the messages and failures of a run without faults.
type census struct {
	seen   []occurrence   // in the order of arrival
	failed map[*Step]bool // steps that the driver has not completed
}

// occurrence is a message that a profile may affect: a message of the server, or a request that the profile may refuse.
type occurrence struct {
	from codec.Side
	typ  *codec.Type
	more bool // in a step with the attribute Extra
}

// each makes a profile take effect at every n-th message of a side.
func each(from codec.Side, n int) func(*census) []point {
	return func(c *census) []point {
		all, messages := []point{{}}, 0
		for _, s := range c.seen {
			if s.from != from || s.more {
				continue
			}
			if messages > 0 && messages%n == 0 && len(all) < maxPoints {
				all = append(all, point{message: messages})
			}
			messages++
		}
		return all
	}
}

// eachAndTypes makes a profile take effect at every n-th message of a side, and at the first message of each type that
// occurs only in Extra steps.
func eachAndTypes(from codec.Side, n int) func(*census) []point {
	return func(c *census) []point {
		all, known := each(from, n)(c), map[*codec.Type]bool{nil: true}
		for _, more := range []bool{false, true} {
			for _, s := range c.seen {
				if s.from != from || s.more != more || known[s.typ] {
					continue
				}
				if known[s.typ] = true; more {
					all = append(all, point{of: s.typ})
				}
			}
		}
		return all
	}
}

// repetitions makes a profile take effect in n runs, which differ in point.message.
func repetitions(n int) func(*census) []point {
	return func(*census) []point {
		all := make([]point, n)
		for i := range all {
			all[i].message = i
		}
		return all
	}
}

// ProfileNamed returns the profile with the name, or nil.
func ProfileNamed(name string) *Profile {
	k := slices.IndexFunc(Profiles, func(c Profile) bool { return c.Name == name })
	if k < 0 {
		return nil
	}
	return &Profiles[k]
}

// The beginning of a server message is written in at most piecesHead small pieces, and the last piecesTail bytes also
// in small pieces. The rest is written in one piece, so that the duration does not depend on the length.
const (
	piecesHead = 64
	piecesTail = 16
)

// pieces writes messages in pieces of the given size, with pauses between them.
func pieces(size func(*faultyConn, []byte) int, pause time.Duration) func(*faultyConn, [][]byte) error {
	return func(w *faultyConn, messages [][]byte) error {
		for _, m := range messages {
			n := max(1, size(w, m))
			for off, sent := 0, 0; off < len(m); sent++ {
				end := min(off+n, len(m))
				if sent == piecesHead {
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

func delayed(by time.Duration) func(*faultyConn, [][]byte) error {
	return func(w *faultyConn, messages [][]byte) error {
		time.Sleep(by)
		return w.send(slices.Concat(messages...))
	}
}

func splitAcross(w *faultyConn, messages [][]byte) error {
	all := slices.Concat(messages...)
	half := len(all) - (len(messages[len(messages)-1])+1)/2
	if err := w.send(all[:half]); err != nil {
		return err
	}
	time.Sleep(10 * time.Millisecond)
	return w.send(all[half:])
}

// longestDelay is the maximum delay of a message.
const longestDelay = 2 * time.Second

// endsJob reports whether a message of the server ends a job.
func (w *faultyConn) endsJob(f *codec.Frame) bool { return f.Type == w.run.protoFaults.ends }

// allEnded reports whether all jobs that the driver waits for have ended. It is called with w.mu
// locked.
func (w *faultyConn) allEnded() bool { return w.begun <= w.ended }

// reversed writes the messages in reverse order.
func reversed(w *faultyConn, messages [][]byte) error {
	slices.Reverse(messages)
	return w.send(slices.Concat(messages...))
}

// cut closes the connection at the point of the run, after a part of the message.
func cut(keep func([]byte) int) func(*faultyConn, [][]byte) error {
	return func(w *faultyConn, messages [][]byte) error {
		for _, m := range messages {
			if w.run.atPoint(w.writing) {
				n := keep(m)
				if n > 0 {
					w.send(m[:n])
				}
				w.record("the server closed the connection after %d of %d bytes of %s", n, len(m), typeName(w.writing))
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

func restart(w *faultyConn, messages [][]byte) error {
	for _, m := range messages {
		if err := w.send(m); err != nil {
			return err
		}
		if w.run.atPoint(w.writing) {
			w.record("the server restarted after %s", typeName(w.writing))
			w.run.expectEnd()
			w.run.restart()
		}
	}
	return nil
}

// noopPause is a pause before needless NOOPs. Without it, a worker that requests a job after each of them would
// keep the processor busy, and in virtual time no time would pass.
const noopPause = time.Millisecond

// addNoops adds NOOPs before and after a message to a worker.
func (w *faultyConn) addNoops(f *codec.Frame) [][]byte {
	d := w.run.protoFaults
	if !w.worker.Load() || f.Type == d.wake && d.wakeMeansNoJob {
		return [][]byte{f.Raw}
	}
	time.Sleep(noopPause)
	noop := d.encode(codec.Server, &codec.Message{Type: d.wake}, f)
	return [][]byte{noop, f.Raw, noop}
}

// lateProgress adds a progress report after the end of its job.
func (w *faultyConn) lateProgress(f *codec.Frame) [][]byte {
	if f.Type != w.run.protoFaults.ends {
		return [][]byte{f.Raw}
	}
	return [][]byte{f.Raw, w.run.protoFaults.report(f.Get(codec.JobID), f)}
}

// unknownProgress adds a progress report about an unknown job before the end of a job.
func (w *faultyConn) unknownProgress(f *codec.Frame) [][]byte {
	if f.Type != w.run.protoFaults.ends {
		return [][]byte{f.Raw}
	}
	return [][]byte{w.run.protoFaults.report([]byte("H:unknown:1"), f), f.Raw}
}

// requestTwice sends a request for a job to the server twice.
func (w *faultyConn) requestTwice(f *codec.Frame) bool {
	if f.Type.Does == codec.Ask {
		w.mu.Lock()
		w.second = append(w.second, false, true)
		w.mu.Unlock()
		w.far.Write(f.Raw)
	}
	return true
}

// withoutSecondRefusal removes the reply to the second of two requests for a job if the server has no second job.
func (w *faultyConn) withoutSecondRefusal(f *codec.Frame) [][]byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	if does := f.Type.Does; len(w.second) > 0 && (does == codec.Assign || does == codec.NoJob) {
		second := w.second[0]
		w.second = w.second[1:]
		if second && does == codec.NoJob {
			return nil
		}
		if second {
			w.run.effects.Add(1)
		}
	}
	return [][]byte{f.Raw}
}

// rejectRequest replies with an error to the request at the point of the run, instead of forwarding it.
func (w *faultyConn) rejectRequest(f *codec.Frame) bool {
	d := w.run.protoFaults
	if !d.mayRefuse(f.Type) || !w.run.atPoint(f.Type) {
		return true
	}
	w.record("the server replied to %s with %s", f.Type.Name, d.refusal.Type.Name)
	w.inject(d.encode(codec.Server, d.refusal, f))
	return false
}

// record records the fault of the run.
func (w *faultyConn) record(format string, args ...any) {
	at := time.Since(w.run.proxy.Auditor.begun).Seconds()
	text := fmt.Sprintf("%.3f s: %s %d: ", at, w.run.role, w.conn.id) + fmt.Sprintf(format, args...)
	w.run.fault.Store(&text)
}

func typeName(t *codec.Type) string {
	if t == nil {
		return "a reply"
	}
	return t.Name
}

// head returns the length of the first part of a message: its header, or its first line.
func (w *faultyConn) head(m []byte) int {
	if n := w.run.protoFaults.head(m); n > 0 && n < len(m) {
		return n
	}
	return len(m)
}
