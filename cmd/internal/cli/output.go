package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/term"

	"jobwire/internal/newfile"
	"jobwire/internal/prose"
)

// All text that a command writes goes through an output or a textFile, which escape what peers and captures could
// control a terminal with. Only unescapedWriter and the functions that create captures write other bytes; a test in
// internal/layout lists them.

// Output is standard output or standard error.
type Output struct {
	prose.Writer
	To *destination
}

func NewOutput(w io.Writer) *Output {
	to := &destination{W: w}
	return &Output{prose.Writer{W: to}, to}
}

// destination keeps the first write error, so that commands need not check for write errors.
type destination struct {
	W      io.Writer
	Gone   func() // called when the reader of a pipe has closed it; may be nil
	mu     sync.Mutex
	err    error
	screen io.Writer // shows what is written above a live display on W; nil: there is none
}

// Write passes the text on. It keeps the first error for the end of the program, and calls Gone if the reader of a pipe
// has closed it.
func (d *destination) Write(p []byte) (int, error) {
	d.mu.Lock()
	w := cmp.Or(d.screen, d.W)
	d.mu.Unlock()
	n, err := w.Write(p)
	if err != nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.err = cmp.Or(d.err, err)
		if d.Gone != nil && errors.Is(err, syscall.EPIPE) {
			d.Gone()
		}
	}
	return n, err
}

func (d *destination) setScreen(w io.Writer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.screen = w
}

func (d *destination) Failed() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.err
}

// AllowColors makes w write the escape sequences of colors.
func AllowColors(w io.Writer) {
	if o, ok := w.(*Output); ok {
		o.Colors = true
	}
}

// UnescapedWriter returns a writer to the destination of w for bytes that are not text, such as a capture.
func UnescapedWriter(w io.Writer) io.Writer {
	if o, ok := w.(*Output); ok {
		return o.To
	}
	return w
}

// terminal returns the terminal that w writes to, or nil.
func terminal(w io.Writer) *os.File {
	if o, ok := w.(*Output); ok {
		w = o.To.W
	}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return f
	}
	return nil
}

// IsTerminal reports whether w is a terminal.
func IsTerminal(w io.Writer) bool { return terminal(w) != nil }

// Columns returns the width of the terminal that w writes to, or 80 if it is not one.
func Columns(w io.Writer) int {
	if f := terminal(w); f != nil {
		if n, _, err := term.GetSize(int(f.Fd())); err == nil && n > 0 {
			return n
		}
	}
	return 80
}

// Overwrite replaces the last line of a terminal by another one, which is truncated to the width of the terminal.
func Overwrite(w io.Writer, line string) {
	if o, ok := w.(*Output); ok {
		o.Control("\r\x1b[K")
	}
	fmt.Fprint(w, line[:min(len(line), Columns(w)-1)])
}

// TextFile is a file with text.
type TextFile struct {
	prose.Writer
	File *os.File
}

// CreateText creates a file for text.
func CreateText(name string) (*TextFile, error) {
	f, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	return &TextFile{prose.Writer{W: f}, f}, nil
}

// Close writes the end of the text and closes the file.
func (f *TextFile) Close() error { return errors.Join(f.Writer.Close(), f.File.Close()) }

// Create creates a file, calls write to write its contents as text, and closes it. If that fails, no part of the
// file is left.
func Create(name string, write func(io.Writer) error) error {
	f, err := CreateText(name)
	if err != nil {
		return err
	}
	return newfile.Close(f.File, errors.Join(write(f), f.Writer.Close()))
}

// ListItem prints a name and its description. On a terminal, the description is wrapped and all its lines begin in the
// column after first.
func ListItem(w io.Writer, first, text string) {
	if IsTerminal(w) {
		text = prose.Wrap(first, strings.Repeat(" ", len(first)), text, Columns(w))
	} else {
		text = first + text
	}
	fmt.Fprintln(w, text)
}

// LineWidth returns the length of the lines that fit the terminal that w writes to. If w is not one, length is not
// limited.
func LineWidth(w io.Writer) int {
	if IsTerminal(w) {
		return Columns(w)
	}
	return math.MaxInt
}

// WantsColor reports whether w is a terminal and the environment does not disable color (NO_COLOR, TERM=dumb).
func WantsColor(w io.Writer) bool {
	return IsTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// WriteJSON writes a value as indented JSON.
func WriteJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// Counted returns a number with its noun, in the plural unless the number is 1.
func Counted(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

func OneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
