package machine

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Processor reads the CPU time of a program and of the machine from /proc. On systems without /proc, nothing is
// known.
type Processor struct {
	// Pid is the process ID of the program. The CPU time includes the process, all its descendants, and its process
	// group. 0: no program.
	Pid int
}

// Found reports whether the CPU time of the program is known.
func (p *Processor) Found() bool { return p.Now().Program >= 0 }

// Tick is the unit of CPU times in /proc, which is the same on all Linux systems.
const Tick = 10 * time.Millisecond

// Time is the CPU time used until some time. Negative values are not known.
type Time struct {
	Program, Machine time.Duration // CPU time of the program; CPU time of all processes and the kernel
	Idle             time.Duration // idle time of all processors
	Threads          int           // number of threads of the program; 0: not known
}

// Now returns the CPU times until now of the machine and of the program with its descendants. The time of the program
// is -1 if no program is measured.
func (p *Processor) Now() Time {
	t := Time{Program: -1}
	t.Machine, t.Idle = machineTime()
	if p.Pid != 0 {
		t.Program, t.Threads = familyTime(p.Pid)
	}
	return t
}

// Since returns the CPU time used between two times.
func (t Time) Since(before Time) Time {
	return Time{Elapsed(before.Program, t.Program), Elapsed(before.Machine, t.Machine),
		Elapsed(before.Idle, t.Idle), t.Threads}
}

// Elapsed returns the CPU time used between two times, or -1 if one of them is negative (not known).
func Elapsed(before, now time.Duration) time.Duration {
	if before < 0 || now < 0 {
		return -1
	}
	return max(0, now-before)
}

// machineTime returns the sums over all processors of the busy time and of the idle time since boot, or -1 if they
// are not known. Busy time excludes interrupts, most of which handle network traffic for both the load generator and
// the target.
func machineTime() (busy, idle time.Duration) {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return -1, -1
	}
	line, _, _ := strings.Cut(string(b), "\n")
	f := strings.Fields(line)
	if len(f) < 9 || f[0] != "cpu" {
		return -1, -1
	}
	const user, nice, system, idling, waiting, steal = 1, 2, 3, 4, 5, 8
	return ticks(f[user]) + ticks(f[nice]) + ticks(f[system]) + ticks(f[steal]), ticks(f[idling]) + ticks(f[waiting])
}

// process is the content of /proc/PID/stat.
type process struct {
	pid, parent, group int
	time               time.Duration // CPU time of the process and of those of its children that have ended
	threads            int
}

// readProcess reads a file /proc/PID/stat. It returns false if the process has ended.
func readProcess(file string) (process, bool) {
	b, err := os.ReadFile(file)
	if err != nil {
		return process{}, false
	}
	// The program's name is in parentheses and may contain any character, including parentheses.
	s := string(b)
	open, shut := strings.IndexByte(s, '('), strings.LastIndexByte(s, ')')
	if open < 1 || shut < open {
		return process{}, false
	}
	f := strings.Fields(s[shut+1:])
	const parent, group, user, childrenSystem, threads = 1, 2, 11, 14, 17
	if len(f) <= threads {
		return process{}, false
	}
	p := process{}
	p.pid, _ = strconv.Atoi(strings.TrimSpace(s[:open]))
	p.parent, _ = strconv.Atoi(f[parent])
	p.group, _ = strconv.Atoi(f[group])
	p.threads, _ = strconv.Atoi(f[threads])
	for _, n := range f[user : childrenSystem+1] {
		p.time += ticks(n)
	}
	return p, true
}

// familyTime returns the CPU time and the number of threads of a process, its process group and all its descendants.
// sum is -1 if the process does not exist.
func familyTime(pid int) (sum time.Duration, threads int) {
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	all := map[int]process{}
	for _, name := range files {
		if p, ok := readProcess(name); ok {
			all[p.pid] = p
		}
	}
	if _, ok := all[pid]; !ok {
		return -1, 0
	}
	for _, p := range all {
		for q, ok := p, true; ok; q, ok = all[q.parent] {
			if q.pid == pid || q.group == pid {
				sum += p.time
				threads += p.threads
				break
			}
		}
	}
	return sum, threads
}

// ticks parses a number of ticks.
func ticks(s string) time.Duration {
	n, _ := strconv.ParseInt(s, 10, 64)
	return time.Duration(n) * Tick
}
