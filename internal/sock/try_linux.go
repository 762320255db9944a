package sock

import (
	"syscall"
	"unsafe"
)

// try reads into b, or writes b, without waiting. b must not be empty.
//
// Because try does not wait, it uses RawSyscall, which does not notify the Go scheduler. The notification would wake
// the scheduler's monitor thread of an idle process, which costs a quarter of the processor time if messages arrive one
// by one.
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
