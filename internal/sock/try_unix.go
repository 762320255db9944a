//go:build unix && !linux

package sock

import "syscall"

// try reads into b, or writes b, without waiting. b must not be empty.
func try(call, fd uintptr, b []byte) (n int, err error) {
	do := syscall.Read
	if call == syscall.SYS_WRITE {
		do = syscall.Write
	}
	for {
		if n, err = do(int(fd), b); err != syscall.EINTR {
			return max(n, 0), err
		}
	}
}
