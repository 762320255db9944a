package main

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"jobwire/internal/peers"
	"jobwire/internal/target"
)

// BenchmarkBeanstalk loads beanstalkd and the reference server, each in a
// process of its own, with cycles of put, reserve and delete over loopback.
// Each iteration has one turn of each server, so that a busy machine slows
// both. It reports the medians of the turns and the CPU time of the servers.
//
//	go test -run - -bench Beanstalk -benchtime 8x ./cmd/jobwire
func BenchmarkBeanstalk(b *testing.B) {
	for _, c := range []struct {
		name   string
		depth  int
		cycles int // per turn and connection
	}{{"one-at-a-time", 1, 2000}, {"pipelined-100", 100, 20_000}} {
		b.Run(c.name, func(b *testing.B) {
			rivals := beanstalkRivals(b)
			for b.Loop() {
				for _, r := range rivals {
					r.turn(b, c.depth, c.cycles)
				}
			}
			for _, r := range rivals {
				b.ReportMetric(median(r.rates), r.name+"-cycles/s")
				b.ReportMetric((r.used(b)-r.began)/float64(r.cycles)*1e6, r.name+"-cpu-µs/cycle")
			}
			times := make([]float64, b.N) // rate of jobwire divided by that of beanstalkd, for each turn
			for i := range times {
				times[i] = rivals[1].rates[i] / rivals[0].rates[i]
			}
			b.ReportMetric(median(times), "times")
			b.ReportMetric(0, "ns/op") // not reported: an iteration includes both servers
		})
	}
}

// BenchmarkBeanstalkMemory puts a million small jobs into each server and
// reports the resident memory of its process.
func BenchmarkBeanstalkMemory(b *testing.B) {
	for b.Loop() {
		for _, r := range beanstalkRivals(b) {
			r.fill(b, 1_000_000)
			b.ReportMetric(float64(r.memory(b))/1024, r.name+"-MiB")
		}
	}
}

const beanstalkConns = 16

// beanstalkRival is a server under measurement.
type beanstalkRival struct {
	name   string
	conns  []net.Conn
	proc   string  // folder of the server process in /proc
	began  float64 // its CPU time before the first turn, in seconds
	cycles int
	rates  []float64 // cycles per second, by turn
}

// beanstalkRivals starts beanstalkd and jobwire and connects to both.
func beanstalkRivals(b *testing.B) []*beanstalkRival {
	b.Helper()
	real := peers.Start(b, "beanstalkd")
	jobwire, err := exec.LookPath("jobwire") // TestMain compiles it
	if err != nil {
		b.Fatal(err)
	}
	ours, err := target.Command{Args: []string{jobwire, "serve", "beanstalk", "--listen", "127.0.0.1:{port}"}}.Start(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { ours.Stop() })
	return []*beanstalkRival{newBeanstalkRival(b, "beanstalkd", real), newBeanstalkRival(b, "jobwire", ours)}
}

func newBeanstalkRival(b *testing.B, name string, srv target.Target) *beanstalkRival {
	r := &beanstalkRival{name: name}
	for range beanstalkConns {
		nc, err := net.Dial("tcp", srv.Addr())
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { nc.Close() })
		r.conns = append(r.conns, nc)
	}
	fmt.Fprintf(r.conns[0], "stats\r\n")
	reply := make([]byte, 4096)
	var got []byte
	for !bytes.Contains(got, []byte("platform")) {
		n, err := r.conns[0].Read(reply)
		if err != nil {
			b.Fatal(err)
		}
		got = append(got, reply[:n]...)
	}
	_, rest, _ := strings.Cut(string(got), "\npid: ")
	pid, _, _ := strings.Cut(rest, "\n")
	r.proc = "/proc/" + pid
	r.began = r.used(b)
	return r
}

// used returns the CPU time that the process has used, in seconds.
func (r *beanstalkRival) used(b testing.TB) float64 {
	b.Helper()
	stat, err := os.ReadFile(r.proc + "/stat")
	if err != nil {
		b.Skip(err)
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	const ticks = 100 // per second; the same on every Linux
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return float64(user+system) / ticks
}

// memory returns the resident memory of the process, in KiB.
func (r *beanstalkRival) memory(b testing.TB) int {
	b.Helper()
	status, err := os.ReadFile(r.proc + "/status")
	if err != nil {
		b.Skip(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	kb, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		b.Fatal(err)
	}
	return kb
}

// turn runs the given number of cycles on every connection, and records the rate.
func (r *beanstalkRival) turn(b *testing.B, depth, cycles int) {
	b.Helper()
	start := time.Now()
	errs := make([]error, len(r.conns))
	var all sync.WaitGroup
	for i, nc := range r.conns {
		all.Go(func() { errs[i] = beanstalkCycles(nc, depth, cycles) })
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			b.Fatalf("%s: %v", r.name, err)
		}
	}
	done := cycles * len(r.conns)
	r.cycles += done
	r.rates = append(r.rates, float64(done)/time.Since(start).Seconds())
}

const beanstalkPut = "put 0 0 600 16\r\nsixteen bytes ok\r\n"

// beanstalkCycles runs cycles in batches of depth: it writes the deletes of
// one batch together with the puts and reserves of the next. With a depth of 1
// it waits for every reply.
func beanstalkCycles(nc net.Conn, depth, cycles int) error {
	r := bufio.NewReaderSize(nc, 64<<10)
	var out []byte
	// step writes out and reads the replies. It leaves in out the commands that
	// delete the reserved jobs.
	step := func(replies int) error {
		if _, err := nc.Write(out); err != nil {
			return err
		}
		out = out[:0]
		for range replies {
			line, err := r.ReadSlice('\n')
			switch {
			case err != nil:
				return err
			case bytes.HasPrefix(line, []byte("RESERVED ")):
				id := line[len("RESERVED "):]
				id = id[:bytes.IndexByte(id, ' ')]
				out = append(append(append(out, "delete "...), id...), "\r\n"...)
				if _, err := r.Discard(len("sixteen bytes ok\r\n")); err != nil {
					return err
				}
			case !bytes.HasPrefix(line, []byte("INSERTED ")) && !bytes.HasPrefix(line, []byte("DELETED")):
				return fmt.Errorf("reply %q", line)
			}
		}
		return nil
	}
	deletes := 0
	for done := 0; done < cycles; done += depth {
		if depth == 1 {
			out = append(out, beanstalkPut...)
			if err := step(1); err != nil {
				return err
			}
			out = append(out, "reserve\r\n"...)
			if err := step(1); err != nil {
				return err
			}
			if err := step(1); err != nil {
				return err
			}
			continue
		}
		for range depth {
			out = append(out, beanstalkPut...)
		}
		for range depth {
			out = append(out, "reserve\r\n"...)
		}
		if err := step(deletes + 2*depth); err != nil {
			return err
		}
		deletes = depth
	}
	return step(deletes)
}

// fill puts jobs on the first connection.
func (r *beanstalkRival) fill(b *testing.B, jobs int) {
	b.Helper()
	nc := r.conns[0]
	const batch = 1000
	puts := bytes.Repeat([]byte(beanstalkPut), batch)
	in := bufio.NewReaderSize(nc, 64<<10)
	for range jobs / batch {
		if _, err := nc.Write(puts); err != nil {
			b.Fatal(err)
		}
		for range batch {
			if line, err := in.ReadSlice('\n'); err != nil || !bytes.HasPrefix(line, []byte("INSERTED ")) {
				b.Fatalf("%s: %q %v", r.name, line, err)
			}
		}
	}
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}
