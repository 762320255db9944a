package target

import "syscall"

// ownGroup gives the program a process group of its own, and lets it die with
// the thread that starts it.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
