package beanstalk_test

import (
	"strings"
	"testing"
	"testing/synctest"

	client "github.com/beanstalkd/go-beanstalk"

	"jobwire/internal/transport"
	"jobwire/refpeer/beanstalk"
	"jobwire/refpeer/internal/drivetest"
	"jobwire/refpeer/internal/peer"
	"jobwire/refserver"
	server "jobwire/refserver/beanstalk"
)

var bench = drivetest.Suite{
	Document: beanstalk.Document,
	Machine:  func() refserver.Machine { return server.New(server.Options{}) },
}

// conversation performs tasks one after the other and compares the answers with the beginnings of the expected ones.
func conversation(t *testing.T, b drivetest.Suite, addr string, lines ...string) {
	t.Helper()
	var tasks []string
	for i := 0; i < len(lines); i += 2 {
		tasks = append(tasks, lines[i])
	}
	got := strings.Split(strings.TrimSuffix(b.Answers(t, addr, tasks...), "\n"), "\n")
	if len(got) != len(tasks) {
		t.Fatalf("expected %d answers, got %d: %q", len(tasks), len(got), got)
	}
	for i, task := range tasks {
		if want := lines[2*i+1]; got[i] != want && (want == "ok" || strings.HasPrefix(want, "ok ") || !strings.HasPrefix(got[i], want)) {
			t.Errorf("task %q: expected the answer %q, got %q", task, want, got[i])
		}
	}
}

// TestTasks performs each task of docs/drivers.md, with and without its options.
func TestTasks(t *testing.T) {
	t.Parallel()
	for name, lines := range map[string][]string{
		"binary body": {`put t "a\0\r\nb"`, "ok 1", "peek 1", `ok "a\0\r\nb"`, "reserve t", `ok 1 "a\0\r\nb"`, "delete 1", "ok", "peek 1", "error not-found"},
		"empty body":  {`put t ""`, "ok 1", "reserve t timeout=0", `ok 1 ""`, `put t "" nil`, "ok 2", "peek 2", `ok ""`},
		"two tubes":   {"put a x", "ok 1", "put b y pri=7", "ok 2", "reserve b,a", "ok 1 x", "reserve a,b", "ok 2 y", "reserve a,b timeout=0", "error timed-out"},
		"other tubes": {"put default x", "ok 1", "put a y", "ok 2", "reserve b timeout=0", "error timed-out", "reserve a timeout=0", "ok 2 y", "reserve default timeout=0", "ok 1 x"},
		"priorities":  {"put t x pri=4294967295", "ok 1", "put t y pri=3", "ok 2", "reserve t", "ok 2 y", "release 2 pri=4294967295", "ok", "reserve t", "ok 1 x"},
		"delays":      {"put t x delay=100", "ok 1", "stats 1", "ok delayed t", "kick t 3", "ok 1", "reserve t", "ok 1 x", "release 1 delay=100", "ok", "stats 1", "ok delayed t"},
		"bury":        {"put t x", "ok 1", "reserve t", "ok 1 x", "bury 1", "ok", "stats 1", "ok buried t", "kick u 1", "ok 0", "kick t 1", "ok 1", "stats 1", "ok ready t"},
		"touch":       {"put t x ttr=2", "ok 1", "reserve t", "ok 1 x", "touch 1", "ok", "stats 1", "ok reserved t"},
		"margin":      {"put t x ttr=1", "ok 1", "reserve t", "ok 1 x", "reserve t", "error deadline-soon"},
		"given back": {"put t x", "ok 1", "touch 1", "error not-found", "reserve t", "ok 1 x", "release 1", "ok", "release 1", "error not-found", "bury 1", "error not-found",
			"reserve t", "ok 1 x", "bury 1", "ok", "touch 1", "error not-found"},
		"unknown job":  {"delete 5", "error not-found", "peek 5", "error not-found", "stats 5", "error not-found", "release 5", "error not-found"},
		"large":        {`put t "x"*65536`, "error too-big", "put t x", "ok 1"},
		"bad format":   {"put t x pri=4294967296", "error server BAD_FORMAT", "put t x", "ok 1"},
		"work delete":  {"put t x", "ok 1", "put u y", "ok 2", "work t,u delete 2", "ok 2", "peek 1", "error not-found"},
		"work release": {"put t x", "ok 1", "work t release 01", "ok 1", "stats 1", "ok ready t"},
		"work bury":    {"put t x", "ok 1", "put t y", "ok 2", "work t bury 0", "ok 2", "stats 2", "ok buried t"},
		"work touch":   {"put t x", "ok 1", "work t touch 0", "ok 1", "peek 1", "error not-found", "work t touch 0", "ok 0"},
		"usage":        {"put t", "error usage", "put t x colour=red", "error usage", "work t juggle 1", "error usage", "juggle", "error usage", "reserve t timeout=soon", "error usage"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { conversation(t, bench, bench.Serve(t), lines...) })
		})
	}
}

// TestRefusedPreparation: a client that does not wait for the reply to "use" answers with the refusal, also if the server
// accepts the job, which is then in another tube.
func TestRefusedPreparation(t *testing.T) {
	t.Parallel()
	b := bench
	b.Document = func() *peer.Program {
		p := beanstalk.Document()
		p.Pipelined = true
		return p
	}
	synctest.Test(t, func(t *testing.T) {
		conversation(t, b, b.Serve(t), "put -t x", "error server BAD_FORMAT", "put t y", "ok 2", "peek 2", "ok y")
	})
}

// TestDraining: if no other answer applies, the answer contains the first word of the server's reply.
func TestDraining(t *testing.T) {
	t.Parallel()
	b := bench
	b.Machine = func() refserver.Machine { return server.New(server.Options{Draining: true}) }
	synctest.Test(t, func(t *testing.T) {
		conversation(t, b, b.Serve(t), "put t x", "error server DRAINING", "work t delete 0", "ok 0")
	})
}

// TestReservationEndsWithTheDriver: the job of a driver that has ended is ready again, and another driver cannot touch it.
func TestReservationEndsWithTheDriver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		addr := bench.Serve(t)
		conversation(t, bench, addr, "put t x", "ok 1", "reserve t", "ok 1 x")
		conversation(t, bench, addr, "touch 1", "error not-found", "reserve t", "ok 1 x")
	})
}

// TestWorkersShareJobs: a worker waits for jobs that another driver puts.
func TestWorkersShareJobs(t *testing.T) {
	t.Parallel()
	bench.Exchanges(t, []drivetest.Exchange{
		{"one job", "put f x", "ok 1", "work f delete 1", "ok 1"},
		{"one of two tubes", "put f x", "ok 1", "work e,f touch 1", "ok 1"},
		{"with a timeout", "put f x", "ok 1", "reserve f timeout=5", "ok 1 x"},
	})
}

// TestUnreachable: each task reports that the client cannot connect.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	bench.WithoutServer(t, "put t x", "reserve t", "work t delete 1")
}

// TestConnections: one connection serves all tasks, unless each task has its own. The job that a task has reserved stays
// with its connection.
func TestConnections(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		edit  func(*peer.Program)
		conns string
	}{
		{"one", func(*peer.Program) {}, "2"},
		{"one for each task", func(p *peer.Program) { p.PerTask = true }, "5"},
	}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			b := bench
			b.Document = func() *peer.Program {
				p := beanstalk.Document()
				tt.edit(p)
				return p
			}
			addr := b.Serve(t)
			conversation(t, b, addr, "put t x", "ok 1", "put t y", "ok 2", "reserve t", "ok 1 x", "touch 1", "ok", "peek 2", "ok y")
			nc, err := new(transport.Dialer).Dial(t.Context(), addr)
			if err != nil {
				t.Fatal(err)
			}
			c := client.NewConn(nc)
			defer c.Close()
			if stats, err := c.Stats(); err != nil || stats["total-connections"] != tt.conns {
				t.Errorf("%s: expected %s connections with this one, got %s; %v", tt.name, tt.conns, stats["total-connections"], err)
			}
		})
	}
}
