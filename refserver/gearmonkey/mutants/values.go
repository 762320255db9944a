package mutants

import (
	"jobwire/codec"
)

// boundNumbers are faults that depend on the number of jobs, connections or words.
var boundNumbers = []mutantSpec{
	{Name: "eight-wait-in-order", About: "If more than eight connections wait for a list, the server serves the last first.",
		KilledBy: "many.waiting-workers[n=9] many.waiting-clients[n=9]", Edit: lined(line{turn: func(l *line, of []*wait) *wait {
			if len(of) > 8 {
				return latest(l, of)
			}
			return longest(l, of)
		}})},
}

// boundRequests are faults in one form of a command, or for one type of key.
var boundRequests = []mutantSpec{
	{Name: "lines-below-64-kib", About: "The server rejects a line of 64 KiB.",
		KilledBy: "form.line-length[n=65529]", Codec: codec.Options{MaxLine: 1<<16 - 1}},
}

// boundClosings are faults when a connection ends in a certain state of a job.
var boundClosings = []mutantSpec{
	{Name: "last-takes-the-place-of-the-gone", About: "When a connection that waits disconnects, the last that waits takes its place.",
		KilledBy: "gone.from-the-middle", Edit: lined(line{turn: longest, swaps: true})},
}
