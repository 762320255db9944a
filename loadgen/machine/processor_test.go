package machine

import (
	"os"
	"os/exec"
	"testing"
	"time"
)

// TestProcessorCountsChildren tests that the CPU time of a program includes that of its child processes.
func TestProcessorCountsChildren(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("there is no /proc here")
	}
	const child = "i=0; while [ $i -lt 120000 ]; do i=$((i+1)); done"
	cmd := exec.Command("sh", "-c", "sh -c '"+child+"; echo; read x'; :")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := Processor{Pid: cmd.Process.Pid}
	before := p.Now()
	if before.Program < 0 || before.Machine < 0 {
		t.Fatalf("nothing is known: %+v", before)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	used := p.Now().Since(before)
	if used.Program < 2*Tick || used.Program > time.Minute {
		t.Errorf("the child's loop took %v", used.Program)
	}
	in.Close()
	cmd.Wait()
	if gone := p.Now(); gone.Program >= 0 {
		t.Errorf("a process that has ended used %v", gone.Program)
	}
}
