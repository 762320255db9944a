//go:build !linux

package fuzz

import "time"

// usage is what a process has.
type usage struct {
	resident    int64
	descriptors int
}

// usageOf knows nothing here.
func usageOf(int) (usage, bool) { return usage{}, false }

func wants(int) (had, wanted time.Duration) { return 0, 0 }

func runnable(int) bool { return false }
