//go:build !unix

package main

// onDrainSignal does nothing: there is no such signal here.
func onDrainSignal(func()) (stop func()) { return func() {} }
