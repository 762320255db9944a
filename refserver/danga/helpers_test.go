package danga

import (
	"strings"
	"testing"
	"testing/synctest"

	"jobwire/codec/danga"
	"jobwire/refserver"
	"jobwire/refserver/internal/peertest"
)

// peerOf adds shortcuts for messages of the draft.
type peerOf struct {
	*peertest.Peer
	t testing.TB
}

// Job types in wire format.
const syncWait, async, throwAway = "\x00", "\x01", "\x02"

// create creates a job and returns its handle, "" if it has none.
func (p peerOf) create(name, dupkey, typ, args string) string {
	p.t.Helper()
	p.Send("job_create_req", name, dupkey, "\x00", typ, args)
	got, handle := p.Next()
	if got != "job_create_res" || (len(handle) == 1) != (typ == async) {
		p.t.Fatalf("%s %q for type %q", got, handle, typ)
	}
	return strings.Join(handle, "")
}

// connect announces names, and waits until the server has processed them.
func (p peerOf) connect(names ...string) {
	p.t.Helper()
	p.Send("worker_connect", names...)
}

// gets requests a job and expects the given one.
func (p peerOf) gets(name, args string) {
	p.t.Helper()
	p.Send("job_assign_req")
	p.Want("job_assign_res", name, args)
}

// getsNone requests a job and expects none.
func (p peerOf) getsNone() {
	p.t.Helper()
	p.Send("job_assign_req")
	p.Want("noop")
}

// finishes announces a result, and waits until the server has processed it.
func (p peerOf) finishes(code, data string) {
	p.t.Helper()
	p.Send("job_complete_announce", code, data)
}

// quiet checks that the server has sent nothing to a peer that does not wait: anything else would come before
// the reply.
func (p peerOf) quiet() {
	p.t.Helper()
	p.Send("job_complete_req", "nobody's")
	p.Want("job_complete_res", num(0), "\xff", "")
}

func num(n uint32) string {
	b := bigEndian(n)
	return string(b[:])
}

// bubble runs a test with a server in a synctest bubble. It also checks that every goroutine of the server
// ends, and that the machine has deleted every name for which no jobs are left.
func bubble(t *testing.T, o Options, test func(t *testing.T, m *machine, dial func() peerOf)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		if o.Name == "" {
			o.Name = "test"
		}
		m := New(o).(*machine)
		srv := refserver.New(m, refserver.Options{Protocol: danga.Protocol})
		test(t, m, func() peerOf {
			return peerOf{peertest.Dial(t, danga.Protocol, srv), t}
		})
		srv.Close()
		m.check(t)
	})
}

// check compares the counters of the machine with its lists, when no peers are connected.
func (m *machine) check(t testing.TB) {
	t.Helper()
	for name, task := range m.tasks {
		if task.workers != 0 || task.sleepers.Len() != 0 || task.jobs != task.queue.Len() || task.jobs == 0 {
			t.Errorf("%s: %d workers, %d sleepers, %d jobs, %d of them waiting", name, task.workers, task.sleepers.Len(), task.jobs, task.queue.Len())
		}
		for j := range task.queue.All {
			if j.unwanted() || j.worker != nil || j.waits.Len() != 0 {
				t.Errorf("job %d is left of a connection that ended", j.number)
			}
		}
	}
	bytes, finished := 0, 0
	for _, j := range m.jobs {
		if j.finished {
			finished++
			bytes += len(j.data)
		}
	}
	if bytes != m.keptBytes || finished != m.kept.Len() {
		t.Errorf("%d results of %d bytes are kept, %d of %d counted", finished, bytes, m.kept.Len(), m.keptBytes)
	}
}
