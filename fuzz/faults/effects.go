package faults

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// Limits of the leaks, in bytes and file descriptors, so that a long run does not exhaust the machine.
const (
	maxLeak        = 512 << 20
	maxDescriptors = 2000
)

// leak is the number of bytes of one leak.
const leak = 256 << 10

// effect returns a function that has the effect of the fault on the process. It prints the output of the fault, and
// then:
//
//	exit N           ends the process with exit status N
//	signal NAME      ends the process by a signal
//	print            does nothing else
//	spin             keeps one CPU core busy until ctx ends; with more busy loops, the server would hang instead
//	leak memory      allocates memory that is never freed
//	leak descriptor  opens a file that is never closed
//
// It panics if the effect is not one of these.
func (f *Fault) effect(ctx context.Context) func() {
	kind, arg, _ := strings.Cut(f.Effect, " ")
	do := func() {}
	switch kind {
	case "exit":
		status, err := strconv.Atoi(arg)
		if err != nil {
			panic(err)
		}
		do = func() { os.Exit(status) }
	case "signal":
		// The process executes a shell that sends the signal to itself, because the Go runtime handles signals.
		do = func() {
			syscall.Exec("/bin/sh", []string{"sh", "-c", "ulimit -c 0; kill -" + arg + " $$"}, nil)
			os.Exit(1)
		}
	case "print":
	case "spin":
		busy := false
		do = func() {
			if busy {
				return
			}
			busy = true
			go func() {
				for ctx.Err() == nil {
				}
			}()
		}
	case "leak":
		do = map[string]func(){"memory": leaksMemory(), "descriptor": leaksDescriptor()}[arg]
	default:
		panic("unknown effect " + f.Effect)
	}
	return func() {
		fmt.Fprint(os.Stderr, f.Output)
		do()
	}
}

// leaksMemory returns an effect that allocates leak bytes at each call and keeps them, at most maxLeak bytes in total.
func leaksMemory() func() {
	var kept [][]byte
	return func() {
		if len(kept)*leak >= maxLeak {
			return
		}
		page := make([]byte, leak)
		for i := 0; i < leak; i += 512 {
			page[i] = 1 // pages that are not written take no memory
		}
		kept = append(kept, page)
	}
}

// leaksDescriptor returns an effect that opens a file at each call and keeps it open, at most maxDescriptors files in
// total.
func leaksDescriptor() func() {
	var open []*os.File
	return func() {
		if len(open) < maxDescriptors {
			if f, err := os.Open(os.DevNull); err == nil {
				open = append(open, f)
			}
		}
	}
}
