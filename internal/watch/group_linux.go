package watch

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// tick is the unit of processor times in /proc.
const tick = 10 * time.Millisecond

// Group returns what a process and its descendants have used.
func Group(pid int) map[int]Process {
	all := map[int]Process{}
	add(all, pid)
	return all
}

// add adds a process and its descendants.
func add(all map[int]Process, pid int) {
	if _, known := all[pid]; known {
		return
	}
	var p Process
	var ok bool
	if p.Usage, ok = usageOf(pid); !ok {
		return
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if err != nil || len(fields) < 18 {
		return
	}
	number := func(i int) int {
		n, _ := strconv.Atoi(string(fields[i]))
		return n
	}
	p.System = time.Duration(number(12)) * tick
	p.Ran = p.System + time.Duration(number(11))*tick
	p.Threads = number(17)
	p.Waited = longestWait(pid)
	all[pid] = p
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, name := range lists {
		b, _ := os.ReadFile(name)
		for _, word := range bytes.Fields(b) {
			if child, err := strconv.Atoi(string(word)); err == nil {
				add(all, child)
			}
		}
	}
}
