//go:build !linux

package fuzz

import "time"

// usage is what a process has and has used.
type usage struct {
	resident    int64
	descriptors int
	processor   time.Duration
}

// usageOf knows nothing here.
func usageOf(int) (usage, bool) { return usage{}, false }
