// Package screen shows the progress of a command in the last lines of a terminal, and the lines that the command prints
// in the meantime above them. A command describes what to show as a [Frame] of panels; the screen draws them in the
// width of the terminal, a few times in a second.
//
// The screen changes no mode of the terminal: the terminal is not in raw mode, so that an interrupt reaches the program
// as without a screen, the alternate screen is not used, and the cursor stays visible. Therefore nothing must be restored
// if the program ends in any way.
package screen

import (
	"bytes"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"
)

// Options are properties of a terminal.
type Options struct {
	Colors        bool
	ASCII         bool // the terminal may not show other characters
	Width, Height int  // the size of a terminal that is not a file, for tests
}

// interval is the time between two frames.
const interval = 100 * time.Millisecond

// Screen is a live display. It is safe for concurrent use.
type Screen struct {
	program *tea.Program
	tty     *tty
	frame   func() Frame
	stop    chan struct{} // closed by Stop
	ended   chan struct{} // closed when nothing is written to the terminal any more
	once    sync.Once

	columns atomic.Int64 // width of the terminal

	mu     sync.Mutex
	above  []byte // text that is not yet on the terminal
	direct bool   // the screen has ended, so text is written directly
}

// Start shows a screen on a terminal. It calls frame, in another goroutine, for each frame to draw. frame must not wait
// for a goroutine that writes to the screen. The caller must call Stop.
func Start(w io.Writer, o Options, frame func() Frame) *Screen {
	s := &Screen{tty: &tty{w: w}, frame: frame, stop: make(chan struct{}), ended: make(chan struct{})}
	// The colors are ANSI's; without this option, bubbletea runs a program to find out which the terminal has.
	m := &model{screen: s, options: o}
	s.program = tea.NewProgram(m, tea.WithOutput(s.tty.output()), tea.WithInput(nil), tea.WithoutSignalHandler(),
		tea.WithFilter(m.repaint), tea.WithFPS(int(time.Second/interval)), tea.WithColorProfile(colorprofile.ANSI),
		tea.WithWindowSize(o.Width, o.Height))
	go s.update()
	return s
}

// Write shows lines of text above the screen. The end of a text that does not end with a line end is shown with the
// rest of its line.
func (s *Screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.direct {
		return s.tty.Write(p)
	}
	s.above = append(s.above, p...)
	return len(p), nil
}

// Stop removes the screen from the terminal, so that the cursor is in the line after the lines above it.
func (s *Screen) Stop() {
	s.once.Do(func() { close(s.stop) })
	<-s.ended
}

// update sends frames and text to the program until Stop is called or the program ends.
func (s *Screen) update() {
	defer close(s.ended)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		s.program.Run() // an error ends the screen, but not the command
	}()
	// Terminals that do not know synchronized updates ignore their sequences.
	s.program.Send(tea.ModeReportMsg{Mode: ansi.ModeSynchronizedOutput, Value: ansi.ModeReset})
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for on := true; on; {
		s.program.Send(s.frame())
		select {
		case <-tick.C:
			s.print()
		case <-s.stop:
			s.program.Send(Frame{})
			s.program.Quit()
			<-gone
			on = false
		case <-gone:
			on = false
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.direct = true
	s.tty.Write(s.above)
}

// space is the number of rows above a frame that are left for the lines that are inserted there.
const space = 4

// print shows the complete lines of text above the screen. bubbletea can insert them only if it has drawn a frame, and
// only as many rows as are above the frame. The terminal wraps long lines, so that they can be copied as a whole.
func (s *Screen) print() {
	if !s.tty.written.Load() {
		return
	}
	s.mu.Lock()
	n := bytes.LastIndexByte(s.above, '\n')
	text := string(s.above[:n+1])
	s.above = append(s.above[:0], s.above[n+1:]...)
	s.mu.Unlock()
	columns := max(1, int(s.columns.Load()))
	for line := range strings.Lines(strings.ReplaceAll(text, "\t", tab)) {
		line = strings.TrimSuffix(line, "\n")
		for part := range strings.SplitSeq(ansi.Wrap(line, space*columns-1, ""), "\n") {
			if ansi.StringWidth(part)%columns == 0 {
				part += " " // bubbletea ignores empty lines, and miscounts the rows of those that end in the last column
			}
			s.program.Println(part)
		}
	}
}

const tab = "    "

// tty is the terminal. It remembers whether a frame was written.
type tty struct {
	w       io.Writer
	written atomic.Bool
}

func (t *tty) Write(p []byte) (int, error) {
	t.written.Store(true)
	return t.w.Write(p)
}

// ttyFile is a tty that is a file. From its other methods, bubbletea gets the size of the terminal.
type ttyFile struct {
	*os.File
	tty *tty
}

func (f ttyFile) Write(p []byte) (int, error) { return f.tty.Write(p) }

// output returns the writer for bubbletea.
func (t *tty) output() io.Writer {
	if f, ok := t.w.(*os.File); ok {
		return ttyFile{f, t}
	}
	return t
}

// model is what bubbletea shows.
type model struct {
	screen        *Screen
	options       Options
	width, height int
	frame         Frame
	lines         []string
}

func (m *model) Init() tea.Cmd { return nil }

func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	if size, ok := msg.(tea.WindowSizeMsg); ok {
		m.width, m.height = size.Width, size.Height
		m.screen.columns.Store(int64(m.width))
		m.draw()
	}
	return m, nil
}

// draw reports whether the lines have changed.
func (m *model) draw() bool {
	before := m.lines
	m.lines = m.frame.draw(m.options, m.width, m.height-space)
	return !slices.Equal(m.lines, before)
}

// repaint makes a message about the size of the terminal from a new frame, so that bubbletea paints all lines again and
// not only what has changed in them: it does not know where the cursor is after the terminal has echoed a key.
func (m *model) repaint(_ tea.Model, msg tea.Msg) tea.Msg {
	if f, ok := msg.(Frame); ok {
		if m.frame = f; !m.draw() {
			return nil
		}
		return tea.WindowSizeMsg{Width: m.width, Height: m.height}
	}
	return msg
}

// View returns the lines of the frame. The cursor is at the end of the last one, and keeps its shape.
func (m *model) View() tea.View {
	v := tea.NewView(strings.Join(m.lines, "\n"))
	v.DisableBracketedPasteMode = true
	v.Cursor = &tea.Cursor{Shape: -1}
	if n := len(m.lines) - 1; n >= 0 {
		v.Cursor.X, v.Cursor.Y = min(ansi.StringWidth(m.lines[n]), m.width-1), n
	}
	return v
}
