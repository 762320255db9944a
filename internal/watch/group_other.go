//go:build !linux

package watch

// Group is not supported on this system.
func Group(int) map[int]Process { return nil }
