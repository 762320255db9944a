package main

import (
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"jobwire/internal/target"
)

// TestTenThousandIdleConnections holds that many connections to a server in a
// process of its own. It must stay small, and go on serving others.
func TestTenThousandIdleConnections(t *testing.T) {
	const connections = 10_000
	if runtime.GOOS != "linux" {
		t.Skip("it reads /proc")
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur < connections+200 {
		t.Skipf("the limit of %d descriptors leaves too little room: %v", limit.Cur, err)
	}
	jobwire, err := exec.LookPath("jobwire") // the test binary, by TestMain
	if err != nil {
		t.Fatal(err)
	}
	srv, err := target.Command{Args: []string{jobwire, "serve", "gearman", "--listen", "127.0.0.1:{port}"}}.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Stop()

	memory := func() int {
		nc, err := net.Dial("tcp", srv.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		io.WriteString(nc, "getpid\n")
		reply := make([]byte, 64)
		n, _ := nc.Read(reply)
		pid := strings.TrimSpace(strings.TrimPrefix(string(reply[:n]), "OK "))
		status, err := os.ReadFile(filepath.Join("/proc", pid, "status"))
		if err != nil {
			t.Fatalf("getpid was answered by %q: %v", reply[:n], err)
		}
		_, rest, _ := strings.Cut(string(status), "VmRSS:")
		kb, err := strconv.Atoi(strings.Fields(rest)[0])
		if err != nil {
			t.Fatal(err)
		}
		return kb
	}

	before := memory()
	for range connections {
		nc, err := net.Dial("tcp", srv.Addr())
		if err != nil {
			t.Fatal(err)
		}
		nc.(*net.TCPConn).SetLinger(0) // leaves no port behind
		defer nc.Close()
	}
	status := run(t.Context(), []string{"play", "-q", filepath.Join(corpusDir(t), "gearman", "example.wire"), "--addr", srv.Addr()}, nil, io.Discard, io.Discard)
	if status != exitHeld {
		t.Errorf("among them, the example falls short: status %d", status)
	}
	grown := memory() - before
	t.Logf("%d idle connections take %d KiB", connections, grown)
	// It is 5 KiB each; the race detector takes five times that. A buffer held
	// for each would show in either.
	if grown > connections*48 {
		t.Errorf("%d idle connections take %d KiB, more than 48 KiB each", connections, grown)
	}
}
