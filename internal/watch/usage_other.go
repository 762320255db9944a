//go:build !linux

package watch

import "time"

// usageOf is not supported on this system.
func usageOf(int) (Usage, bool) { return Usage{}, false }

func wants(int) (had, wanted time.Duration) { return 0, 0 }

func processorTime(int) time.Duration { return 0 }

func descriptorLimit(int) int { return 0 }

func runnable(int) bool { return false }

func longestWait(int) time.Duration { return 0 }
