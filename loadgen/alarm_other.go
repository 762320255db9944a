//go:build !linux

package loadgen

// alarm waits.
type alarm struct{ coarse }

func newAlarm() *alarm { return &alarm{newCoarse()} }
