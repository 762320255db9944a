package loadgen

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"jobwire/internal/prose"
	"jobwire/internal/version"
)

// Merge combines the reports of all shares of a run into one report. It adds up the counts, and computes the
// percentiles from the histogram logs of the shares, merged by stage and interval. It also writes the merged
// latencies to out, unless out is nil. It returns an error if a share is missing or given twice, the settings of the
// shares differ, or the logs do not match the reports.
func Merge(parts []*Report, logs []io.Reader, out *Log) (*Report, error) {
	if err := checkShares(parts); err != nil {
		return nil, err
	}
	slices.SortFunc(parts, func(a, b *Report) int { return cmp.Compare(shareOf(a).I, shareOf(b).I) })
	m := *parts[0]
	m.Share, m.Latency, m.Series, m.Spectrum, m.Heat, m.Objectives = "", nil, []IntervalEntry{}, nil, nil, nil
	m.add(parts)
	m.addProcessors(parts)
	series := m.addSeries(parts)
	if err := m.addLogs(logs, series, out); err != nil {
		return nil, err
	}
	for _, bucket := range slices.Sorted(maps.Keys(series)) {
		m.Series = append(m.Series, *series[bucket])
	}
	for _, stage := range Stages {
		want := int64(0)
		for _, p := range parts {
			want += p.Latency[stage].Count
		}
		if got := m.Latency[stage].Count; got != want {
			return nil, fmt.Errorf("stage %[2]s: the histogram logs have %[1]s latencies, but the results have %[3]s: the log of one part of the load is missing or named twice",
				prose.Grouped(got), stage, prose.Grouped(want))
		}
	}
	m.Head = version.NewHead()
	m.conclude()
	return &m, nil
}

// shareOf returns the share of a report, or the zero value if it has none.
func shareOf(r *Report) Share {
	s, _ := ParseShare(r.Share)
	return s
}

// checkShares returns an error unless the parts are all shares of one run, each exactly once.
func checkShares(parts []*Report) error {
	if len(parts) == 0 {
		return errors.New("expected the results of all parts of the load, got none")
	}
	n := shareOf(parts[0]).N
	seen := make([]bool, n+1)
	for _, p := range parts {
		s := shareOf(p)
		switch {
		case s.N == 0:
			return errors.New("expected the result of one part of a load (bench run --share), got the result of a whole load")
		case s.N != n:
			return fmt.Errorf("parts %s and %s are not of the same run", p.Share, parts[0].Share)
		case seen[s.I]:
			return fmt.Errorf("part %s is named twice", p.Share)
		}
		seen[s.I] = true
		alike := *p
		alike.Clients, alike.Workers, alike.Grabs = parts[0].Clients, parts[0].Workers, parts[0].Grabs
		if why := alike.settingDiff(parts[0]); why != "" {
			return fmt.Errorf("parts %s and %s are not of the same run: %s", p.Share, parts[0].Share, why)
		}
		if p.Interval != parts[0].Interval {
			return fmt.Errorf("part %s has an --interval of %v s, but part %s has an --interval of %v s", p.Share, p.Interval, parts[0].Share, parts[0].Interval)
		}
	}
	for i := 1; i <= n; i++ {
		if !seen[i] {
			return fmt.Errorf("part %d/%d of the load is missing", i, n)
		}
	}
	return nil
}

// add sets the sums of the counts and rates, and the start and end of the whole run.
func (m *Report) add(parts []*Report) {
	m.Clients, m.Workers, m.Grabs = 0, 0, 0
	m.Jobs, m.AfterWindow, m.Reconnects, m.Submitted, m.Collections, m.Pauses = 0, 0, 0, 0, 0, 0
	m.RateRequested, m.Backlog, m.KeptUp = 0, 0, nil
	m.First, m.Error, m.Interrupted = "", "", false
	for _, t := range tallies {
		*t.count(&m.Account) = 0
	}
	begin, end := parts[0].Started, time.Time{}
	var wrong []string
	for _, p := range parts {
		m.Clients += p.Clients
		m.Workers += p.Workers
		m.Grabs = max(m.Grabs, p.Grabs)
		m.Jobs += p.Jobs
		m.AfterWindow += p.AfterWindow
		m.Reconnects += p.Reconnects
		m.RateRequested += p.RateRequested
		m.Backlog += p.Backlog
		if m.KeptUp == nil || p.KeptUp != nil && !*p.KeptUp {
			m.KeptUp = p.KeptUp
		}
		m.Submitted += p.Submitted
		m.Collections += p.Collections
		m.Pauses += p.Pauses
		for _, t := range tallies {
			*t.count(&m.Account) += *t.count(&p.Account)
		}
		m.First = cmp.Or(m.First, p.First)
		m.Interrupted = m.Interrupted || p.Interrupted
		if p.Error != "" {
			wrong = append(wrong, "share "+p.Share+": "+p.Error)
		}
		if p.Started.Before(begin) {
			begin = p.Started
		}
		if e := p.Started.Add(time.Duration(p.Seconds * float64(time.Second))); e.After(end) {
			end = e
		}
	}
	m.Error = strings.Join(wrong, "\n")
	m.Started, m.Seconds = begin, end.Sub(begin).Seconds()
	m.Rate = float64(m.Jobs) / m.Seconds
	m.Seed = parts[0].Seed // the seed of the first share is the seed of the whole run
	if s, err := ParseSchedule(m.Requested); err == nil {
		s = s.times(float64(len(parts)))
		for i := range s.Steps {
			s.Steps[i].From, s.Steps[i].To = math.Round(s.Steps[i].From*1e6)/1e6, math.Round(s.Steps[i].To*1e6)/1e6
		}
		m.Requested = s.String()
	}
}

// addProcessors sets the CPU times. All shares measure the same target, so the CPU time of the target is the largest
// of their values, not the sum. The CPU time of other programs stays unknown, because the shares may run on several
// machines.
func (m *Report) addProcessors(parts []*Report) {
	m.Processors, m.Cores, m.Pacing, m.Saturated, m.Saturation = 0, Cores{}, nil, false, ""
	generator, target, busy := 0.0, 0.0, 0.0
	known := true
	for _, p := range parts {
		m.Processors += p.Processors
		generator += float64(p.CPU.Generator) * float64(p.Jobs)
		target = max(target, float64(p.CPU.Target)*float64(p.Jobs))
		if p.Cores.Generator != nil {
			busy += *p.Cores.Generator
		} else {
			known = false
		}
		if p.Cores.Target != nil && (m.Cores.Target == nil || *p.Cores.Target > *m.Cores.Target) {
			m.Cores.Target = p.Cores.Target
		}
		if p.Pacing != nil {
			if m.Pacing == nil {
				m.Pacing = &Quantiles{}
			}
			m.Pacing.worse(p.Pacing)
		}
		if p.Saturated && !m.Saturated {
			m.Saturated, m.Saturation = true, "share "+p.Share+": "+p.Saturation
		}
	}
	if known {
		m.Cores.Generator = &busy
	}
	m.CPU = PerJob{}
	if m.Jobs > 0 {
		m.CPU = PerJob{Micros(generator / float64(m.Jobs)), Micros(target / float64(m.Jobs))}
	}
}

// bucket returns the index of the interval of the whole run that is nearest to a start time.
func (m *Report) bucket(at time.Time) int {
	return int(math.Round(at.Sub(m.Started).Seconds() / m.Interval))
}

// addSeries returns the intervals of the whole run by index, with their counts but without latencies.
func (m *Report) addSeries(parts []*Report) map[int]*IntervalEntry {
	series := map[int]*IntervalEntry{}
	for _, p := range parts {
		for _, e := range p.Series {
			if e.Start < 0 {
				continue // skip the warm-up
			}
			at := p.Started.Add(time.Duration(e.Start * float64(time.Second)))
			b := m.bucket(at)
			sum := series[b]
			if sum == nil {
				sum = &IntervalEntry{Start: at.Sub(m.Started).Seconds(), Latency: newHistograms().quantiles()}
				series[b] = sum
			}
			sum.Start = min(sum.Start, at.Sub(m.Started).Seconds())
			sum.Seconds = max(sum.Seconds, e.Seconds)
			sum.Requested += e.Requested
			sum.Jobs += e.Jobs
			sum.Depth += e.Depth
		}
	}
	return series
}

// head is a histogram log with the next histogram to read.
type head struct {
	in     *hdrhistogram.HistogramLogReader
	next   *hdrhistogram.Histogram // nil: end of the log
	bucket int                     // interval of next
}

// step reads the next histogram. It returns an error if the histograms are not in the order of time.
func (h *head) step(m *Report) error {
	var err error
	before := h.bucket
	if h.next, err = h.in.NextIntervalHistogram(); err != nil || h.next == nil {
		return err
	}
	h.bucket = m.bucket(time.UnixMilli(h.next.StartTimeMs()))
	if h.bucket < before {
		return errors.New("the entries of a histogram log are not in the order of time")
	}
	return nil
}

// addLogs merges the latencies of the logs, interval by interval, into series and the report. It keeps only one
// histogram of each log in memory.
func (m *Report) addLogs(logs []io.Reader, series map[int]*IntervalEntry, out *Log) error {
	heads := make([]*head, len(logs))
	for i, log := range logs {
		heads[i] = &head{in: hdrhistogram.NewHistogramLogReader(log), bucket: math.MinInt}
		if err := heads[i].step(m); err != nil {
			return fmt.Errorf("cannot read a histogram log: %w", err)
		}
	}
	total, now := newHistograms(), newHistograms()
	var heat heatmap
	for {
		bucket := math.MaxInt
		for _, h := range heads {
			if h.next != nil {
				bucket = min(bucket, h.bucket)
			}
		}
		if bucket == math.MaxInt {
			break
		}
		now.reset()
		for _, h := range heads {
			for h.next != nil && h.bucket == bucket {
				st := slices.Index(Stages[:], h.next.Tag())
				if st < 0 {
					return fmt.Errorf("a histogram log has the tag %q: expected one of %s", h.next.Tag(), strings.Join(Stages[:], ", "))
				}
				if dropped := now[st].Merge(h.next); dropped > 0 {
					return fmt.Errorf("a histogram log has %d latencies outside the range of 500 ns to 1 h", dropped)
				}
				if err := h.step(m); err != nil {
					return fmt.Errorf("cannot read a histogram log: %w", err)
				}
			}
		}
		total.merge(now)
		e := series[bucket]
		if e == nil { // times in a log are rounded to milliseconds, so an interval can be assigned to the next index
			e = &IntervalEntry{Start: float64(bucket) * m.Interval, Seconds: m.Interval}
			series[bucket] = e
		}
		e.Latency = now.quantiles()
		iv := Interval{Start: time.Duration(e.Start * float64(time.Second)), Length: time.Duration(e.Seconds * float64(time.Second)), Stages: now}
		heat.addInterval(&iv)
		if out != nil {
			out.add(m.Started.Add(iv.Start), &iv)
		}
	}
	m.Latency = total.quantiles()
	m.distribute(&heat, total)
	return nil
}
