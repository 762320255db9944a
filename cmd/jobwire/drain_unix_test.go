//go:build unix

package main

import (
	"bufio"
	"io"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"jobwire/internal/target"
)

// TestDrainSignal checks that after SIGUSR1 the Beanstalk server refuses new jobs, but still assigns queued ones.
func TestDrainSignal(t *testing.T) {
	jobwire, err := exec.LookPath("jobwire") // TestMain compiles it
	if err != nil {
		t.Fatal(err)
	}
	srv, err := target.Command{Args: []string{jobwire, "serve", "beanstalk", "--listen", "127.0.0.1:{port}"}}.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Stop()
	nc, err := net.Dial("tcp", srv.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(20 * time.Second))
	r := bufio.NewReader(nc)
	// ask sends commands, reads lines until one begins with one of begins, and returns this line.
	ask := func(commands string, begins ...string) string {
		t.Helper()
		io.WriteString(nc, commands)
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			for _, b := range begins {
				if strings.HasPrefix(line, b) {
					return strings.TrimSpace(line)
				}
			}
		}
	}
	const put = "put 0 0 100 1\r\nx\r\n"
	ask(put, "INSERTED 1")
	pid, err := strconv.Atoi(strings.TrimPrefix(ask("stats\r\n", "pid: "), "pid: "))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	for ask(put, "INSERTED", "DRAINING") != "DRAINING" {
	}
	ask("reserve\r\n", "RESERVED 1 1")
}
