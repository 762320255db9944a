package cli

import (
	"os"
	"runtime/debug"
)

// GCPercent is the GC percentage (GOGC) of all commands. They keep little memory, so that with the default of 100
// collections take up to a fifth of the processor time of a self-test.
const GCPercent = 400

// SoftMemory is the soft memory limit in bytes of commands that keep little. Near it, the garbage collector runs more
// often, so that the buffers of large messages are not kept until the next collection.
const SoftMemory = 160 << 20

// Alone is set in a process that runs one command. Tests run several commands in one process.
var Alone bool

// TuneMemory sets the soft memory limit in bytes and the GC percentage of the process for its command. The environment
// variables GOMEMLIMIT and GOGC come first.
func TuneMemory(limit int64, percent int) {
	if Alone && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(limit)
	}
	if Alone && os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}
