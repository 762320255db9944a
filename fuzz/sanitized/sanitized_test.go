package sanitized

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	_ "jobwire/catalog" // registers the model of the protocol
	"jobwire/codec/beanstalk"
	"jobwire/conform"
	"jobwire/fuzz"
	"jobwire/fuzz/exec"
	"jobwire/fuzz/input"
	"jobwire/fuzz/triage"
	"jobwire/internal/crash"
	"jobwire/internal/peers"
	"jobwire/internal/target"
	"jobwire/internal/watch"
)

// buildSanitized compiles the Beanstalk server in testdata with AddressSanitizer and UndefinedBehaviorSanitizer and with
// the fault of the given number, and returns the path of the program. The source file describes the faults; 0 means no
// fault.
func buildSanitized(t *testing.T, fault int) string {
	t.Helper()
	gcc := peers.Need(t, "gcc")
	program := filepath.Join(t.TempDir(), fmt.Sprintf("server-%d", fault))
	out, err := osexec.Command(gcc, "-g", "-O1", "-fsanitize=address,undefined", "-fno-omit-frame-pointer", fmt.Sprintf("-DFAULT=%d", fault),
		"-o", program, filepath.Join("testdata", "server.c")).CombinedOutput()
	if err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	return program
}

// runSanitized starts a program, sends it requests on one connection, each after the reply to the previous one, and stops
// it with SIGTERM. It returns the error of os/exec if the program ended before, the output of the program, and the last
// reply.
func runSanitized(t *testing.T, program string, requests ...string) (exit, output, reply string) {
	t.Helper()
	// The program must outlive the context of the test, which ends before its cleanups.
	s, err := target.Command{Name: "server", Args: []string{program, "{port}"}}.Start(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	c, err := target.Dial(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(20 * time.Second))
	r := bufio.NewReader(c)
	for _, request := range requests {
		if _, err = io.WriteString(c, request+"\r\n"); err != nil {
			break
		}
		if reply, err = r.ReadString('\n'); err != nil {
			break
		}
		if strings.HasPrefix(reply, "RESERVED ") || strings.HasPrefix(reply, "FOUND ") {
			if _, err = r.ReadString('\n'); err != nil { // the body
				break
			}
		}
	}
	if err != nil {
		select {
		case <-s.Done():
		case <-time.After(20 * time.Second):
			t.Fatal("the server closed the connection, but did not end")
		}
		var e *target.Error
		if errors.As(s.Err(), &e) {
			return e.Exit, e.Output, ""
		}
	}
	s.Stop()
	return "", s.Output(), strings.TrimSpace(reply)
}

// TestSanitizedFaults tests that each injected memory fault of a server that is built with sanitizers produces the
// expected report, with the same bucket each time, and that the server without a fault produces none.
func TestSanitizedFaults(t *testing.T) {
	const put, reserve = "put 7 0 60 4\r\ntest", "reserve-with-timeout 0"
	long := strings.Repeat("n", 200)
	tests := []struct {
		fault    int
		requests []string
		buckets  []string // buckets of the expected reports, without "AddressSanitizer " and the place
	}{
		{0, []string{"use " + long, put, "put 4294967295 0 60 0\r\n", "watch " + long, reserve, "release 1 0 0", reserve, "release 1 0 1", "delete 1",
			"delete 99", reserve, "peek 2", "bury 2 3"}, nil},
		{1, []string{"use " + long[1:], "use " + long}, []string{"heap-buffer-overflow: copy_name < dispatch < process_one"}},
		{1, []string{"watch " + long}, []string{"heap-buffer-overflow: copy_name < dispatch < process_one"}},
		{2, []string{put, "delete 1", put, reserve, "release 2 1 0", "delete 2"}, []string{"heap-use-after-free: remove_job < dispatch < process_one"}},
		{3, []string{"put 4294967294 0 60 4\r\ntest", "put 4294967295 0 60 4\r\ntest", "delete 1", "delete 2"},
			[]string{"LeakSanitizer leak: add_job < process_one < transfer"}},
		{4, []string{put, "delete 1", "delete 1"}, nil}, // the memory is reachable
		{5, []string{put, reserve, "release 1 1 1"}, []string{"double-free: release_delayed < dispatch < process_one"}},
		{5, []string{put, reserve, "release 1 0 0"}, []string{"double-free: release_urgent < dispatch < process_one"}},
		{6, []string{put, reserve, "put 7 0 60 0\r\n", reserve}, []string{"stack-overflow: digits"}},
	}
	programs := map[int]string{}
	for _, test := range tests {
		if programs[test.fault] == "" {
			programs[test.fault] = buildSanitized(t, test.fault)
		}
		t.Run(fmt.Sprint(test.fault), func(t *testing.T) {
			var first []string
			for range 2 { // the addresses differ
				exit, output, reply := runSanitized(t, programs[test.fault], test.requests...)
				var buckets, got []string
				for _, r := range crash.ParseAll(output) {
					bucket := r.Bucket()
					buckets = append(buckets, bucket)
					bucket, _, _ = strings.Cut(bucket, " at server.c:")
					got = append(got, strings.TrimPrefix(bucket, "AddressSanitizer "))
				}
				if !slices.Equal(got, test.buckets) {
					t.Fatalf("got the reports %q, want %q; exit %q, last reply %q, output:\n%s", got, test.buckets, exit, reply, output)
				}
				if first == nil {
					first = buckets
				} else if !slices.Equal(buckets, first) {
					t.Errorf("buckets of two runs: %q and %q", first, buckets)
				}
				crashes := len(test.buckets) > 0 && test.fault != 3
				if crashes != (exit != "") {
					t.Errorf("exit %q, last reply %q", exit, reply)
				}
				if r := crash.Ended(exit, output); crashes && (r.Tool != "AddressSanitizer" || r.Bucket() != buckets[0]) {
					t.Errorf("Ended: %+v", r)
				}
				if all := crash.ParseAll(output); test.fault == 3 && (len(all) == 0 || all[0].Leaked != 40) {
					t.Errorf("the leak is in %+v", all)
				}
			}
		})
	}
}

// TestSanitizedGrowth tests that a leak of memory that is still reachable (fault 4), which sanitizers do not report,
// makes the memory of the server's process grow.
func TestSanitizedGrowth(t *testing.T) {
	const requests = 4000
	var growth [2]int64
	for i, fault := range []int{0, 4} {
		s, err := target.Command{Args: []string{buildSanitized(t, fault), "{port}"}}.Start(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		defer s.Stop()
		before, ok := watch.Of(s)
		if !ok {
			t.Skip("the memory of a process cannot be read")
		}
		c, err := target.Dial(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(20 * time.Second))
		go io.WriteString(c, strings.Repeat("delete 1\r\n", requests))
		if _, err := io.ReadFull(c, make([]byte, requests*len("NOT_FOUND\r\n"))); err != nil {
			t.Fatal(err)
		}
		after, _ := watch.Of(s)
		growth[i] = after.Resident - before.Resident
	}
	if growth[1]-growth[0] < requests*2048/2 {
		t.Errorf("the memory grows by %d bytes without the fault and by %d with it", growth[0], growth[1])
	}
}

// TestFindsSanitized tests that the fuzzer finds the faults of a server that was compiled with sanitizers, with the
// right cause and severity.
func TestFindsSanitized(t *testing.T) {
	if testing.Short() {
		t.Skip("takes minutes")
	}
	peers.Need(t, "gcc")
	suite, err := conform.Load(beanstalk.Protocol)
	if err != nil {
		t.Fatal(err)
	}
	var seeds []*input.Input
	for _, c := range suite.Cases {
		if in := input.FromScript(c.Script); in != nil {
			seeds = append(seeds, in)
		}
	}
	for _, tt := range []struct {
		name     string
		fault    int
		causes   int
		oracle   string
		severity triage.Severity
	}{
		{"heap overflow", 1, 1, exec.Sanitizer, triage.RemoteCrash}, {"use after free", 2, 1, exec.Sanitizer, triage.RemoteCrash}, {"leak at exit", 3, 1, exec.LeakReport, triage.ResourceExhaustion},
		{"leak of 2 KiB an input", 4, 1, exec.Memory, triage.ResourceExhaustion},
		{"double free in two places", 5, 2, exec.Sanitizer, triage.RemoteCrash}, {"stack overflow", 6, 1, exec.Sanitizer, triage.RemoteCrash},
	} {
		t.Run(tt.name, func(t *testing.T) {
			program := buildSanitized(t, tt.fault)
			found := map[string]triage.Severity{}                          // severity by key
			ctx, enough := context.WithTimeout(t.Context(), 5*time.Minute) // much more than it takes on an idle machine
			defer enough()
			start := time.Now()
			_, err := fuzz.Run(ctx, fuzz.Config{Protocol: beanstalk.Protocol, Seeds: seeds, Seed: 1, Minimize: 10 * time.Second, Server: triage.Server{Start: func(ctx context.Context) (target.Target, error) {
				return target.Command{Name: "server", Args: []string{program, "{port}"}, Env: exec.ServerEnv()}.Start(ctx)
			}}, Reports: triage.Reports{Found: func(fd *triage.Finding) {
				if fd.Reproduced && fd.Fault.Oracle == tt.oracle {
					t.Logf("after %v: %s: %s", time.Since(start).Round(time.Second), fd.Key, fd.Fault.Text)
					found[fd.Key] = triage.FaultSeverity(fd.Fault)
				}
				if len(found) == tt.causes {
					enough()
				}
			}}})
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			if len(found) != tt.causes {
				t.Errorf("expected %d causes, found %v", tt.causes, found)
			}
			for key, severity := range found {
				if severity != tt.severity {
					t.Errorf("%s: expected the severity %s, got %s", key, tt.severity, severity)
				}
			}
		})
	}
}
