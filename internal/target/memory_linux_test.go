package target

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// TestMemoryLimit tests that a program is killed, and counts as crashed, when it or a child process needs more memory
// than its limit, and that it can be started again.
func TestMemoryLimit(t *testing.T) {
	for name, args := range map[string][]string{
		"the program":     helper("serve", "{addr}"),
		"a child process": {"sh", "-c", `"$0" helper serve {addr}; exit`, helper()[0]},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, Command{Args: args, Memory: 128 << 20})
			if got := say(t, s, "ping"); got != "pong\n" {
				t.Fatalf("got %q", got)
			}
			say(t, s, "allocate")
			waitDone(t, s)
			if err := s.Err(); err == nil || !strings.Contains(err.Error(), "it needed more than 128 MiB of memory, so jobwire killed it") {
				t.Errorf("got %v", err)
			}
			if err := s.Restart(); err != nil {
				t.Fatal(err)
			}
			if got := say(t, s, "ping"); got != "pong\n" {
				t.Errorf("got %q after a restart", got)
			}
		})
	}
}

// TestGrowingMemory tests that Died waits while the memory of a program grows, so that it returns the error of a
// program that exceeds its limit a second after a request, and that it does not wait for a program whose memory does
// not grow.
func TestGrowingMemory(t *testing.T) {
	s := start(t, Command{Args: helper("serve", "{addr}"), Memory: 64 << 20})
	say(t, s, "ping")
	if err := Died(s); err != nil || Growing(s) {
		t.Fatalf("before the request: %v, growing: %v", err, Growing(s))
	}
	say(t, s, "grow")
	for range time.Tick(guardInterval) {
		if Growing(s) || s.Err() != nil {
			break
		}
	}
	if err := Died(s); !errors.Is(err, ErrDied) || !strings.Contains(err.Error(), "64 MiB of memory") {
		t.Errorf("after the request: %v", err)
	}
}
