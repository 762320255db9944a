//go:build unix

package refserver_test

import (
	"context"
	"io"
	"net"
	"runtime"
	"syscall"
	"testing"

	"jobwire/codec/gearman"
	"jobwire/refserver"
	machine "jobwire/refserver/gearman"
)

// TestIdleConnections checks that an idle connection takes at most 12 KiB of memory, both ends included, after it has been used once.
func TestIdleConnections(t *testing.T) {
	if testing.Short() {
		t.Skip("short")
	}
	want := 10_000
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if room := (int(limit.Cur) - 200) / 2; room < want {
		if room < 2000 {
			t.Skipf("the limit of %d descriptors leaves too little room", limit.Cur)
		}
		want = room
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := refserver.New(machine.New(machine.Options{}), refserver.Options{Protocol: gearman.Protocol})
	defer srv.Close()
	go srv.Serve(context.Background(), ln)
	memory := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapInuse + m.StackInuse
	}
	echo := []byte("\x00REQ\x00\x00\x00\x10\x00\x00\x00\x05hello")
	before := memory()
	conns := make([]net.Conn, want)
	answer := make([]byte, len(echo))
	for i := range conns {
		nc, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		nc.(*net.TCPConn).SetLinger(0) // do not leave the port in TIME_WAIT
		conns[i] = nc
		nc.Write(echo)
		if _, err := io.ReadFull(nc, answer); err != nil {
			t.Fatal(err)
		}
	}
	each := (memory() - before) / uint64(want)
	t.Logf("%d connections, %d bytes each, both ends", want, each)
	if each > 12<<10 {
		t.Errorf("an idle connection takes %d bytes", each)
	}
}
