package target

import (
	"strings"
	"testing"
)

// TestMemoryLimit tests that a program is killed, and counts as crashed, when it or a child process needs more memory than
// its limit, and that it can be started again.
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
			if err := s.Err(); err == nil || !strings.Contains(err.Error(), "killed by jobwire, because it needed more than 128 MiB of memory") {
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
