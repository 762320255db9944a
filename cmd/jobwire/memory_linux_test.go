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

// TestPeakMemory runs the program against servers that send without end, or a million rows, and with large payloads: its
// memory stays below maxPeak. These commands needed the most memory. The short form runs two of them.
func TestPeakMemory(t *testing.T) {
	jobwire, err := exec.LookPath("jobwire") // TestMain compiles it
	if err != nil {
		t.Fatal(err)
	}
	for i, tt := range []struct {
		name        string
		args        string
		first, then string // what the server sends: then without end; if it is empty, first as the reply to each request
	}{
		{"endless lines", "conform danga --timeout 1s", "", strings.Repeat("AAAA\n", 10_000)},
		{"endless lines", "conform gearman --run gearman.echo.*", "", strings.Repeat("AAAA\n", 10_000)},
		{"an endless line", "audit stress gearman delays", "", strings.Repeat("A", 50_000)},
		{"an endless list", "bench run gearmonkey --count 100", "*1000000\r\n", strings.Repeat("$1\r\nx\r\n", 10_000)},
		{"4 GiB", "fuzz beanstalk --duration 1s", "RESERVED 1 4294967295\r\n", strings.Repeat("A", 50_000)},
		{"a million rows", "conform gearman --run gearman.admin.*", strings.Repeat("f\t0\t0\t0\n", 1_000_000) + ".\n", ""},
		{"a long list", "conform gearman --run gearman.admin.*", strings.Repeat("f\t0\t0\t0\n", 200_000) + ".\n", ""},
		{"a million rows", "conform gearmonkey", "*1000000\r\n" + strings.Repeat("$1\r\nx\r\n", 1_000_000), ""},
		{"a million rows", "conform beanstalk", "OK 4000004\r\n---\n" + strings.Repeat("- a\n", 1_000_000) + "\r\n", ""},
		{"large payloads", "audit stress gearman large", "", ""},
		{"large payloads", "audit stress danga large", "", ""},
		{"large payloads", "audit stress gearmonkey large", "", ""},
	} {
		if testing.Short() && (i%3 != 0 || i > 3) {
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
						request := make([]byte, 64<<10)
						for err := error(nil); tt.then == "" && err == nil; {
							if _, err = c.Read(request); err == nil {
								_, err = c.Write([]byte(tt.first))
							}
						}
						_, err := c.Write([]byte(tt.first))
						for err == nil {
							_, err = c.Write([]byte(tt.then))
						}
					}()
				}
			}()
			args := strings.Fields(tt.args)
			if tt.first+tt.then != "" { // else the built-in server is tested
				args = append(args, "--addr", ln.Addr().String())
			}
			cmd := exec.Command(jobwire, args...)
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
			limit := 2 * time.Second
			if tt.then == "" { // the command ends, or needs the most memory later
				limit = 8 * time.Second
			}
			interrupt := time.After(limit)
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
