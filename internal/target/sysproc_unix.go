//go:build unix && !linux

package target

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// ownGroup gives the program a process group of its own.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// WaitGroup waits for a program that leads a process group, and kills the rest of the group.
func WaitGroup(cmd *exec.Cmd) error {
	err := cmd.Wait()
	syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	return err
}

// claim takes a port from all other programs that ask for it here, until it is closed or
// this one ends, by a lock on a file.
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
