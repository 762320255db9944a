package target

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// ownGroup makes the program the leader of a process group, and makes the kernel kill it when the thread that started
// it ends.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// keepLimits prevents the programs that this thread starts from raising their limits, which programs of root may
// otherwise do.
func keepLimits() { unix.Prctl(unix.PR_CAPBSET_DROP, unix.CAP_SYS_RESOURCE, 0, 0, 0) }

// WaitGroup waits for the leader of a process group, and kills the rest of the group when the leader has exited. It
// does so before it collects the exit status, because afterwards the ID of the group could be reused.
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

// claim reserves a port among all jobwire processes on this machine, until the result is closed or this process ends.
// It binds an abstract Unix socket with the port in its name, so that programs can still listen on the port itself.
func claim(port string) (io.Closer, error) { return net.Listen("unix", "@jobwire/port/"+port) }

// resident returns the resident memory of a process and its descendants, in bytes, or 0 if there is no such process.
func resident(pid int) int64 {
	statm, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0
	}
	var size, pages int64
	fmt.Sscan(string(statm), &size, &pages)
	sum := pages * int64(os.Getpagesize())
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, name := range lists {
		children, _ := os.ReadFile(name)
		for _, child := range strings.Fields(string(children)) {
			if id, err := strconv.Atoi(child); err == nil {
				sum += resident(id)
			}
		}
	}
	return sum
}

// stopped reports whether a signal has stopped a process, which may continue.
func stopped(pid int) bool {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	i := strings.LastIndex(string(stat), ") ")
	return i >= 0 && strings.HasPrefix(string(stat[i+2:]), "T")
}
