package fuzz

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// usage is what a process has and has used.
type usage struct {
	resident    int64 // bytes
	descriptors int
	processor   time.Duration
}

var pageSize = int64(os.Getpagesize())

// usageOf reads what the system tells of a process.
func usageOf(pid int) (u usage, ok bool) {
	if pid == 0 {
		return u, false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return u, false
	}
	// The name in parentheses may hold anything.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 22 {
		return u, false
	}
	number := func(i int) int64 {
		n, _ := strconv.ParseInt(string(fields[i]), 10, 64)
		return n
	}
	const tick = 10 * time.Millisecond // USER_HZ is 100 wherever Go runs on Linux
	u.processor = time.Duration(number(11)+number(12)) * tick
	u.resident = number(21) * pageSize
	dir, err := os.Open(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return u, false
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	u.descriptors = len(names)
	return u, err == nil
}
