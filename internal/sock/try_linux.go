package sock

import (
	"syscall"
	"unsafe"
)

// try reads into b or writes it, which must not be empty, and does not wait.
//
// Because it does not, it need not be announced to Go's scheduler. That would
// wake the scheduler's monitor whenever a process has been idle for a moment, and
// cost it a quarter of its time when messages come one by one.
func try(call, fd uintptr, b []byte) (int, error) {
	for {
		n, _, err := syscall.RawSyscall(call, fd, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
		switch err {
		case 0:
			return int(n), nil
		case syscall.EINTR:
		default:
			return 0, err
		}
	}
}
