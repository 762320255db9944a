package mutants

import (
	"jobwire/refpeer/gearman"
	"jobwire/refpeer/internal/faults"
	"jobwire/refpeer/internal/line"
)

type (
	program = gearman.Program
	task    = gearman.Task
)

// header is the length of a packet's header; lengthAt is the offset of the field with the length of the data after it.
const (
	header   = 12
	lengthAt = 8
)

var edit = faults.Editor[program, task]{
	Sequences: func(p *program) []*gearman.Sequence {
		return []*gearman.Sequence{&p.Option, &p.Submit, &p.Created, &p.Status, &p.Echo, &p.Start, &p.Enter, &p.Ask, &p.Sleep, &p.Report, &p.End}
	},
	Quirks: func(p *program) *line.Quirks { return &p.Quirks },
	Header: header, LengthAt: lengthAt,
}
