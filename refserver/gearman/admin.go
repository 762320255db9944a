package gearman

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"

	"jobwire/codec"
	"jobwire/codec/gearman"
)

// Types of the replies to commands (section "Administrative Protocol").
var (
	okReply         = typeNamed("OK")
	errReply        = typeNamed("ERR")
	workersReply    = typeNamed("workers-reply")
	statusReply     = typeNamed("status-reply")
	prioritiesReply = typeNamed("prioritystatus-reply")
	jobsReply       = typeNamed("show-jobs-reply")
	uniqueReply     = typeNamed("show-unique-jobs-reply")
	versionReply    = typeNamed("version-reply")
	pidReply        = typeNamed("getpid-reply")
	verboseReply    = typeNamed("verbose-reply")
)

// err sends an ERR reply. Spaces in the text are sent as plus signs, because the original Perl server URL-encodes the
// text.
func (p *peer) err(code, text string) {
	p.conn.Send(errReply, []byte(code), []byte(strings.ReplaceAll(text, " ", "+")))
}

// table collects the arguments of a reply that is a list. Its callers stop when it is larger than max, the limit on a
// packet's data.
type table struct {
	args      [][]byte
	size, max int
}

func (p *peer) table() *table { return &table{max: p.conn.MaxData()} }

func (t *table) text(b []byte) {
	t.args = append(t.args, b)
	t.size += len(b) + 1
}

func (t *table) number(n uint64) { t.text(decimal(n)) }

func (t *table) full() bool { return t.size > t.max }

// list sends the table as a reply, or an error if the table is too long.
func (p *peer) list(reply *codec.Type, t *table) {
	if t.full() {
		p.err("LIST_TOO_LONG", fmt.Sprintf("the list is longer than %d bytes", t.max))
	} else if err := p.conn.Send(reply, t.args...); err != nil {
		p.err("INTERNAL_ERROR", err.Error())
	}
}

// printable replaces control characters by \xNN, and spaces if blanks is true. Function names and IDs may contain all
// bytes except NUL.
func printable(b []byte, blanks bool) []byte {
	out := make([]byte, 0, len(b))
	for _, c := range b {
		if c < ' ' || c == 0x7f || blanks && c == ' ' {
			out = escape(out, c)
		} else {
			out = append(out, c)
		}
	}
	return out
}

func escape(dst []byte, c byte) []byte { return fmt.Appendf(dst, `\x%02x`, c) }

// printableLine is printable for a value that is the whole line. It also escapes the first byte of a value that clients
// could read as the end of the list or as an error reply.
func printableLine(b []byte) []byte {
	out := printable(b, false)
	if string(b) == "." || bytes.HasPrefix(b, []byte("ERR")) || gearman.SaysError(out) {
		return append(escape(nil, b[0]), out[1:]...)
	}
	return out
}

// showWorkers lists the connections that have sent a request that only workers send.
func showWorkers(m *machine, p *peer, _ *codec.Frame) {
	t := p.table()
	for w := range m.joined.All {
		if !w.worker {
			continue
		}
		id := []byte("-")
		if len(w.clientID) > 0 {
			id = printable(w.clientID, true)
		}
		t.number(w.conn.FD())
		t.text([]byte(w.conn.RemoteIP()))
		t.text(id)
		var names []byte
		for a := range w.abilities.All {
			names = append(append(names, ' '), printable(a.fn.name, true)...)
			if t.size+len(names) > t.max {
				break
			}
		}
		t.text(names)
		if t.full() {
			break
		}
	}
	p.list(workersReply, t)
}

// showStatus handles "status": it lists the functions with their numbers of jobs, running jobs and workers that can run
// them.
func showStatus(m *machine, p *peer, _ *codec.Frame) {
	t := p.table()
	for fn := range m.order.All {
		t.text(printable(fn.name, false))
		t.number(uint64(fn.total))
		t.number(uint64(fn.running))
		t.number(uint64(fn.abilities.Len()))
		if t.full() {
			break
		}
	}
	p.list(statusReply, t)
}

// showPriorities handles "prioritystatus": it lists the functions with the numbers of queued jobs of each priority and
// of workers that can run them.
func showPriorities(m *machine, p *peer, _ *codec.Frame) {
	t := p.table()
	for fn := range m.order.All {
		t.text(printable(fn.name, false))
		for i := range fn.queue {
			t.number(uint64(fn.queue[i].len))
		}
		t.number(uint64(fn.abilities.Len()))
		if t.full() {
			break
		}
	}
	p.list(prioritiesReply, t)
}

// showJobs handles "show jobs": it lists the handles of all jobs, each with the number of workers that it lost, a flag
// that is always 0, and 1 unless a worker runs the job.
func showJobs(m *machine, p *peer, _ *codec.Frame) {
	t := p.table()
	zero, one := []byte("0"), []byte("1")
	for i := range m.byNumber.all {
		j := m.jobs.at(i)
		t.text(bytes.Clone(m.handle(j)))
		if j.extra != 0 {
			t.number(uint64(m.extra(j).lost))
		} else {
			t.text(zero)
		}
		t.text(zero)
		if j.worker == 0 {
			t.text(one)
		} else {
			t.text(zero)
		}
		if t.full() {
			break
		}
	}
	p.list(jobsReply, t)
}

// showUnique handles "show unique jobs": it lists the unique IDs of the jobs in the order of submission.
func showUnique(m *machine, p *peer, _ *codec.Frame) {
	t := p.table()
	for _, n := range m.names.in(&m.unique, inUnique) {
		t.text(printableLine(m.blobs.bytes(n.text)))
		if t.full() {
			break
		}
	}
	p.list(uniqueReply, t)
}

// maxQueue sets the queue limits of a function: one for all priorities, or one for each. Without a limit it restores
// the defaults.
func maxQueue(m *machine, p *peer, f *codec.Frame) {
	var sizes []int
	for i := 1; f.Arg(i) != nil; i++ {
		n, _ := strconv.Atoi(string(f.Arg(i)))
		sizes = append(sizes, n)
	}
	fn := m.functionNamed(f.Arg(0))
	switch len(sizes) {
	case 0:
		fn.limits = nil
		m.releaseIfUnused(fn)
	case 1:
		fn.limits = &[3]int{sizes[0], sizes[0], sizes[0]}
	case 3:
		fn.limits = &[3]int{sizes[0], sizes[1], sizes[2]}
	default:
		m.releaseIfUnused(fn)
		p.err("INVALID_ARGUMENTS", "expected one size or three")
		return
	}
	p.conn.Send(okReply)
}

// shutdown handles "shutdown", with or without the argument "graceful": it replies OK and then stops the server.
func shutdown(_ *machine, p *peer, f *codec.Frame) {
	mode := f.Arg(0)
	if mode != nil && string(mode) != "graceful" {
		p.err("INVALID_ARGUMENTS", "expected graceful or no argument")
		return
	}
	p.conn.Send(okReply)
	p.conn.Shutdown(mode != nil)
}

func showVersion(m *machine, p *peer, _ *codec.Frame) {
	p.conn.Send(versionReply, []byte("OK "+m.opts.Version))
}

func showPID(_ *machine, p *peer, _ *codec.Frame) {
	p.conn.Send(pidReply, decimal(uint64(os.Getpid())))
}

// showVerbosity always replies with the level ERROR, because clients expect a level. The server itself has no log.
func showVerbosity(_ *machine, p *peer, _ *codec.Frame) { p.conn.Send(verboseReply, []byte("ERROR")) }

// cancelJob removes a job that is not running. The clients that wait for it get a WORK_FAIL.
func cancelJob(m *machine, p *peer, f *codec.Frame) {
	j := m.find(f.Arg(0))
	switch {
	case j == nil:
		p.err("UNKNOWN_JOB", "no job has this handle")
	case j.worker != 0:
		p.err("JOB_IS_RUNNING", "a worker is running the job")
	default:
		m.fail(j)
		p.conn.Send(okReply)
	}
}

func createFunction(m *machine, p *peer, f *codec.Frame) {
	m.functionNamed(f.Arg(0)).kept = true
	p.conn.Send(okReply)
}

// dropFunction handles "drop function": it removes a function that has neither jobs nor workers, together with its
// limits. Otherwise it replies with an error.
func dropFunction(m *machine, p *peer, f *codec.Frame) {
	fn := m.byName[string(f.Arg(0))]
	switch {
	case fn == nil:
		p.err("UNKNOWN_FUNCTION", "no function has this name")
	case fn.total > 0 || fn.abilities.Len() > 0:
		p.err("FUNCTION_IN_USE", "the function still has jobs or workers")
	default:
		fn.kept, fn.limits = false, nil
		m.releaseIfUnused(fn)
		p.conn.Send(okReply)
	}
}
