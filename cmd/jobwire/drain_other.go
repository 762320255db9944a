//go:build !unix

package main

// onDrainSignal does nothing: only Unix has SIGUSR1.
func onDrainSignal(func()) (stop func()) { return func() {} }
