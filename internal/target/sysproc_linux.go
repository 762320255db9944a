package target

import (
	"io"
	"net"
	"os/exec"
	"syscall"
)

// ownGroup gives the program a process group of its own, and lets it die with
// the thread that starts it.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// WaitGroup waits for a program that leads a process group, and kills the rest of the group when it has
// exited. That comes before the exit status is collected: until then no other process gets the
// number of the group.
func WaitGroup(cmd *exec.Cmd) error {
	const byPID, exited, keep = 1, 0x4, 0x01000000 // P_PID, WEXITED, WNOWAIT
	for {
		_, _, err := syscall.Syscall6(syscall.SYS_WAITID, byPID, uintptr(cmd.Process.Pid), 0, exited|keep, 0, 0)
		if err != syscall.EINTR {
			break
		}
	}
	syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	return cmd.Wait()
}

// claim takes a port from all other programs that ask for it here, until it is closed or
// this one ends. The name of a socket that stands in no folder is what is taken: nobody who wants to listen on
// the port is in the way of it.
func claim(port string) (io.Closer, error) { return net.Listen("unix", "@jobwire/port/"+port) }
