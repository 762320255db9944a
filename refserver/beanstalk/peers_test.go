package beanstalk

import (
	"context"
	"errors"
	"net"
	"os/exec"
	"slices"
	"testing"
	"time"

	client "github.com/beanstalkd/go-beanstalk"

	"jobwire/codec/beanstalk"
	"jobwire/internal/peers"
	"jobwire/refserver/internal/peertest"
)

// serveTCP serves a machine on loopback until the test ends.
func serveTCP(t testing.TB) (addr string) {
	t.Helper()
	return peertest.Serve(t, beanstalk.Protocol, New(Options{}))
}

func dialTCP(t testing.TB, addr string) peerOf {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	return peerOf{peertest.New(t, beanstalk.Protocol, nc), t}
}

// waitUntil polls until ok returns true.
func waitUntil(t testing.TB, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it does not come about")
		}
	}
}

// TestBeaneater tests that the commands of the Ruby client beaneater work on the reference server.
func TestBeaneater(t *testing.T) {
	ruby, addr := peers.Need(t, "beaneater"), serveTCP(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, ruby, "-rbeaneater", "-e", `
		b = Beaneater.new(ARGV[0])
		tube = b.tubes["work"]
		puts tube.put("one", pri: 5, ttr: 60)[:id]
		tube.put("two", pri: 1)
		tube.put("later", delay: 1000)
		b.tubes.watch!("work")
		puts tube.peek(:ready).body, tube.peek(:delayed).body, tube.peek(:buried).inspect
		job = b.tubes.reserve(0)
		puts job.body, job.tube, job.pri, job.stats.state
		job.touch
		job.release(pri: 9)
		job = b.tubes.reserve
		puts job.body
		job.bury
		puts tube.peek(:buried).body, tube.kick(10)[:id], job.exists?
		puts b.jobs.find(job.id).body
		2.times { b.tubes.reserve(1).delete }
		begin
			b.tubes.reserve(0)
		rescue Beaneater::TimedOutError
			puts "timed out"
		end
		begin
			job.delete
		rescue Beaneater::NotFoundError
			puts "not found"
		end
		tube.pause(1)
		puts tube.stats.pause, tube.stats.current_jobs_delayed, tube.stats.total_jobs, tube.stats.name
		puts b.stats.current_connections, b.stats.cmd_put, b.stats.version, b.stats.os.nil?
		puts b.tubes.all.map(&:name).sort.join(","), b.tubes.watched.map(&:name).join(","), b.tubes.used.name
		producer = Thread.new { Beaneater.new(ARGV[0]).tubes["work"].put("from afar") }
		puts b.tubes.reserve(10).body
		producer.join
		b.close
	`, addr)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	want := "1\ntwo\nlater\nnil\ntwo\nwork\n1\nreserved\none\none\n1\ntrue\none\ntimed out\nnot found\n1\n1\n3\nwork\n1\n3\njobwire\nfalse\ndefault,work\nwork\nwork\nfrom afar\n"
	if err != nil || string(out) != want {
		t.Errorf("%v; got\n%s\nwant\n%s", err, out, want)
	}
}

// TestGoBeanstalk tests that the commands of the Go client go-beanstalk work on the reference server.
func TestGoBeanstalk(t *testing.T) {
	addr := serveTCP(t)
	dial := func() *client.Conn {
		c, err := client.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	c, other := dial(), dial()
	tube, set := client.NewTube(c, "work"), client.NewTubeSet(c, "work")
	id, err := tube.Put([]byte("hello"), 1, 0, time.Minute)
	must(err)
	got, body, err := set.Reserve(time.Second)
	if err != nil || got != id || string(body) != "hello" {
		t.Fatalf("reserve: %d %q %v, want job %d", got, body, err, id)
	}
	must(c.Touch(id))
	must(c.Release(id, 7, 0))
	_, body, err = tube.PeekReady()
	if err != nil || string(body) != "hello" {
		t.Errorf("peek-ready: %q %v", body, err)
	}
	body, err = c.ReserveJob(id)
	if err != nil || string(body) != "hello" {
		t.Errorf("reserve-job: %q %v", body, err)
	}
	must(c.Bury(id, 3))
	must(c.KickJob(id))
	_, _, err = set.Reserve(time.Second)
	must(err)
	stats, err := c.StatsJob(id)
	if err != nil || stats["state"] != "reserved" || stats["pri"] != "3" || stats["tube"] != "work" || stats["kicks"] != "1" {
		t.Errorf("stats-job: %v %v", stats, err)
	}
	must(c.Bury(id, 3))
	if n, err := tube.Kick(5); n != 1 || err != nil {
		t.Errorf("kick: %d %v", n, err)
	}
	must(other.Delete(id))
	if _, err := c.Peek(id); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("peek of a deleted job: %v", err)
	}
	if _, _, err := set.Reserve(0); !errors.Is(err, client.ErrTimeout) {
		t.Errorf("reserve of nothing: %v", err)
	}
	must(tube.Pause(0))
	if stats, err = tube.Stats(); err != nil || stats["name"] != "work" || stats["total-jobs"] != "1" {
		t.Errorf("stats-tube: %v %v", stats, err)
	}
	if stats, err = c.Stats(); err != nil || stats["total-connections"] != "2" || stats["current-workers"] != "1" {
		t.Errorf("stats: %v %v", stats, err)
	}
	if tubes, err := c.ListTubes(); err != nil || !slices.Equal(tubes, []string{"default", "work"}) {
		t.Errorf("list-tubes: %v %v", tubes, err)
	}
	// A worker that waits gets the job that another connection puts.
	done := make(chan string)
	go func() {
		_, body, _ := client.NewTubeSet(other, "work").Reserve(10 * time.Second)
		done <- string(body)
	}()
	waitUntil(t, func() bool { s, _ := c.Stats(); return s["current-waiting"] == "1" })
	_, err = tube.Put([]byte("awaited"), 0, 0, time.Minute)
	must(err)
	if body := <-done; body != "awaited" {
		t.Errorf("the worker gets %q", body)
	}
}
