package virtualtime_test

import (
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"jobwire/internal/virtualtime"
)

// TestMain makes the test program a program that is not a test, if an environment variable is set.
func TestMain(m *testing.M) {
	if os.Getenv("VIRTUALTIME_PROGRAM") == "" {
		os.Exit(m.Run())
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 100 {
				virtualtime.Run(func() {
					began := time.Now()
					done := make(chan struct{})
					time.AfterFunc(24*time.Hour, func() { close(done) })
					<-done
					if time.Since(began) != 24*time.Hour {
						os.Exit(1)
					}
				})
			}
		})
	}
	all.Wait()
	os.Stdout.WriteString("400 days")
	os.Exit(0)
}

// TestProgram tests that a program can run code in virtual time although its arguments are not those of a test, and
// that only the program's own output is printed.
func TestProgram(t *testing.T) {
	cmd := exec.Command(os.Args[0], "--run", "an argument of the program")
	cmd.Env = append(os.Environ(), "VIRTUALTIME_PROGRAM=1")
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "400 days" {
		t.Errorf("expected only the line of the program, got %q, %v", out, err)
	}
}
