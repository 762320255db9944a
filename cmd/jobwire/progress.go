package main

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

func newProgress(w io.Writer, total int) *progress {
	if !isTerminal(w) {
		w = nil
	}
	return &progress{w: w, total: total}
}

func (p *progress) step() {
	p.done++
	if p.w != nil && p.done < p.total {
		overwrite(p.w, fmt.Sprintf("%d of %d", p.done, p.total))
		p.shown = true
	}
}

func (p *progress) clear() {
	if p.shown {
		overwrite(p.w, "")
		p.shown = false
	}
}
