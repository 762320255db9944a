package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"

	"golang.org/x/term"

	"jobwire/internal/newfile"
	"jobwire/internal/prose"
)

// All text that a command writes goes through an output or a textFile, which escape what peers and captures could
// control a terminal with. Only unescapedWriter and the functions that create captures write other bytes; a test in
// internal/layout lists them.

// output is standard output or standard error.
type output struct {
	prose.Writer
	to *destination
}

func newOutput(w io.Writer) *output {
	to := &destination{w: w}
	return &output{prose.Writer{W: to}, to}
}

// destination keeps the first write error, so that commands need not check for write errors.
type destination struct {
	w    io.Writer
	gone func() // called when the reader of a pipe has closed it; may be nil
	mu   sync.Mutex
	err  error
}

func (d *destination) Write(p []byte) (int, error) {
	n, err := d.w.Write(p)
	if err != nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.err = cmp.Or(d.err, err)
		if d.gone != nil && errors.Is(err, syscall.EPIPE) {
			d.gone()
		}
	}
	return n, err
}

func (d *destination) failed() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.err
}

// allowColors makes w write the escape sequences of colors.
func allowColors(w io.Writer) {
	if o, ok := w.(*output); ok {
		o.Colors = true
	}
}

// unescapedWriter returns a writer to the destination of w for bytes that are not text, such as a capture.
func unescapedWriter(w io.Writer) io.Writer {
	if o, ok := w.(*output); ok {
		return o.to
	}
	return w
}

// terminal returns the terminal that w writes to, or nil.
func terminal(w io.Writer) *os.File {
	if o, ok := w.(*output); ok {
		w = o.to.w
	}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return f
	}
	return nil
}

// isTerminal reports whether w is a terminal.
func isTerminal(w io.Writer) bool { return terminal(w) != nil }

// columns returns the width of the terminal that w writes to, or 80 if it is not one.
func columns(w io.Writer) int {
	if f := terminal(w); f != nil {
		if n, _, err := term.GetSize(int(f.Fd())); err == nil && n > 0 {
			return n
		}
	}
	return 80
}

// overwrite replaces the last line of a terminal by another one, which is truncated to the width of the terminal.
func overwrite(w io.Writer, line string) {
	if o, ok := w.(*output); ok {
		o.Control("\r\x1b[K")
	}
	fmt.Fprint(w, line[:min(len(line), columns(w)-1)])
}

// textFile is a file with text.
type textFile struct {
	prose.Writer
	file *os.File
}

// createText creates a file for text.
func createText(name string) (*textFile, error) {
	f, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	return &textFile{prose.Writer{W: f}, f}, nil
}

// Close writes the end of the text and closes the file.
func (f *textFile) Close() error { return errors.Join(f.Writer.Close(), f.file.Close()) }

// create creates a file, calls write to write its contents as text, and closes it. If that fails, no part of the
// file is left.
func create(name string, write func(io.Writer) error) error {
	f, err := createText(name)
	if err != nil {
		return err
	}
	return newfile.Close(f.file, errors.Join(write(f), f.Writer.Close()))
}
