//go:build unix

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

	"jobwire/cmd/internal/cli"
	"jobwire/internal/target"
)

// TestTenThousandIdleConnections keeps 10,000 idle connections open to a server in
// a process of its own. The server must use little memory for them, and still serve
// other connections.
func TestTenThousandIdleConnections(t *testing.T) {
	const connections = 10_000
	if runtime.GOOS != "linux" {
		t.Skip("it reads /proc")
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur < connections+200 {
		t.Skipf("the limit of %d descriptors leaves too little room: %v", limit.Cur, err)
	}
	jobwire, err := exec.LookPath("jobwire") // TestMain compiles it
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
		nc.(*net.TCPConn).SetLinger(0) // close with a reset, so that the port is free at once
		defer nc.Close()
	}
	status := run(t.Context(), []string{"play", "-q", filepath.Join(corpusDir(t), "gearman", "example.wire"), "--addr", srv.Addr()}, nil, io.Discard, io.Discard)
	if status != cli.StatusOK {
		t.Errorf("among them, the example falls short: status %d", status)
	}
	grown := memory() - before
	t.Logf("%d idle connections take %d KiB", connections, grown)
	// A connection takes 5 KiB, and five times that with the race detector. The limit
	// is low enough to detect a buffer for each connection in both cases.
	if grown > connections*48 {
		t.Errorf("%d idle connections take %d KiB, more than 48 KiB each", connections, grown)
	}
}
