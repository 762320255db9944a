package beanstalk

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"jobwire/codec/beanstalk"
	"jobwire/refserver"
	"jobwire/refserver/internal/peertest"
)

// peerOf is a peer with shortcuts for Beanstalk.
type peerOf struct {
	*peertest.Peer
	t testing.TB
}

// ask sends a command and returns the reply: its name, then its arguments.
func (p peerOf) ask(name string, args ...string) string {
	p.t.Helper()
	p.Send(name, args...)
	reply, got := p.Next()
	return strings.Join(append([]string{reply}, got...), " ")
}

// want sends a line with a command and its arguments, and checks the reply.
func (p peerOf) want(line, want string) {
	p.t.Helper()
	words := strings.Fields(line)
	if got := p.ask(words[0], words[1:]...); got != want {
		p.t.Fatalf("%s: got %s, want %s", line, got, want)
	}
}

// put puts a job and returns its ID.
func (p peerOf) put(priority, delay, ttr int, body string) string {
	p.t.Helper()
	reply := p.ask("put", fmt.Sprint(priority), fmt.Sprint(delay), fmt.Sprint(ttr), body)
	id, ok := strings.CutPrefix(reply, "INSERTED ")
	if !ok {
		p.t.Fatalf("put: %s", reply)
	}
	return id
}

// stats sends a command whose reply is statistics, and returns the values of the keys.
func (p peerOf) stats(line string, keys ...string) string {
	p.t.Helper()
	words := strings.Fields(line)
	p.Send(words[0], words[1:]...)
	name, args := p.Next()
	if name != "stats-reply" {
		p.t.Fatalf("%s: %s %q", line, name, args)
	}
	var got []string
	for _, key := range keys {
		i := slices.Index(args, key)
		if i < 0 || i%2 != 0 {
			p.t.Fatalf("%s: no %s in %q", line, key, args)
		}
		got = append(got, args[i+1])
	}
	return strings.Join(got, " ")
}

// quiet checks that the server has sent nothing to the peer, which must not be waiting: anything else would
// come before the reply.
func (p peerOf) quiet() {
	p.t.Helper()
	if name := p.ask("list-tube-used"); !strings.HasPrefix(name, "USING ") {
		p.t.Fatalf("got %s, want nothing", name)
	}
}

// bubble runs a test with a server in a synctest bubble. It also checks that every goroutine of the server
// ends, and that only jobs are left in the machine.
func bubble(t *testing.T, o Options, ro refserver.Options, test func(t *testing.T, m *Machine, dial func() peerOf)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ro.Protocol = beanstalk.Protocol
		m := New(o)
		srv := refserver.New(m, ro)
		test(t, m, func() peerOf {
			return peerOf{peertest.Dial(t, beanstalk.Protocol, srv), t}
		})
		srv.Close()
		m.check(t)
		if m.peers+m.producers+m.workers+m.waiting != 0 {
			t.Errorf("left behind: %d peers, %d producers, %d workers, %d waits", m.peers, m.producers, m.workers, m.waiting)
		}
	})
}

// check compares the counters of the machine with its lists.
func (m *Machine) check(t testing.TB) {
	t.Helper()
	var in [len(stateNames)]int
	for _, page := range m.jobs.pages {
		for i := range page.jobs {
			j := &page.jobs[i]
			if j.id == 0 {
				continue
			}
			id := j.id
			in[j.state]++
			if e := j.heap().at(int(j.place)); e.item != j || m.jobs.find(id) != j || (j.state == reserved) != (j.owner != nil) {
				t.Errorf("job %d is not where it belongs", id)
			}
			if m.tubes[string(j.tube.name)] != j.tube {
				t.Errorf("job %d is in a tube that is forgotten", id)
			}
		}
	}
	var sum tally
	waiting, using := 0, 0
	for name, tb := range m.tubes {
		for s := range tb.in {
			sum.in[s] += tb.in[s]
		}
		sum.urgent += tb.urgent
		using += tb.using
		waiting += tb.waiters.len
		if jobs := tb.in[ready] + tb.in[delayed] + tb.in[buried] + tb.in[reserved]; jobs+tb.using+tb.watching == 0 && name != "default" {
			t.Errorf("tube %s is kept for nothing", name)
		}
		if tb.next() != nil && tb.waiters.len > 0 {
			t.Errorf("tube %s has jobs, and peers that wait", name)
		}
	}
	if in != m.in || sum.in != in || sum.urgent != m.urgent || using != m.peers || m.waiting > 0 && waiting == 0 {
		t.Errorf("%v jobs are there, %v counted, %v in tubes; %d of %d urgent; %d of %d peers use a tube", in, m.in, sum.in, sum.urgent, m.urgent, using, m.peers)
	}
	if m.timers.len > len(m.tubes)+m.peers {
		t.Errorf("%d timers for %d tubes and %d peers", m.timers.len, len(m.tubes), m.peers)
	}
}
