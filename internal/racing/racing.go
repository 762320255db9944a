// Package racing reports whether the race detector is on. The race detector makes programs up to ten times slower, so tests
// with many repetitions reduce their number.
package racing
