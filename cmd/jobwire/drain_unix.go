//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// onDrainSignal calls drain at every SIGUSR1 until stop is called.
func onDrainSignal(drain func()) (stop func()) {
	got := make(chan os.Signal, 1)
	signal.Notify(got, syscall.SIGUSR1)
	go func() {
		for range got {
			drain()
		}
	}()
	return func() {
		signal.Stop(got)
		close(got)
	}
}
