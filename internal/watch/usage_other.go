//go:build !linux

package watch

import "time"

// usageOf knows nothing here.
func usageOf(int) (Usage, bool) { return Usage{}, false }

func wants(int) (had, wanted time.Duration) { return 0, 0 }

func limitDescriptors(int, int) error { return ErrNoProcess }

func runnable(int) bool { return false }
