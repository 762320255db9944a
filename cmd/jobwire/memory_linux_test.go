package main

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// maxPeak is the most memory in bytes that a command may need while a server sends without end (docs/performance.md).
const maxPeak = 256 << 20

// TestPeakMemory runs the program against servers that send without end: its memory stays below maxPeak. These commands
// needed the most memory. The short form runs two of them.
func TestPeakMemory(t *testing.T) {
	jobwire, err := exec.LookPath("jobwire") // TestMain makes it run the test binary
	if err != nil {
		t.Fatal(err)
	}
	for i, tt := range []struct {
		name        string
		args        string
		first, then string
	}{
		{"endless lines", "conform danga --timeout 1s", "", strings.Repeat("AAAA\n", 10_000)},
		{"endless lines", "conform gearman --run gearman.echo.*", "", strings.Repeat("AAAA\n", 10_000)},
		{"an endless line", "audit stress gearman delays", "", strings.Repeat("A", 50_000)},
		{"an endless list", "bench run gearmonkey --count 100", "*1000000\r\n", strings.Repeat("$1\r\nx\r\n", 10_000)},
		{"4 GiB", "fuzz beanstalk --duration 1s", "RESERVED 1 4294967295\r\n", strings.Repeat("A", 50_000)},
	} {
		if testing.Short() && i%3 != 0 {
			continue
		}
		t.Run(tt.name+"/"+tt.args, func(t *testing.T) {
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer ln.Close()
			go func() {
				for {
					c, err := ln.Accept()
					if err != nil {
						return
					}
					go func() {
						defer c.Close()
						_, err := c.Write([]byte(tt.first))
						for err == nil {
							_, err = c.Write([]byte(tt.then))
						}
					}()
				}
			}()
			cmd := exec.Command(jobwire, append(strings.Fields(tt.args), "--addr", ln.Addr().String())...)
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr, cmd.Dir = &out, &out, t.TempDir()
			cmd.Env = append(os.Environ(), "GOGC=") // make sets a value for the tests, which users do not have
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan struct{})
			go func() {
				cmd.Wait()
				close(ended)
			}()
			interrupt := time.After(2 * time.Second)
			peak := 0
			for every := time.Tick(10 * time.Millisecond); ; {
				select {
				case <-every:
					// The kernel counts the peak from the exec, so a few milliseconds at the end are missing at most.
					peak = max(peak, peakMemory(cmd.Process.Pid))
					continue
				case <-interrupt:
					cmd.Process.Signal(os.Interrupt)
					continue
				case <-ended:
				}
				break
			}
			t.Logf("%d MB", peak>>20)
			if peak == 0 || peak > maxPeak {
				t.Errorf("the command needed %d bytes, expected at most %d\n%s", peak, maxPeak, out.Bytes())
			}
		})
	}
}

// peakMemory returns the largest resident set of a process so far, in bytes, or 0.
func peakMemory(pid int) int {
	status, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	_, after, _ := strings.Cut(string(status), "VmHWM:")
	value, _, _ := strings.Cut(strings.TrimSpace(after), " ")
	kilobytes, _ := strconv.Atoi(value)
	return kilobytes << 10
}
