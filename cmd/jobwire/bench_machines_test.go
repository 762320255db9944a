//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"jobwire/cmd/internal/cli"
	"jobwire/internal/peers"
	"jobwire/loadgen/report"
)

// machines are network namespaces: one of the queue, and two of load generators, each with a link to the queue.
type machines struct {
	prefix string // start of the names of the namespaces
	self   string // file name of jobwire
	dir    string // for results
}

func newMachines(t *testing.T) *machines {
	t.Helper()
	peers.Need(t, "ip")
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	m := &machines{fmt.Sprintf("jobwire-%d-", os.Getpid()), jobwireItself(t), t.TempDir()}
	ip := func(line string) {
		t.Helper()
		args := strings.Fields(strings.ReplaceAll(line, "@", m.prefix))
		if out, err := exec.CommandContext(t.Context(), "ip", args...).CombinedOutput(); err != nil {
			t.Skipf("cannot make network namespaces: ip %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	for _, name := range []string{"queue", "0", "1"} {
		ip("netns add @" + name)
		t.Cleanup(func() { exec.Command("ip", "netns", "del", m.prefix+name).Run() })
	}
	for i := range 2 {
		ip(fmt.Sprintf("-n @queue link add to%d type veth peer name eth0 netns @%d", i, i))
		ip(fmt.Sprintf("-n @queue addr add 10.9.%d.1/30 dev to%d", i, i))
		ip(fmt.Sprintf("-n @%d addr add 10.9.%d.2/30 dev eth0", i, i))
		ip(fmt.Sprintf("-n @queue link set to%d up", i))
		ip(fmt.Sprintf("-n @%d link set eth0 up", i))
	}
	return m
}

// command returns a command that runs jobwire on a machine: "queue", "0" or "1".
func (m *machines) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "ip", append([]string{"netns", "exec", m.prefix + name, m.self}, args...)...)
}

// share returns a command that generates a share of a load on a machine, and its progress.
func (m *machines) share(t *testing.T, machine, index int, at string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := m.command(t.Context(), fmt.Sprint(machine), "bench", "run", "gearman", "--addr", fmt.Sprintf("10.9.%d.1:4730", machine),
		"--shares", "3", "--share-index", fmt.Sprint(index), "--start-at", at, "--output", filepath.Join(m.dir, fmt.Sprint(index)+".json"),
		"--clients", "6", "--workers", "3", "--duration", "4s", "--interval", "100ms", "--slo", "max<1h")
	progress := startWithErrors(t, cmd)
	return cmd, bufio.NewScanner(progress)
}

// measuring waits until a line of progress is about the measured part.
func measuring(t *testing.T, progress *bufio.Scanner) {
	t.Helper()
	for progress.Scan() {
		if line := progress.Text(); strings.Contains(line, "jobs/s") && !strings.Contains(line, "warm-up") {
			return
		}
	}
	t.Fatal("the run ended before its measured part")
}

// TestBenchOnTwoMachines generates a load in three shares on two machines. One process is killed in the middle, and
// one starts late. The merged result must have the jobs of the other two shares, and name the missing one.
func TestBenchOnTwoMachines(t *testing.T) {
	t.Parallel()
	m := newMachines(t)
	queue := m.command(t.Context(), "queue", "serve", "gearman", "--listen", "0.0.0.0:4730")
	out := startWithErrors(t, queue)
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("serve: %q, %v", line, err)
	}
	go io.Copy(io.Discard, out)

	at := time.Now().Add(2 * time.Second).UTC().Format(time.RFC3339Nano)
	steady, steadyProgress := m.share(t, 0, 0, at)
	killed, killedProgress := m.share(t, 1, 1, at)
	measuring(t, steadyProgress)
	late, lateProgress := m.share(t, 1, 2, at)
	measuring(t, killedProgress)
	killed.Process.Kill()
	for _, progress := range []*bufio.Scanner{steadyProgress, lateProgress, killedProgress} {
		for progress.Scan() {
		}
	}
	if err := errors.Join(steady.Wait(), late.Wait()); err != nil {
		t.Fatal(err)
	}
	killed.Wait()

	var merged, stderr bytes.Buffer
	if status := run(t.Context(), []string{"bench", "merge", m.dir, "--format", "json"}, strings.NewReader(""), &merged, &stderr); status != cli.StatusInvalid {
		t.Errorf("merge has status %d: %s", status, stderr.String())
	}
	var got report.Report
	if err := json.Unmarshal(merged.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	jobs := int64(0)
	for _, index := range []int{0, 2} {
		reports, err := report.ReadFile(filepath.Join(m.dir, fmt.Sprint(index)+".json"))
		if err != nil {
			t.Fatal(err)
		}
		jobs += reports[0].Jobs
	}
	if got.Jobs != jobs || got.Latency["total"].Count != jobs || !got.NoFaults() {
		t.Errorf("%d jobs, %d latencies, %+v; want %d jobs without faults", got.Jobs, got.Latency["total"].Count, got.Account, jobs)
	}
	if !slices.Equal(got.Merged.Missing, []int{1}) || len(got.Merged.LeftOut) != 1 || !strings.Contains(got.Merged.LeftOut[0], "1.json: the file is empty") {
		t.Errorf("missing %v, left out %q", got.Merged.Missing, got.Merged.LeftOut)
	}
	if p := got.Merged.Parts; len(p) != 2 || p[0].Late != 0 || p[1].Late <= 0 || p[1].Seconds >= p[0].Seconds {
		t.Errorf("shares %+v", p)
	}
	if len(got.Objectives) != 1 || got.Objectives[0].Result != report.Passed {
		t.Errorf("objectives %+v", got.Objectives)
	}
}
