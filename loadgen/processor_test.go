package loadgen

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
	const child = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"
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
	before := p.now()
	if before.program < 0 || before.machine < 0 {
		t.Fatalf("nothing is known: %+v", before)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	used := p.now().since(before)
	if used.program < 2*tick || used.program > time.Minute {
		t.Errorf("the child's loop took %v", used.program)
	}
	in.Close()
	cmd.Wait()
	if gone := p.now(); gone.program >= 0 {
		t.Errorf("a process that has ended used %v", gone.program)
	}
}
