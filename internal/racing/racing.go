// Package racing says whether the race detector is on, which makes programs up to ten times slower. Tests that repeat one thing
// many times then repeat it less often.
package racing
