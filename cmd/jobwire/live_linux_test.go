package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode"
	"unsafe"

	"github.com/charmbracelet/x/vt"

	"jobwire/cmd/internal/cli"
)

// pty is a terminal of the kernel, connected to a virtual terminal that shows its output.
type pty struct {
	keyboard *os.File // the side of the virtual terminal
	user     *os.File
	ended    chan struct{} // closed when no program has the terminal open

	mu     sync.Mutex
	screen *vt.Emulator
	output bytes.Buffer
}

// newPTY returns a terminal with 24 rows.
func newPTY(t *testing.T, columns int) *pty {
	f, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { f.Close() })
	p := &pty{keyboard: f, screen: vt.NewEmulator(columns, 24), ended: make(chan struct{})}
	var n, unlocked int32
	p.control(t, syscall.TIOCSPTLCK, unsafe.Pointer(&unlocked))
	p.control(t, syscall.TIOCGPTN, unsafe.Pointer(&n))
	p.resize(t, columns)
	if p.user, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { p.user.Close() })
	return p
}

func (p *pty) control(t *testing.T, request uintptr, value unsafe.Pointer) {
	t.Helper()
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, p.keyboard.Fd(), request, uintptr(value)); errno != 0 {
		t.Fatal(errno)
	}
}

func (p *pty) resize(t *testing.T, columns int) {
	size := struct{ rows, columns, x, y uint16 }{24, uint16(columns), 0, 0}
	p.control(t, syscall.TIOCSWINSZ, unsafe.Pointer(&size))
	p.mu.Lock()
	defer p.mu.Unlock()
	p.screen.Resize(columns, 24)
}

// start starts a command in a session of its own, whose terminal is p, and shows its output.
func (p *pty) start(t *testing.T, cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if cmd.Stdin = p.user; cmd.Stdout == nil {
		cmd.Stdout = p.user
	}
	if cmd.Stderr == nil {
		cmd.Stderr = p.user
	}
	cmd.Env = append(cmd.Environ(), "LANG=C.UTF-8", "LC_ALL=")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.user.Close()
	go func() {
		defer close(p.ended)
		io.Copy(p, p.keyboard)
	}()
}

func (p *pty) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.output.Write(b)
	return p.screen.Write(b)
}

// text returns what the terminal shows.
func (p *pty) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.screen.String()
}

// wait waits until the terminal shows a text.
func (p *pty) wait(t *testing.T, pattern string) {
	t.Helper()
	re := regexp.MustCompile(pattern)
	for end := time.Now().Add(time.Minute); !re.MatchString(p.text()); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the terminal does not show %q:\n%s", pattern, p.text())
		}
	}
}

// TestLive runs commands on a terminal, changes its width and interrupts them: they show a live display that fits the
// terminal, and end as without a terminal, with the report and a visible cursor, and no other mode of the terminal was
// changed.
func TestLive(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args   []string
		shown  string // on the live display
		report string
		status int
	}{
		{[]string{"bench", "run", "gearman", "--duration", "1h", "--slo", "p99<1h"},
			`(?s)rate +[0-9,]+ jobs/s +\S.*total .*lost 0 +duplicated 0.*p99<1h +\S+`, "the run was interrupted", cli.StatusFailed},
		{[]string{"bench", "search", "gearman", "--duration", "1h", "--slo", "p99<1h"}, `(?s)1,000 jobs/s, .* left.*rate +[0-9,]+ jobs/s +\S`,
			"interrupted", cli.StatusFailed},
		{[]string{"conform", "gearman", "--parallel", "1", "--exec",
			"jobwire serve gearman --listen 127.0.0.1:{port} --fault 'alter ECHO_RES data=other'"},
			`(?s)of [0-9,]+ cases.*passed [0-9].*failures.*failed`, "the run was interrupted", cli.StatusFailed},
		{[]string{"fuzz", "gearman", "--duration", "1h", "--findings", t.TempDir(), "--exec",
			"jobwire serve gearman --listen 127.0.0.1:{port}"}, `(?s)of 1h0m0s.*executions +[0-9,]+/s.*executions [1-9].*states [1-9].*candidates examined [0-9]`,
			"until the interrupt", cli.StatusOK},
		{[]string{"audit", "stress", "gearman"}, `(?s)[0-9] of [0-9]+ runs .*passed [0-9].*now\n.*Client +delays .*submit`,
			"the run was interrupted", cli.StatusFailed},
	} {
		t.Run(strings.Join(tt.args[:2], " "), func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			p := newPTY(t, 100)
			cmd := exec.CommandContext(ctx, "jobwire", tt.args...)
			cmd.Env = []string{"TERM=xterm", "PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}
			p.start(t, cmd)
			p.wait(t, tt.shown)
			p.resize(t, 60)
			p.wait(t, `(?m)^jobwire .{51}…\s*$`) // the title is cut
			io.WriteString(p.keyboard, "\x03")
			err := cmd.Wait()
			<-p.ended
			if status := cmd.ProcessState.ExitCode(); status != tt.status || !strings.Contains(p.output.String(), tt.report) {
				t.Errorf("%v, expected status %d and %q:\n%s", err, tt.status, tt.report, p.text())
			}
			if strings.Contains(p.text(), "Ctrl-C ends") {
				t.Errorf("a part of the live display is left:\n%s", p.text())
			}
			for _, mode := range regexp.MustCompile(`\x1b(\[[?>=].*?[a-z]|[^\[])`).FindAllString(p.output.String(), -1) {
				// Synchronized updates, a visible cursor, and one line up.
				if !slices.Contains([]string{"\x1b[?2026h", "\x1b[?2026l", "\x1b[?25h", "\x1bM"}, mode) {
					t.Fatalf("the program wrote %q, which may change a mode of the terminal", mode)
				}
			}
		})
	}
}

// TestNotLive tests that commands write no control characters if they show no live display: in a pipe, on a terminal
// that cannot show it, and with --quiet. Where the terminal shows one, standard output may be a pipe.
func TestNotLive(t *testing.T) {
	t.Parallel()
	commands := [][]string{
		{"bench", "run", "gearman", "--duration", "300ms", "--interval", "100ms"},
		{"conform", "gearman", "--run", "gearman.echo.*"},
		{"audit", "stress", "danga", "plain", "--format", "tap"},
	}
	lines := []string{` jobs/s  p50 .* in flight`, ``, ``} // of progress
	for i, args := range commands {
		for _, tt := range []struct {
			name, env, quiet string
			stdout, stderr   bool // whether they are the terminal
			progress, live   string
		}{
			{"pipe", "TERM=xterm", "", false, false, lines[i], ""},
			{"dumb", "TERM=dumb", "", true, true, lines[i], ""},
			{"quiet", "NO_COLOR=1", "--quiet", true, true, "", ""},
			{"quiet pipe", "TERM=xterm", "--quiet", false, false, "", ""},
			{"standard error", "TERM=xterm", "", false, true, "", "Ctrl-C ends"},
		} {
			t.Run(args[0]+" "+args[1]+" "+tt.name, func(t *testing.T) {
				t.Parallel()
				p := newPTY(t, 200)
				cmd := exec.CommandContext(t.Context(), "jobwire", args...)
				if tt.quiet != "" {
					cmd.Args = append(cmd.Args, tt.quiet)
				}
				cmd.Env = []string{"TERM=xterm", tt.env, "PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}
				var stdout, stderr bytes.Buffer
				if !tt.stdout {
					cmd.Stdout = &stdout
				}
				if !tt.stderr {
					cmd.Stderr = &stderr
				}
				p.start(t, cmd)
				cmd.Wait()
				<-p.ended
				shown := strings.ReplaceAll(p.output.String(), "\r\n", "\n")
				text := stdout.String() + stderr.String()
				if tt.live == "" {
					text += shown
				} else if !strings.Contains(shown, tt.live) {
					t.Errorf("no live display: %q", shown)
				}
				if i := strings.IndexFunc(text, func(r rune) bool { return r != '\n' && unicode.IsControl(r) }); i >= 0 {
					t.Errorf("a control character in %q", text[max(0, i-50):])
				}
				if found := regexp.MustCompile(cmp.Or(lines[i], "$^")).MatchString(text); found != (tt.progress != "") {
					t.Errorf("progress: %v in\n%s", found, text)
				}
				if stdout.Len() == 0 && !tt.stdout {
					t.Errorf("no report: %s", text)
				}
			})
		}
	}
}
