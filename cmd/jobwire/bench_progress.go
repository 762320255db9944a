package main

import (
	"bytes"
	"fmt"
	"io"

	"jobwire/loadgen"
)

// benchProgress tells how a run goes on: in one line that changes on a terminal, elsewhere in a
// line for each interval.
type benchProgress struct {
	w     io.Writer // nil is nobody
	live  bool
	shown bool
}

func newBenchProgress(w io.Writer, quiet bool) *benchProgress {
	if quiet {
		return &benchProgress{}
	}
	return &benchProgress{w: w, live: isTerminal(w)}
}

func (p *benchProgress) interval(iv *loadgen.Interval, measured bool) {
	if p.w == nil {
		return
	}
	var line bytes.Buffer
	loadgen.WriteInterval(&line, iv, measured)
	if !p.live {
		fmt.Fprintln(p.w, line.String())
		return
	}
	fmt.Fprintf(p.w, "\r\x1b[K%s", fitting(line.Bytes(), columns(p.w)))
	p.shown = true
}

// fitting is as much of a line as leaves the cursor in it.
func fitting(line []byte, width int) []byte { return line[:min(len(line), width-1)] }

// end leaves the place to the report.
func (p *benchProgress) end() {
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
