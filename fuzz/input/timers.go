package input

import (
	"slices"
	"strconv"
	"time"

	"jobwire/codec"
)

// timedTemplates are sequences across a timer, in the notation of templates: a time limit of a job, a start time, a
// delay, or the timeout of a request. The pauses of a "waits" end before, at or after the end of a timer in the input.
var timedTemplates = []string{
	// the time limit of a job: its worker finishes it late or in time, restarts the limit, or disconnects
	"1 register.limit; 0 =submit; 1 =ask; 1 touch|status|data?; 1 waits; 1 report|delete|release; 1 report|delete?; 0 query.job?; 2 register?; 2 =ask?",
	"1 register.limit; 0 =submit; 1 =ask; 1 report|delete|release|bury; 1 waits; 0 query.job?; 2 query?; 1 =ask; 2 query?",
	"1 register.limit; 0 =submit; 1 =ask; 1 waits; 1 touch|status|data|warning; 1 waits?; 1 report|delete; 2 register?; 2 =ask?",
	"1 register.limit; 0 =submit; 1 =ask; 1 leaves; 2 register; 2 =ask?; 2 waits; 2 =ask?; 2 report|delete?; 0 query.job?",
	"1 register.limit; 0 =submit; 1 =ask; 0 leaves; 1 waits; 1 report|delete?; 2 register; 2 =ask; 2 query?",
	"1 register.limit; 2 register.limit; 0 =submit; 1 =ask; 1 waits; 2 =ask; 1 report|delete; 2 waits?; 2 report|delete; 1 =ask?",
	"1 register.limit; 0 =submit; 0 =submit; 1 =ask; 1 report|delete?; 1 =ask; 1 waits; 1 =ask?; 2 query; 2 query.job?",
	"1 register.limit; 0 =submit; 1 =ask; 1 waits; 1 leaves; 2 register; 2 =ask; 2 waits?; 2 report|delete; 0 query.job?",
	"1 register.limit; 1 sleep?; 0 =submit; 1 =ask; 1 waits; 1 ask; 1 waits; 2 query.job?; 1 report|delete?",
	"1 register.limit; 0 =submit; 1 =ask; 1 waits; 1 unregister|register.limit|sleep|leaves; 0 =submit?; 1 waits?; 2 register; 2 =ask; 2 query?",
	// a start time, which comes while workers wait, or after the client has disconnected or the job was removed
	"1 register; 1 sleep; 0 !=submit.start; 0 leaves?; 1 waits; 1 =ask; 1 report?",
	"0 !=submit.start; 1 register; 1 ask?; 1 sleep; 1 waits; 1 =ask; 1 waits?; 1 report?",
	"0 =submit?; 0 !=submit.start; 0 =submit.start?; 1 register; 1 =ask; 1 waits; 1 =ask; 1 report?; 1 =ask?",
	"0 !=submit.start; 2 cancel|delete|query?; 1 waits; 2 cancel|delete?; 1 register; 1 =ask; 1 waits?; 1 =ask?",
	// a delay of a job or of a queue, which other requests end early or start again
	"0 !=submit.delay; 1 =ask?; 1 waits; 1 =ask; 1 delete|release; 1 waits?; 2 =ask",
	"0 =submit; 1 =ask; 1 !release.delay; 1 leaves?; 1 waits; 2 =ask; 2 release.delay|delete?; 2 waits?; 2 =ask?",
	"0 !=submit.delay; 0 =submit.delay?; 0 leaves?; 2 kick|delete|query.job?; 1 waits; 1 =ask; 2 query?",
	"0 =submit; 0 !pause; 1 =ask?; 0 pause|=submit?; 1 waits; 1 =ask; 1 delete?",
	// the timeout of a request, which ends while others wait too, or while the worker has a job
	"1 !ask.timeout|wait.timeout; 2 ask?; 1 waits; 1 leaves?; 0 =submit; 1 =ask; 1 delete|report",
	"0 =submit; 1 =ask; 1 !ask.timeout|wait.timeout; 1 waits; 1 delete|report|touch; 1 ask?; 2 query?",
	"1 !ask|wait; 1 waits; 0 =submit; 1 =ask; 1 delete|report",
}

// timed are the meanings of fields that start a timer.
var timed = []codec.Meaning{codec.Delay, codec.TimeLimit, codec.Timeout, codec.StartTime}

// pauses are the durations of pauses that have no relation to a timer.
var pauses = []time.Duration{10 * time.Millisecond, 300 * time.Millisecond, 1100 * time.Millisecond, 2200 * time.Millisecond}

const (
	late       = 550 * time.Millisecond // after the end of a timer, until when every server must have acted
	longest    = 3 * time.Second        // the longest timer that a pause waits for
	mostPauses = 5 * time.Second        // of all pauses of an input
)

// timer returns a short time for a field, as the value and as the duration, or nil if the field has no such value. If the
// unit is less than a second, the value is often 1 or 2, because some servers count seconds.
func (g *Generator) timer(f *codec.Field) []byte {
	if !slices.Contains(timed, f.Means) {
		return nil
	}
	n := int64(1 + g.r.IntN(3)/2)
	if f.Unit > 0 && f.Unit < time.Second && g.r.IntN(2) == 0 {
		n = int64(time.Duration(1+g.r.IntN(10)) * 100 * time.Millisecond / f.Unit)
	}
	return strconv.AppendInt(nil, n, 10)
}

// timers returns the durations of the timers that the messages start, in their order, up to longest.
func (in *Input) timers() (all []time.Duration) {
	for i := range in.Steps {
		s := &in.Steps[i]
		for k, a := range s.Args {
			f, d := s.Type.FieldAt(k), time.Second
			if f == nil || !slices.Contains(timed, f.Means) {
				continue
			}
			if f.Unit > 0 && len(a.Value) > 1 {
				d = f.Unit
			}
			if n, ok := codec.ParseNumber(a.Value); ok && n > 0 && n <= uint64(longest/d) {
				all = append(all, time.Duration(n)*d)
			}
		}
	}
	return all
}

// pause returns the duration of a pause at the end of an input: until before, at or after the end of one of its timers,
// or random.
func (g *Generator) pause(in *Input) time.Duration {
	if all := in.timers(); len(all) > 0 && g.r.IntN(8) > 0 {
		d := all[len(all)-1]
		if g.r.IntN(3) == 0 {
			d = all[g.r.IntN(len(all))]
		}
		if in.Waits() > 0 && g.r.IntN(3) == 0 { // after the first end, but not after the end of a timer that has begun again
			return d * 3 / 4
		}
		return []time.Duration{d * 3 / 4, d, d + 50*time.Millisecond, d + late, d + late, 2*d + late}[g.r.IntN(6)]
	}
	d := pauses[g.r.IntN(len(pauses))]
	if g.Long && g.r.IntN(4) == 0 {
		d *= 5
	}
	return d
}
