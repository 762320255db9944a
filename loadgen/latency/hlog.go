package latency

import (
	"bufio"
	"io"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Log writes the latencies of every interval to an HdrHistogram log, with the names of the stages as tags. Values are
// in nanoseconds. Start times are absolute, because a base time would be rounded to whole seconds.
type Log struct {
	buf     *bufio.Writer
	out     *hdrhistogram.HistogramLogWriter
	started bool
	err     error
}

// NewLog returns a log that writes to w. The log is complete after Close, which does not close w.
func NewLog(w io.Writer) *Log {
	buf := bufio.NewWriter(w)
	return &Log{buf: buf, out: hdrhistogram.NewHistogramLogWriter(buf)}
}

// begin writes the header of the log.
func (l *Log) begin(at time.Time) {
	l.started = true
	for _, write := range []func() error{
		func() error { return l.out.OutputComment("[Logged by jobwire bench: nanoseconds]") },
		l.out.OutputLogFormatVersion,
		func() error { return l.out.OutputStartTime(at.UnixMilli()) },
		l.out.OutputLegend,
	} {
		if l.err == nil {
			l.err = write()
		}
	}
}

// Add writes the histograms of an interval.
func (l *Log) Add(start time.Time, length time.Duration, stages Histograms) {
	if !l.started {
		l.begin(start)
	}
	for st, h := range stages {
		if h.TotalCount() == 0 || l.err != nil {
			continue
		}
		h.SetTag(Stages[st])
		h.SetStartTimeMs(start.UnixMilli())
		h.SetEndTimeMs(start.Add(length).UnixMilli())
		l.err = l.out.OutputIntervalHistogram(h)
	}
}

// Close flushes the log and returns the first error of a write.
func (l *Log) Close() error {
	if !l.started {
		l.begin(time.Now())
	}
	if err := l.buf.Flush(); l.err == nil {
		l.err = err
	}
	return l.err
}
