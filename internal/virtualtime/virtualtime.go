// Package virtualtime runs functions in bubbles of package testing/synctest, outside of tests too. Time in a bubble is
// virtual: it passes only while all goroutines of the bubble wait, and then jumps to the next timer, so that waiting
// takes no time and a busy machine does not delay anything.
package virtualtime

import (
	"context"
	"flag"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// host returns the test that package synctest requires. It runs until the program ends. testing.Main is the function
// that package testing keeps for programs that run tests without "go test".
var host = sync.OnceValue(func() *testing.T {
	started := make(chan *testing.T)
	forever := testing.InternalTest{Name: "virtual time", F: func(t *testing.T) {
		started <- t
		select {}
	}}
	if !flag.Parsed() {
		flag.CommandLine.Parse(nil) // the arguments of the program are not flags of package testing
	}
	go testing.Main(func(string, string) (bool, error) { return true, nil }, []testing.InternalTest{forever}, nil, nil)
	return <-started
})

// Run calls do in a new bubble, and returns when do has returned and all goroutines that it started have ended.
// Several bubbles may run at the same time. Run panics if the goroutines wait for each other forever. It must not be
// called in a bubble.
//
// Channels and timers that were created outside of the bubble must not be used in do; this includes contexts that can
// be canceled.
func Run(do func()) {
	synctest.Test(host(), func(*testing.T) { do() })
}

// Each calls do for the numbers below n, as many at a time as there are processors, each in a bubble of its own. It
// stops early when ctx ends. bubble runs a function in a new bubble: it is Run, or calls synctest.Test in a test.
func Each(ctx context.Context, n int, bubble func(do func()), do func(i int)) {
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				bubble(func() { do(i) })
			}
		})
	}
	all.Wait()
}

// Wait waits until all other goroutines of the bubble wait. Only one goroutine of a bubble may call it at a time.
func Wait() { synctest.Wait() }

// start is a date after those that test cases consider long past, and before those that they consider far in the
// future.
var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Forward moves the time in a new bubble, which begins with the year 2000, to the year 2026.
func Forward() { time.Sleep(time.Until(start)) }

// NextSecond moves the time to the beginning of a second, so that fractions of seconds do not depend on what ran
// before.
func NextSecond() { time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second))) }
