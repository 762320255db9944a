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
}

func (p *Processor) now() processorTime {
	t := processorTime{-1, machineTime()}
	if p.Pid != 0 {
		t.program = familyTime(p.Pid)
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
	return processorTime{diff(t.program, before.program), diff(t.machine, before.machine)}
}

// machineTime is for how long all processors together have been busy. The time of interrupts
// is left out: most of it is the network's, which works for those who are measured.
func machineTime() time.Duration {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return -1
	}
	line, _, _ := strings.Cut(string(b), "\n")
	f := strings.Fields(line)
	if len(f) < 9 || f[0] != "cpu" {
		return -1
	}
	const user, nice, system, steal = 1, 2, 3, 8
	return ticks(f[user]) + ticks(f[nice]) + ticks(f[system]) + ticks(f[steal])
}

// process is one line of /proc/PID/stat.
type process struct {
	pid, parent, group int
	time               time.Duration // its own, and that of its children who have ended
}

func readProcess(file string) (process, bool) {
	b, err := os.ReadFile(file)
	if err != nil {
		return process{}, false
	}
	// The program's name stands in parentheses and may hold anything, parentheses too.
	s := string(b)
	open, shut := strings.IndexByte(s, '('), strings.LastIndexByte(s, ')')
	if open < 1 || shut < open {
		return process{}, false
	}
	f := strings.Fields(s[shut+1:])
	const parent, group, user, childrenSystem = 1, 2, 11, 14
	if len(f) <= childrenSystem {
		return process{}, false
	}
	p := process{}
	p.pid, _ = strconv.Atoi(strings.TrimSpace(s[:open]))
	p.parent, _ = strconv.Atoi(f[parent])
	p.group, _ = strconv.Atoi(f[group])
	for _, n := range f[user : childrenSystem+1] {
		p.time += ticks(n)
	}
	return p, true
}

// familyTime is what a process has used, with its group and all descendants.
func familyTime(pid int) time.Duration {
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	all := map[int]process{}
	for _, name := range files {
		if p, ok := readProcess(name); ok {
			all[p.pid] = p
		}
	}
	if _, ok := all[pid]; !ok {
		return -1
	}
	sum := time.Duration(0)
	for _, p := range all {
		for q, ok := p, true; ok; q, ok = all[q.parent] {
			if q.pid == pid || q.group == pid {
				sum += p.time
				break
			}
		}
	}
	return sum
}

func ticks(s string) time.Duration {
	n, _ := strconv.ParseInt(s, 10, 64)
	return time.Duration(n) * tick
}
