package cli

import (
	"fmt"
	"io"
)

// progress prints how many steps are done, in one line and only on a terminal.
type progress struct {
	w           io.Writer
	done, total int
	shown       bool
}

func NewProgress(w io.Writer, total int) *progress {
	if !IsTerminal(w) {
		w = nil
	}
	return &progress{w: w, total: total}
}

func (p *progress) Step() {
	p.done++
	if p.w != nil && p.done < p.total {
		Overwrite(p.w, fmt.Sprintf("%d of %d", p.done, p.total))
		p.shown = true
	}
}

func (p *progress) Clear() {
	if p.shown {
		Overwrite(p.w, "")
		p.shown = false
	}
}
