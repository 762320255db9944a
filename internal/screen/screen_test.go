package screen

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/vt"
)

var update = flag.Bool("update", false, "write the golden files anew")

// terminal is a virtual terminal. It begins a new line at a line end, as the driver of a terminal does.
type terminal struct {
	*vt.SafeEmulator
	mu      sync.Mutex
	written bytes.Buffer
	writes  atomic.Int64
	draw    func() // waits until a screen is drawn
}

func newTerminal(width, height int) *terminal {
	t := &terminal{SafeEmulator: vt.NewSafeEmulator(width, height)}
	t.echo("$ jobwire\r\n")
	return t
}

func (t *terminal) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.writes.Add(1)
	t.written.Write(p)
	t.echo(strings.ReplaceAll(string(p), "\n", "\r\n"))
	return len(p), nil
}

func (t *terminal) echo(text string) { t.SafeEmulator.Write([]byte(text)) }

// lines returns the lines on the terminal without spaces at their ends, and without empty lines at the end.
func (t *terminal) lines() []string {
	var all []string
	for line := range strings.Lines(t.String()) {
		all = append(all, strings.TrimRightFunc(line, unicode.IsSpace))
	}
	for len(all) > 0 && all[len(all)-1] == "" {
		all = all[:len(all)-1]
	}
	return all
}

// history returns the lines that have left the terminal at its top, and then those on the terminal.
func (t *terminal) history() []string {
	var all []string
	for y := range t.ScrollbackLen() {
		line := ""
		for x := range t.Width() {
			if c := t.ScrollbackCellAt(x, y); c != nil {
				line += c.Content
			}
		}
		all = append(all, strings.TrimRight(line, " "))
	}
	return append(all, t.lines()...)
}

// bubble calls do while a screen is on a virtual terminal, in virtual time.
func bubble(t *testing.T, width, height int, o Options, frame func() Frame, do func(*terminal, *Screen)) {
	synctest.Test(t, func(t *testing.T) {
		term := newTerminal(width, height)
		o.Width, o.Height = width, height
		s := Start(term, o, frame)
		term.draw = func() {
			time.Sleep(5 * interval)
			synctest.Wait()
		}
		term.draw()
		do(term, s)
		s.Stop()
		if term.CursorHidden() {
			t.Error("the cursor is hidden at the end")
		}
		// cursor movements, erasing, lines, colors, repeated characters, and synchronized updates
		for _, sequence := range regexp.MustCompile(`\x1b\[\??[0-9;]*.`).FindAllString(term.written.String(), -1) {
			if !regexp.MustCompile(`^\x1b\[([0-9;]*[@ABCDJKLPXbm]|\?2026[hl]|\?25h)$`).MatchString(sequence) {
				t.Fatalf("the screen wrote %q, which may change a mode of the terminal", sequence)
			}
		}
	})
}

// example returns a frame with all kinds of panels.
func example(latest int) Frame {
	g := Graphs{{Label: "rate", Text: "5,071 jobs/s"}, {Label: "p99", Text: "24.4 ms"}}
	for i := range latest {
		g[0].Values = append(g[0].Values, float64(i%7+1))
		g[1].Values = append(g[1].Values, float64(i%3))
	}
	l := List{Title: "failures", Total: 1234, Rows: 3}
	for i := range 10 {
		l.Items = append(l.Items, Item{"failed", Bad, fmt.Sprintf("case.%d  expected \x1b[31m7, got \u202e8", i)})
	}
	return Frame{
		Title{"jobwire conform gearman", "gearmand -p {port} --a-long-option --another-long-option"},
		Bar{float64(latest) / 200, []string{"68 of 2,404 cases", "6s", Left(6*time.Second, 0.1)}},
		g,
		Table{[]string{"stage", "p50", "p99", "max"}, [][]string{{"created", "513 us", "12.8 ms", "37.5 ms"}, {"run", "-", "9 us", "1 ms"}}},
		Counters{{"passed", "62", Good}, {"non-strict", "2", Fair}, {"failed", "3", Bad}, {"never asked to decide", "1", Plain}},
		l,
		Note("Ctrl-C ends the run; the report follows."),
	}
}

// TestWidths compares what a terminal of several sizes shows with golden files, also after a change of the size.
func TestWidths(t *testing.T) {
	for _, width := range []int{20, 60, 80, 120, 200} {
		bubble(t, width, 24, Options{Colors: true}, func() Frame { return example(100) }, func(term *terminal, s *Screen) {
			golden(t, fmt.Sprintf("%d.txt", width), term.lines())
		})
		bubble(t, 100, 30, Options{Colors: true}, func() Frame { return example(100) }, func(term *terminal, s *Screen) {
			term.Resize(width, 24)
			s.program.Send(tea.WindowSizeMsg{Width: width, Height: 24})
			term.draw()
			golden(t, fmt.Sprintf("%d.txt", width), term.lines())
		})
	}
	bubble(t, 80, 24, Options{ASCII: true}, func() Frame { return example(100) }, func(term *terminal, s *Screen) {
		golden(t, "ascii.txt", term.lines())
	})
	bubble(t, 80, 12, Options{}, func() Frame { return example(100) }, func(term *terminal, s *Screen) {
		golden(t, "low.txt", term.lines())
	})
}

func golden(t *testing.T, name string, lines []string) {
	t.Helper()
	got := []byte(strings.Join(lines, "\n") + "\n")
	name = "testdata/" + name
	if *update {
		os.WriteFile(name, got, 0o666)
	}
	want, err := os.ReadFile(name)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s: got\n%s\nwant\n%s%v", name, got, want, err)
	}
}

// TestEverySize tests that a frame fits each size of a terminal.
func TestEverySize(t *testing.T) {
	for width := range 301 {
		for _, height := range []int{0, 1, 2, 8, 9, 12, 50} {
			lines := example(100).draw(Options{Colors: true}, width, height)
			if len(lines) > height {
				t.Errorf("%d lines in %d rows", len(lines), height)
			}
			for _, line := range lines {
				if n := ansi.StringWidth(line); n > width {
					t.Errorf("%d columns in %d: %q", n, width, line)
				}
			}
		}
	}
}

// TestAbove tests that text that is written while a screen is on the terminal appears above it, whole and in order, and
// that nothing but this text is left at the end.
func TestAbove(t *testing.T) {
	var want []string
	for i := range 100 {
		want = append(want, fmt.Sprintf("line %d", i))
	}
	for _, height := range []int{17, 24} {
		n := 0
		frame := func() Frame { n++; return example(n) }
		bubble(t, 80, height, Options{Colors: true}, frame, func(term *terminal, s *Screen) {
			for i, line := range want {
				fmt.Fprintln(s, line)
				if i%10 == 9 {
					term.draw()
				}
			}
			fmt.Fprintf(s, "\n\t%s\n%s\n%s\nthe ", strings.Repeat("word ", 30), strings.Repeat("x", 80), strings.Repeat("y", 400))
			term.draw()
			all := term.history()
			begin := slices.Index(all, "line 0")
			got := all[begin:]
			more := []string{"", "    " + strings.Repeat("word ", 15) + "w", "ord" + strings.Repeat(" word", 14), strings.Repeat("x", 80),
				"", strings.Repeat("y", 80), strings.Repeat("y", 80), strings.Repeat("y", 80), strings.Repeat("y", 79),
				strings.Repeat("y", 80), "y"}
			if end := begin + len(want) + len(more); end >= len(all) || !strings.HasPrefix(all[end], "jobwire conform") {
				t.Fatalf("no frame after the text:\n%s", strings.Join(all, "\n"))
			}
			if got := got[:len(want)+len(more)]; !slices.Equal(got, append(want, more...)) {
				t.Errorf("got\n%s", strings.Join(got, "\n"))
			}
			fmt.Fprintln(s, "end")
			s.Stop()
			fmt.Fprintln(s, "after")
			if all := term.history(); !slices.Equal(all[len(all)-4:], []string{strings.Repeat("y", 80), "y", "the end", "after"}) {
				t.Errorf("at the end:\n%s", strings.Join(all, "\n"))
			}
		})
	}
}

// TestEcho tests that the next frame replaces keys that the terminal has echoed.
func TestEcho(t *testing.T) {
	var n atomic.Int64
	n.Store(100)
	bubble(t, 80, 24, Options{}, func() Frame { return example(int(n.Load())) }, func(term *terminal, s *Screen) {
		term.echo("^C")
		n.Add(1)
		term.draw()
		got := term.lines()
		n.Add(-1)
		term.draw()
		golden(t, "80.txt", term.lines())
		if slices.ContainsFunc(got, func(line string) bool { return strings.Contains(line, "^C") }) {
			t.Errorf("got\n%s", strings.Join(got, "\n"))
		}
	})
}

// TestRate tests that a screen writes at most ten times in a second, and nothing if nothing has changed.
func TestRate(t *testing.T) {
	n := 0
	bubble(t, 80, 24, Options{}, func() Frame { n++; return example(n) }, func(term *terminal, s *Screen) {
		before := term.writes.Load()
		time.Sleep(10 * time.Second)
		if writes := term.writes.Load() - before; writes > 101 || writes < 40 {
			t.Errorf("%d writes in 10 s", writes)
		}
	})
	bubble(t, 80, 24, Options{}, func() Frame { return example(3) }, func(term *terminal, s *Screen) {
		before := term.writes.Load()
		time.Sleep(10 * time.Second)
		if writes := term.writes.Load() - before; writes > 0 {
			t.Errorf("%d writes in 10 s without changes", writes)
		}
	})
}

// blocked is a terminal whose output was stopped by its user.
type blocked struct{ writing, released chan struct{} }

func (b blocked) Write(p []byte) (int, error) {
	select {
	case b.writing <- struct{}{}:
	default:
	}
	<-b.released
	return len(p), nil
}

// TestBlocked tests that a command can write while the user has stopped the output of the terminal.
func TestBlocked(t *testing.T) {
	b := blocked{make(chan struct{}), make(chan struct{})}
	s := Start(b, Options{Width: 80, Height: 24}, func() Frame { return example(1) })
	<-b.writing
	for range 20 {
		fmt.Fprintln(s, "text")
	}
	close(b.released)
	s.Stop()
}
