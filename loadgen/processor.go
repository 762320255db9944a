package loadgen

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Processor reads the processor time of a program that others run in, and of the machine,
// from /proc. Where there is none, nothing is known.
type Processor struct {
	// Pid is the program's process: it counts with all that it has started, and all of its
	// process group. 0 is none.
	Pid int
}

// Found reports whether the program's processor time can be known.
func (p *Processor) Found() bool { return p.now().program >= 0 }

// tick is the unit of times in /proc, the same on every Linux.
const tick = 10 * time.Millisecond

// processorTime is what had been used at some moment, in all. What is not known is below zero.
type processorTime struct {
	program, machine time.Duration
	idle             time.Duration // of all processors
	threads          int           // of the program; 0 is unknown
}

func (p *Processor) now() processorTime {
	t := processorTime{program: -1}
	t.machine, t.idle = machineTime()
	if p.Pid != 0 {
		t.program, t.threads = familyTime(p.Pid)
	}
	return t
}

// since is what was used between two moments.
func (t processorTime) since(before processorTime) processorTime {
	diff := func(now, then time.Duration) time.Duration {
		if now < 0 || then < 0 {
			return -1
		}
		return max(0, now-then)
	}
	return processorTime{diff(t.program, before.program), diff(t.machine, before.machine), diff(t.idle, before.idle), t.threads}
}

// machineTime is for how long all processors together have been busy. The time of interrupts
// is left out: most of it is the network's, which works for both ends. idle is for
// how long they had nothing to do.
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

// process is one line of /proc/PID/stat.
type process struct {
	pid, parent, group int
	time               time.Duration // its own, and that of its children that have ended
	threads            int
}

func readProcess(file string) (process, bool) {
	b, err := os.ReadFile(file)
	if err != nil {
		return process{}, false
	}
	// The program's name stands in parentheses and may contain anything, parentheses too.
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

// familyTime is what a process has used, with its group and all descendants, and how many threads
// they have.
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

func ticks(s string) time.Duration {
	n, _ := strconv.ParseInt(s, 10, 64)
	return time.Duration(n) * tick
}
