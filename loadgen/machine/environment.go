// Package machine describes the machine of a load generator, and reads the CPU time of the load generator, the target and
// the machine.
package machine

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"jobwire/internal/prose"
)

// Environment describes the machine and the system on which the load generator ran. Figures of two runs are
// comparable only if these are the same. Fields that are not known have zero values.
type Environment struct {
	Command []string `json:"command"` // command line of the load generator
	Host    string   `json:"host"`    // host name; in a container: that of the container
	// ID of this start of the machine, by which containers of one machine are recognized
	BootID     string `json:"boot_id"`
	System     string `json:"system"`       // operating system with its version, such as "linux 6.1.0"
	CPU        string `json:"cpu"`          // model name
	Processors int    `json:"processors"`   // number of processors of the machine
	Memory     int64  `json:"memory_bytes"` // memory of the machine, in bytes
	// maximum number of open files of the load generator; 0: not known or not limited
	OpenFiles int64 `json:"open_files_limit"`
}

// ReadEnvironment returns the environment of this process. command is its command line. On systems without /proc,
// only Command, Host, System and Processors are set.
func ReadEnvironment(command []string) *Environment {
	e := &Environment{Command: command, System: runtime.GOOS, Processors: runtime.NumCPU()}
	e.Host, _ = os.Hostname() // stays "" if it is not known
	if id, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err == nil {
		e.BootID = strings.TrimSpace(string(id))
	}
	if release, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		e.System += " " + strings.TrimSpace(string(release))
	}
	e.CPU = procField("/proc/cpuinfo", "model name")
	kibibytes, _, _ := strings.Cut(procField("/proc/meminfo", "MemTotal"), " ")
	if n, err := strconv.ParseInt(kibibytes, 10, 64); err == nil {
		e.Memory = n << 10
	}
	if limits := strings.Fields(procField("/proc/self/limits", "Max open files")); len(limits) > 0 {
		e.OpenFiles, _ = strconv.ParseInt(limits[0], 10, 64) // stays 0 if there is no limit
	}
	return e
}

// procField returns the value of the line that begins with name in a file in /proc, without the colon and the spaces
// before it. It returns "" if there is none.
func procField(file, name string) string {
	b, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(b)) {
		if value, ok := strings.CutPrefix(line, name); ok {
			return strings.Trim(value, ": \t\n")
		}
	}
	return ""
}

// String describes the machine and the system in one line.
func (e *Environment) String() string {
	text := prose.Count(e.Processors, "processor")
	if e.CPU != "" {
		text += " (" + e.CPU + ")"
	}
	if e.Memory > 0 {
		text += fmt.Sprintf(", %.0f GiB of memory", float64(e.Memory)/(1<<30))
	}
	return text + ", " + e.System
}
