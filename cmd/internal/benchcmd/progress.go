package benchcmd

import (
	"bytes"
	"fmt"
	"io"

	"jobwire/cmd/internal/cli"
	"jobwire/loadgen"
	"jobwire/loadgen/format"
)

// benchProgress prints the progress of a run: on a terminal in one line that it overwrites, otherwise in one line per
// interval.
type benchProgress struct {
	w     io.Writer // nil: print nothing
	live  bool
	shown bool
}

func newBenchProgress(w io.Writer, quiet bool) *benchProgress {
	if quiet {
		return &benchProgress{}
	}
	return &benchProgress{w: w, live: cli.IsTerminal(w)}
}

// interval prints the figures of one interval of a run. measured is false for an interval outside of the measurement
// window.
func (p *benchProgress) interval(iv *loadgen.Interval, measured bool) {
	if p.w == nil {
		return
	}
	var line bytes.Buffer
	format.Interval(&line, iv, measured)
	if !p.live {
		fmt.Fprintln(p.w, line.String())
		return
	}
	cli.Overwrite(p.w, line.String())
	p.shown = true
}

// end clears the line of progress, so that the report can take its place.
func (p *benchProgress) end() {
	if p.shown {
		cli.Overwrite(p.w, "")
	}
}
