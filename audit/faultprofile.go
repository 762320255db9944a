package audit

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"jobwire/codec"
)

// FaultProfile is a fault profile: a legal behavior of a network or server that a client or worker must handle.
type FaultProfile struct {
	Name  string
	About string

	// Fails is true if a driver may report that a task has failed, and must complete the task when it is repeated.
	Fails bool

	// Reported is true if the protocol does not require clients and workers to handle this. The result is reported, but is
	// not a failure.
	Reported bool

	// returns the payload of the i-th job; nil: every payload is a short text
	payload func(pf *protocolFaults, i int) string
	points  func(*census) []point // where it takes effect, one run each; nil: everywhere, in one run
	// returns the messages that the driver receives instead of f; asked is the type of the request that f answers, or nil
	reply   func(fc *faultyConn, f *codec.Frame, asked *codec.Type) [][]byte
	request func(fc *faultyConn, f *codec.Frame) (pass bool)
	write   func(fc *faultyConn, messages [][]byte) error
	// whether the protocol has what the profile needs; nil: any protocol has
	needs func(pf *protocolFaults) bool
	// how long messages of the server are delayed to wait for more messages
	delay time.Duration
	// whether a message is delayed, so that others overtake it; nil: all are
	delays     func(fc *faultyConn, f *codec.Frame) bool
	ready      func(fc *faultyConn) bool // whether delayed messages can be sent; nil: after the delay
	ids        uint64                    // if not 0, job IDs are changed for the peer, to at most this number
	batch      bool                      // only steps with several concurrent jobs
	text       bool                      // payloads are text, which drivers may have to decode
	misleading bool                      // the reply at the point of the run does not say what has happened to the job
	cuts       bool                      // the server ends connections in the middle of messages

	Restarts bool // the server restarts and forgets its jobs

	// slower is the factor by which a task may take longer; 0: 1. Drivers may be slow with much data, and libraries wait
	// before they connect again.
	slower int
}

// FaultProfiles contains all fault profiles.
var FaultProfiles = []FaultProfile{
	{Name: "plain", About: "no fault"},
	{Name: "bytewise", About: "messages of the server arrive one byte at a time",
		write: pieces(func(_ *faultyConn, m []byte) int { return 1 }, 100*time.Microsecond)},
	{Name: "header-apart",
		About: "the header (or first line) of each server message arrives 20 ms before the rest of the message",
		write: pieces((*faultyConn).head, 20*time.Millisecond)},
	{Name: "halves", About: "every server message arrives in two halves, 10 ms apart",
		write: pieces(func(_ *faultyConn, m []byte) int { return (len(m) + 1) / 2 }, 10*time.Millisecond)},
	{Name: "together", About: "several server messages arrive together, in one write", delay: 30 * time.Millisecond},
	{Name: "straddling", About: "writes end in the middle of server messages", delay: 20 * time.Millisecond,
		write: splitAcross},
	{Name: "pieces", About: "server messages arrive in pieces of 2 bytes; in further repetitions of 3, 4, ... 25 bytes",
		points: repetitions(24), write: pieces(func(fc *faultyConn, m []byte) int { return fc.run.point.message + 2 },
			time.Millisecond)},
	{Name: "delays", slower: 4, About: "every server message arrives 150 ms later",
		write: delayed(150 * time.Millisecond)},
	{Name: "late-replies", slower: 4, About: "one server message arrives 1.5 s later",
		points: eachAndTypes(codec.Server, 3),
		write:  late(1500 * time.Millisecond)},
	{Name: "needless-noops",
		About: "a worker receives a NOOP before and after every server message, even when it is not asleep",
		reply: (*faultyConn).addNoops, needs: func(pf *protocolFaults) bool { return pf.wake != nil }},
	{Name: "interleaved", About: "results of concurrent jobs arrive in reverse order", delay: 150 * time.Millisecond,
		delays: (*faultyConn).endsJob, ready: (*faultyConn).allEnded, write: reversed, batch: true,
		needs: func(pf *protocolFaults) bool { return pf.ends != nil }},
	{Name: "long-handles", About: "job handles have the maximum length; job IDs have 16 digits", ids: 1<<53 - 1,
		needs: func(pf *protocolFaults) bool { return pf.renames }},
	{Name: "huge-ids", About: "job IDs have 20 digits", Reported: true, ids: math.MaxUint64,
		needs: func(pf *protocolFaults) bool { return pf.numbers }},
	{Name: "nul-bytes", About: "payloads contain all byte values and begin with NUL and line ends",
		payload: func(_ *protocolFaults, i int) string {
			b := []byte{0, 0, '\r', '\n'}
			for c := range 256 {
				b = append(b, byte(c))
			}
			return string(append(b, 'a'+byte(i)))
		}},
	{Name: "multibyte", text: true, About: "payloads are UTF-8 text with characters of two to four bytes",
		payload: func(_ *protocolFaults, i int) string {
			return "caf\u00e9 \u65e5\u672c\u8a9e \U0001f600" + string('a'+rune(i))
		}},
	{Name: "empty", About: "payloads are empty", payload: func(*protocolFaults, int) string { return "" }},
	{Name: "large", slower: 24,
		About: "payloads are 16 MiB, or half of the largest size that servers of the protocol accept",
		payload: func(pf *protocolFaults, i int) string {
			size := cmp.Or(pf.protocol.MaxData/2, largePayload)
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
		needs: func(pf *protocolFaults) bool { return pf.progress != nil && pf.ends != nil }},
	{Name: "unknown-handles", About: "the client receives a progress report about a job that it has not submitted " +
		"before it receives the end of its job", Reported: true, reply: (*faultyConn).unknownProgress,
		needs: func(pf *protocolFaults) bool { return pf.progress != nil && pf.ends != nil }},
	{Name: "unrequested-jobs", About: "a worker that asks for a job receives two, if the server has two", Reported: true,
		request: (*faultyConn).requestTwice, reply: (*faultyConn).withoutSecondRefusal,
		needs: func(pf *protocolFaults) bool { return pf.wake != nil && !pf.wakeMeansNoJob }},
	{Name: "rare-replies", slower: 4, Fails: true, misleading: true, About: "one reply is a rarer one that the protocol " +
		"allows, such as that the server has put a new job aside", points: withRarerReplies, reply: (*faultyConn).rarerReply,
		needs: func(pf *protocolFaults) bool { return pf.hasRarer }},
	{Name: "error-answers", slower: 4, About: "the server replies to one request with an error", Fails: true,
		points: eachAndTypes(codec.Peer, 1), request: (*faultyConn).rejectRequest,
		needs: func(pf *protocolFaults) bool { return pf.refusal != nil }},
	{Name: "closed-after", slower: 4, About: "the server closes the connection after a message", Fails: true,
		points: eachAndTypes(codec.Server, 1), write: cut(func(_ *run, m []byte) int { return len(m) })},
	{Name: "closed-within", slower: 4, cuts: true, Fails: true, points: eachAndTypes(codec.Server, 1),
		write: cut((*run).within),
		About: "the server closes the connection in the middle of a message, or after its first or before its last byte"},
	{Name: "closed-before", slower: 4, About: "the server closes the connection instead of replying", Fails: true,
		points: eachAndTypes(codec.Server, 2), write: cut(func(*run, []byte) int { return 0 })},
	{Name: "unreachable", slower: 4, About: "the server closes the connection, and resets all new ones for 0.3 s",
		Fails:  true,
		points: each(codec.Server, 3), write: outage},
	{Name: "restarts", slower: 4, About: "the server restarts and loses all jobs", Fails: true,
		points: each(codec.Server, 3), write: restart, Restarts: true},
}

// changesMessages reports whether the profile changes only some messages, possibly none that a driver receives.
func (p *FaultProfile) changesMessages() bool {
	return p.reply != nil || p.request != nil || p.ids > 0 || p.delay > 0
}

// large reports whether a run needs much memory.
func (p *FaultProfile) large() bool { return p.Name == "large" }

// unchanged reports whether the profile passes on all bytes as they arrive.
func (p *FaultProfile) unchanged() bool {
	return p.points == nil && p.write == nil && !p.changesMessages()
}

// Note returns what a failure under the profile means, as a suffix of the failure's message, or "".
func (p *FaultProfile) Note() string {
	switch {
	case p.Reported:
		return "; the protocol does not require a library to handle this, so a failure here is only reported"
	case p.Fails:
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
	mu     sync.Mutex     // guards seen and more
	seen   []occurrence   // in the order of arrival
	more   bool           // the current step has the attribute Extra
	failed map[*Step]bool // steps that the driver has not completed
}

// begin records that a step begins.
func (c *census) begin(s *Step) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.more = s.Extra
}

// observe records a message. rarer is true if a reply of another type could stand for it.
func (c *census) observe(from codec.Side, t *codec.Type, rarer bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = append(c.seen, occurrence{from, t, c.more, rarer})
}

// occurrence is a message that a profile may affect: a message of the server, or a request that the profile may refuse.
type occurrence struct {
	from codec.Side
	typ  *codec.Type
	more bool // in a step with the attribute Extra

	rarer bool // a reply of another type could stand for it
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

// withRarerReplies makes a profile take effect at the first reply of each type for which a reply of another type could
// stand.
func withRarerReplies(c *census) []point {
	all := []point{}
	for _, s := range c.seen {
		if p := (point{of: s.typ}); s.rarer && !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	if len(all) == 0 {
		return []point{{}}
	}
	return all
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
func FaultProfileNamed(name string) *FaultProfile {
	k := slices.IndexFunc(FaultProfiles, func(p FaultProfile) bool { return p.Name == name })
	if k < 0 {
		return nil
	}
	return &FaultProfiles[k]
}

// The beginning of a server message is written in at most piecesHead small pieces, and the last piecesTail bytes also
// in small pieces. The rest is written in one piece, so that the duration does not depend on the length.
const (
	piecesHead = 64
	piecesTail = 16
)

// pieces writes messages in pieces of the given size, with pauses between them.
func pieces(size func(*faultyConn, []byte) int, pause time.Duration) func(*faultyConn, [][]byte) error {
	return func(fc *faultyConn, messages [][]byte) error {
		for _, m := range messages {
			n := max(1, size(fc, m))
			for off, sent := 0, 0; off < len(m); sent++ {
				end := min(off+n, len(m))
				if sent == piecesHead {
					end = max(end, len(m)-piecesTail)
				}
				if err := fc.send(m[off:end]); err != nil {
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

// delayed returns a write function that writes messages of the server after a delay.
func delayed(by time.Duration) func(*faultyConn, [][]byte) error {
	return func(fc *faultyConn, messages [][]byte) error {
		time.Sleep(by)
		return fc.send(slices.Concat(messages...))
	}
}

// late returns a write function that writes the message at the point of the run after a delay.
func late(by time.Duration) func(*faultyConn, [][]byte) error {
	return func(fc *faultyConn, messages [][]byte) error {
		for _, m := range messages {
			if fc.run.atPoint(fc.writing) {
				fc.record("%s arrived %v later", typeName(fc.writing), by)
				time.Sleep(by)
			}
			if err := fc.send(m); err != nil {
				return err
			}
		}
		return nil
	}
}

// splitAcross writes messages of the server in two parts, 10 ms apart. The first part ends in the middle of the last
// message, so a read of the driver can return some complete messages and the beginning of another.
func splitAcross(fc *faultyConn, messages [][]byte) error {
	all := slices.Concat(messages...)
	half := len(all) - (len(messages[len(messages)-1])+1)/2
	if err := fc.send(all[:half]); err != nil {
		return err
	}
	time.Sleep(10 * time.Millisecond)
	return fc.send(all[half:])
}

// longestDelay is the maximum delay of a message.
const longestDelay = 2 * time.Second

// endsJob reports whether a message of the server ends a job.
func (fc *faultyConn) endsJob(f *codec.Frame) bool { return f.Type == fc.run.protoFaults.ends }

// allEnded reports whether all jobs that the driver waits for have ended. It is called with fc.mu
// locked.
func (fc *faultyConn) allEnded() bool { return fc.begun <= fc.ended }

// reversed writes the messages in reverse order.
func reversed(fc *faultyConn, messages [][]byte) error {
	slices.Reverse(messages)
	return fc.send(slices.Concat(messages...))
}

// cut closes the connection at the point of the run, after a part of the message.
func cut(keep func(*run, []byte) int) func(*faultyConn, [][]byte) error {
	return func(fc *faultyConn, messages [][]byte) error {
		for _, m := range messages {
			if fc.run.atPoint(fc.writing) {
				n := keep(fc.run, m)
				if n > 0 {
					fc.send(m[:n])
				}
				fc.record("the server closed the connection after %d of %d bytes of %s", n, len(m), typeName(fc.writing))
				fc.run.ended.Store(true)
				return errClosed
			}
			if err := fc.send(m); err != nil {
				return err
			}
		}
		return nil
	}
}

// within returns how much of a message is sent before the connection ends: one half, the first byte, or all but the
// last one, by turns.
func (r *run) within(m []byte) int {
	return []int{(len(m) + 1) / 2, 1, max(1, len(m)-1)}[r.point.message%3]
}

// outageTime is how long the server cannot be reached. It is less than the time in which a task is repeated.
const outageTime = 300 * time.Millisecond

// errOutage is why the server cannot be reached.
var errOutage = errors.New("the fault profile resets connections")

// outage closes the connection after the message at the point of the run, and makes the server unreachable.
func outage(fc *faultyConn, messages [][]byte) error {
	err := cut(func(_ *run, m []byte) int { return len(m) })(fc, messages)
	if errors.Is(err, errClosed) {
		fc.run.down.Store(time.Now().Add(outageTime).UnixNano())
	}
	return err
}

// restart writes messages of the server, and restarts the server after the message at the point of the run.
func restart(fc *faultyConn, messages [][]byte) error {
	for _, m := range messages {
		if err := fc.send(m); err != nil {
			return err
		}
		if fc.run.atPoint(fc.writing) {
			fc.record("the server restarted after %s", typeName(fc.writing))
			fc.run.ended.Store(true)
			fc.run.restart()
		}
	}
	return nil
}

// noopPause is a pause before needless NOOPs. Without it, a worker that requests a job after each of them would
// keep the processor busy, and in virtual time no time would pass.
const noopPause = time.Millisecond

// addNoops adds NOOPs before and after a message to a worker.
func (fc *faultyConn) addNoops(f *codec.Frame, _ *codec.Type) [][]byte {
	pf := fc.run.protoFaults
	if !fc.worker.Load() || f.Type == pf.wake && pf.wakeMeansNoJob {
		return [][]byte{f.Raw}
	}
	time.Sleep(noopPause)
	noop := pf.encode(codec.Server, &codec.Message{Type: pf.wake}, f)
	return [][]byte{noop, f.Raw, noop}
}

// lateProgress adds a progress report after the end of its job.
func (fc *faultyConn) lateProgress(f *codec.Frame, _ *codec.Type) [][]byte {
	if f.Type != fc.run.protoFaults.ends {
		return [][]byte{f.Raw}
	}
	return [][]byte{f.Raw, fc.run.protoFaults.report(f.Get(codec.JobID), f)}
}

// unknownProgress adds a progress report about an unknown job before the end of a job.
func (fc *faultyConn) unknownProgress(f *codec.Frame, _ *codec.Type) [][]byte {
	if f.Type != fc.run.protoFaults.ends {
		return [][]byte{f.Raw}
	}
	return [][]byte{fc.run.protoFaults.report([]byte("H:unknown:1"), f), f.Raw}
}

// requestTwice sends a request for a job to the server twice.
func (fc *faultyConn) requestTwice(f *codec.Frame) bool {
	if f.Type.Does == codec.Ask {
		fc.mu.Lock()
		fc.second = append(fc.second, false, true)
		fc.owed++
		fc.mu.Unlock()
		fc.request(f.Raw)
	}
	return true
}

// withoutSecondRefusal delays the reply to the first of two requests for a job, so that two jobs arrive together, and
// removes the reply to the second if the server has no second job. It also removes refusals of requests that an earlier
// second job has answered, from the view of the worker.
func (fc *faultyConn) withoutSecondRefusal(f *codec.Frame, _ *codec.Type) [][]byte {
	fc.mu.Lock()
	defer fc.mu.Unlock()
	if does := f.Type.Does; len(fc.second) > 0 && (does == codec.Assign || does == codec.NoJob) {
		second := fc.second[0]
		fc.second = fc.second[1:]
		if does == codec.Assign || !second && fc.owed > 0 {
			fc.kept, fc.owed = append(fc.kept, slices.Clone(f.Raw)), max(0, fc.owed-1)
		}
		if !second {
			return nil
		}
		out := fc.kept
		fc.kept = nil
		return out
	}
	return [][]byte{f.Raw}
}

// rejectRequest replies with an error to the request at the point of the run, instead of forwarding it.
func (fc *faultyConn) rejectRequest(f *codec.Frame) bool {
	pf := fc.run.protoFaults
	if !pf.mayRefuse(f.Type) || !fc.run.atPoint(f.Type) {
		return true
	}
	fc.record("the server replied to %s with %s", f.Type.Name, pf.refusal.Type.Name)
	fc.inject(pf.encode(codec.Server, pf.refusal, f))
	return false
}

// rarerReply replaces the reply at the point of the run by one of a rarer type.
func (fc *faultyConn) rarerReply(f *codec.Frame, asked *codec.Type) [][]byte {
	t := rarer(asked, f.Type)
	if t == nil || !fc.run.atPoint(f.Type) {
		return [][]byte{f.Raw}
	}
	fc.record("the server replied to %s with %s instead of %s", asked.Name, t.Label(), f.Type.Label())
	fc.run.effects.Add(1)
	m := codec.Message{Type: t}
	for i := range t.Fields {
		m.Args = append(m.Args, f.Arg(named(f.Type, t.Fields[i].Name)))
	}
	return [][]byte{fc.run.protoFaults.encode(codec.Server, &m, f)}
}

// record records the fault of the run.
func (fc *faultyConn) record(format string, args ...any) {
	at := time.Since(fc.run.proxy.Auditor.begun).Seconds()
	text := fmt.Sprintf("%.3f s: %s %d: ", at, fc.run.outcome.Role, fc.conn.id) + fmt.Sprintf(format, args...)
	fc.run.fault.Store(&text)
}

// typeName returns the name of a message type for the text of a fault.
func typeName(t *codec.Type) string {
	if t == nil {
		return "a reply"
	}
	return t.Name
}

// head returns the length of the first part of a message: its header, or its first line.
func (fc *faultyConn) head(m []byte) int {
	if n := fc.run.protoFaults.head(m); n > 0 && n < len(m) {
		return n
	}
	return len(m)
}
