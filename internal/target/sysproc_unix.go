//go:build unix && !linux

package target

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// ownGroup makes the program the leader of a process group.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// keepLimits does nothing: programs of root may raise their limits.
func keepLimits() {}

// WaitGroup waits for the leader of a process group, and kills the rest of the group.
func WaitGroup(cmd *exec.Cmd) error {
	err := cmd.Wait()
	syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	return err
}

// resident returns 0: the memory of a process is not known.
func resident(int) int64 { return 0 }

// claim reserves a port among all jobwire processes on this machine, until the result is closed or this process ends.
// It locks a file.
func claim(port string) (io.Closer, error) {
	f, err := os.OpenFile(filepath.Join(os.TempDir(), "jobwire-port-"+port+".lock"), os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// stopped returns false: it is not known whether a signal has stopped a process.
func stopped(int) bool { return false }
