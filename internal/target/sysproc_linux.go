package target

import (
	"io"
	"net"
	"syscall"
)

// ownGroup gives the program a process group of its own, and lets it die with
// the thread that starts it.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// claim takes a port from all other programs that ask for it here, until it is closed or
// this one ends. The name of a socket that stands in no folder is what is taken: nobody who wants to listen on
// the port is in the way of it.
func claim(port string) (io.Closer, error) { return net.Listen("unix", "@jobwire/port/"+port) }
