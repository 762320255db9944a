// Package virtualtime runs functions in bubbles of package testing/synctest, outside of tests too. Time in a bubble is virtual: it
// passes only while all goroutines of the bubble wait, and then jumps to the next timer, so that waiting takes no time and a busy machine
// does not delay anything.
package virtualtime

import (
	"flag"
	"sync"
	"testing"
	"testing/synctest"
)

// host returns the test that package synctest requires. It runs until the program ends. testing.Main is the function that package
// testing keeps for programs that run tests without "go test".
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

// Run calls do in a new bubble, and returns when do has returned and all goroutines that it started have ended. Several bubbles may run at
// the same time. Run panics if the goroutines wait for each other forever. It must not be called in a bubble.
//
// Channels and timers that were created outside of the bubble must not be used in do; this includes contexts that can be canceled.
func Run(do func()) {
	synctest.Test(host(), func(*testing.T) { do() })
}
