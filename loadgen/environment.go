package loadgen

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
)

// Environment is where a run took place: figures are comparable only where it is the same. What is not known is empty.
type Environment struct {
	Command    []string `json:"command"`          // of the load generator, with its arguments
	System     string   `json:"system"`           // the operating system with its version, as "linux 6.1.0"
	CPU        string   `json:"cpu"`              // the model
	Processors int      `json:"processors"`       // of the machine
	Memory     int64    `json:"memory_bytes"`     // of the machine
	OpenFiles  int64    `json:"open_files_limit"` // that the load generator may have open
}

// ReadEnvironment returns the environment of this process, whose command line it is given. On systems without /proc, most of it is not
// known.
func ReadEnvironment(command []string) *Environment {
	e := &Environment{Command: command, System: runtime.GOOS, Processors: runtime.NumCPU()}
	if release, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		e.System += " " + strings.TrimSpace(string(release))
	}
	e.CPU = procField("/proc/cpuinfo", "model name")
	kibibytes, _, _ := strings.Cut(procField("/proc/meminfo", "MemTotal"), " ")
	if n, err := strconv.ParseInt(kibibytes, 10, 64); err == nil {
		e.Memory = n << 10
	}
	if limits := strings.Fields(procField("/proc/self/limits", "Max open files")); len(limits) > 0 {
		e.OpenFiles, _ = strconv.ParseInt(limits[0], 10, 64) // 0 where there is no limit
	}
	return e
}

// procField returns what follows a name at the beginning of a line of a file in /proc, without the colon and blanks after the name.
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

// String describes the machine in a line.
func (e *Environment) String() string {
	text := plural(e.Processors, "processor")
	if e.CPU != "" {
		text += " (" + e.CPU + ")"
	}
	if e.Memory > 0 {
		text += fmt.Sprintf(", %.0f GiB of memory", float64(e.Memory)/(1<<30))
	}
	return text + ", " + e.System
}
