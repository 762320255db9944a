//go:build unix && !linux

package target

import "syscall"

// ownGroup gives the program a process group of its own.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
