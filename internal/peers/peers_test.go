package peers

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"jobwire/internal/target"
)

// TestServersAnswer: every server of the table starts and replies in its own protocol.
func TestServersAnswer(t *testing.T) {
	ask := map[string]struct{ send, want string }{
		"gearmand":      {"version\r\n", "OK "},
		"gearmand-perl": {"version\r\n", "v1."},
		"beanstalkd":    {"stats-job 1\r\n", "NOT_FOUND"},
		"redis-server":  {"PING\r\n", "+PONG"},
	}
	for name, p := range known {
		if p.serve == nil {
			continue
		}
		t.Run(name, func(t *testing.T) {
			s := Start(t, name)
			c, err := target.Dial(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			c.SetDeadline(time.Now().Add(10 * time.Second))
			if _, err := io.WriteString(c, ask[name].send); err != nil {
				t.Fatal(err)
			}
			line, err := bufio.NewReader(c).ReadString('\n')
			if err != nil || ask[name].want == "" || !strings.HasPrefix(line, ask[name].want) {
				t.Errorf("answer %q, %v; want %q", line, err, ask[name].want)
			}
		})
	}
}

// fakeTB records how Need ends a test. Its methods panic with the record, because they must not return.
type fakeTB struct{ testing.TB }

type ending struct{ how, text string }

func (fakeTB) Helper()                      {}
func (fakeTB) Skipf(f string, args ...any)  { panic(ending{"skip", fmt.Sprintf(f, args...)}) }
func (fakeTB) Fatalf(f string, args ...any) { panic(ending{"fail", fmt.Sprintf(f, args...)}) }

// TestMissingPeer tests that a test whose peer is absent, broken or another program is skipped, or fails if peers are
// required, and says how to install it.
func TestMissingPeer(t *testing.T) {
	known["absent"] = peer{program: "no-such-program-anywhere"}
	known["hollow"] = peer{program: "sh", probe: []string{"-c", "exit 1"}}
	known["silent"] = peer{program: "sh", probe: []string{"-c", "echo something else"}, prints: "gearman"}
	t.Cleanup(func() {
		for _, name := range []string{"absent", "hollow", "silent"} {
			delete(known, name)
			finders.Delete(name)
		}
	})
	for env, how := range map[string]string{"": "skip", "1": "fail"} {
		for _, name := range []string{"absent", "hollow", "silent"} {
			t.Setenv(Required, env)
			func() {
				defer func() {
					e, ok := recover().(ending)
					if !ok || e.how != how || !strings.Contains(e.text, "peer "+name+" is not installed: make peers") {
						t.Errorf("%s with %s=%q: got %+v, want %s", name, Required, env, e, how)
					}
				}()
				Need(fakeTB{t}, name)
			}()
		}
	}
}

// TestNeedFindsLibraries tests that Need returns the absolute path of the program for each known peer that is not a
// server.
func TestNeedFindsLibraries(t *testing.T) {
	for name, p := range known {
		if p.serve == nil {
			t.Run(name, func(t *testing.T) {
				if path := Need(t, name); !strings.HasPrefix(path, "/") {
					t.Errorf("path %q", path)
				}
			})
		}
	}
}
