package native

import (
	"fmt"
	"runtime"
	"time"
)

// maxReading is the time within which a reader must have read an input. It is long, because the machine may be busy.
const maxReading = time.Minute

// Bounded calls read, which reads an input of n bytes. It returns an error if read allocates more than base and
// perByte*n bytes in total, garbage included. If read does not return within maxReading, Bounded panics: Go's fuzzer
// itself has no time limit for an input.
func Bounded(n, base, perByte int, read func()) error {
	hung := time.AfterFunc(maxReading, func() { panic(fmt.Sprintf("the reader did not return within %v", maxReading)) })
	defer hung.Stop()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	read()
	runtime.ReadMemStats(&after)
	if used, most := after.TotalAlloc-before.TotalAlloc, uint64(base)+uint64(perByte)*uint64(n); used > most {
		return fmt.Errorf("the reader allocated %d bytes for an input of %d bytes, expected at most %d", used, n, most)
	}
	return nil
}
