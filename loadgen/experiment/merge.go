package experiment

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
	"jobwire/internal/textfile"
	"jobwire/internal/version"
	"jobwire/loadgen"
	"jobwire/loadgen/latency"
	"jobwire/loadgen/report"
	"jobwire/loadgen/schedule"
)

// Part is the saved result of one share of a load.
type Part struct {
	Name   string         // name of the result in messages, such as its file
	Report *report.Report // report of the share
	Log    io.Reader      // histogram log of the share
}

// Merge combines the results of the shares of one run into one report: of the newest run, if the parts are of several
// runs. It adds up the counts, and computes the percentiles from the histogram logs, merged by stage and interval. It
// checks the objectives of the shares and the given ones. It also writes the merged latencies to out, unless out is
// nil. Report.Merged has the shares that are missing and the parts of other runs. Merge returns an error if there is
// no part, a share is given twice, the settings of the shares differ, or a log does not match its report.
func Merge(all []Part, objectives []*report.Objective, out *latency.Log) (*report.Report, error) {
	parts, logs, merged, err := newestRun(all)
	if err != nil {
		return nil, err
	}
	if objectives, err = carried(parts, objectives); err != nil {
		return nil, err
	}
	p := parts[0]
	m := merger{&report.Report{Head: version.NewHead(), Protocol: p.Protocol, Scenario: p.Scenario, Target: p.Target,
		Functions: p.Functions, Zipf: p.Zipf, Window: p.Window, Payload: p.Payload,
		Requested: p.Requested, Interval: p.Interval, Linear: p.Linear, Merged: merged, Series: []report.IntervalEntry{}}}
	for _, p := range parts {
		if p.Linear != nil && !p.Linear.Holds {
			m.Linear = p.Linear
		}
	}
	m.add(parts)
	merged.Machines = len(machinesOf(parts))
	m.addProcessors(parts)
	series := m.sumSeries(parts)
	if err := m.addLogs(logs, series, out); err != nil {
		return nil, err
	}
	for _, bucket := range slices.Sorted(maps.Keys(series)) {
		m.Series = append(m.Series, *series[bucket])
	}
	for _, stage := range latency.Stages {
		want := int64(0)
		for _, p := range parts {
			want += p.Latency[stage].Count
		}
		if got := m.Latency[stage].Count; got != want {
			return nil, fmt.Errorf("stage %[2]s: the histogram logs have %[1]s latencies, but the results have %[3]s: a log does not belong to its result",
				prose.Grouped(got), stage, prose.Grouped(want))
		}
	}
	notes := shareNotes(parts, m.Notes())
	for i, p := range parts {
		merged.Parts[i].Notes = append([]string{}, notes[p]...)
	}
	m.Check(objectives)
	return m.Report, nil
}

// merger is the report that [Merge] makes.
type merger struct{ *report.Report }

// newestRun returns the reports and logs of the newest run, ordered by share, and what is to report about its shares.
// Merged.Parts has no notes yet.
func newestRun(all []Part) (parts []*report.Report, logs []io.Reader, m *report.Merged, err error) {
	newest := -1
	for i := range all {
		r := all[i].Report
		switch {
		case r.Share == nil:
			return nil, nil, nil, fmt.Errorf("%s: expected the result of one share of a load (bench run --shares), got the result of a whole load", all[i].Name)
		case r.Interval <= 0:
			return nil, nil, nil, fmt.Errorf("%s: interval_seconds: expected a positive number, got %v", all[i].Name, r.Interval)
		}
		if newest < 0 || r.Started.After(all[newest].Report.Started) {
			newest = i
		}
	}
	if newest < 0 {
		return nil, nil, nil, errors.New("expected the results of the shares of a load, got none")
	}
	run := all[newest].Report.Share
	m = &report.Merged{Run: run.Run, Shares: run.Shares, Missing: []int{}, LeftOut: []string{}}
	byShare := make([]*Part, run.Shares)
	for i := range all {
		p := &all[i]
		s := p.Report.Share
		switch {
		case s.Run != run.Run || s.Shares != run.Shares:
			m.LeftOut = append(m.LeftOut, p.Name+": of another run ("+s.Run+")")
		case s.Index < 0 || s.Index >= run.Shares:
			return nil, nil, nil, fmt.Errorf("%s: share index %d: expected one from 0 to %d", p.Name, s.Index, run.Shares-1)
		case byShare[s.Index] != nil:
			return nil, nil, nil, fmt.Errorf("%s and %s are both the result of share %d", byShare[s.Index].Name, p.Name, s.Index)
		default:
			byShare[s.Index] = p
		}
	}
	for i, p := range byShare {
		if p == nil {
			m.Missing = append(m.Missing, i)
			continue
		}
		r := p.Report
		if why := differs(r, all[newest].Report); why != "" {
			return nil, nil, nil, fmt.Errorf("%s and %s are not of the same run: %s", p.Name, all[newest].Name, why)
		}
		parts, logs = append(parts, r), append(logs, p.Log)
		part := report.MergedShare{Share: *r.Share, Started: r.Started, Seconds: r.Seconds, Jobs: r.Jobs, Rate: r.Rate,
			Interrupted: r.Interrupted}
		if r.Environment != nil {
			part.Host = r.Environment.Host
		}
		m.Parts = append(m.Parts, part)
	}
	return parts, logs, m, nil
}

// differs describes a setting that differs between two shares of one run. It returns "" if none does.
func differs(r, o *report.Report) string {
	alike := *r
	alike.Clients, alike.Workers, alike.Grabs = o.Clients, o.Workers, o.Grabs
	if r.Share.Late > 0 || o.Share.Late > 0 {
		alike.Requested = o.Requested // a late share has only the rest of the schedule
	}
	if why := settingDiff(&alike, o); why != "" {
		return why
	}
	if r.Interval != o.Interval {
		return fmt.Sprintf("interval is %v s in one and %v s in the other", r.Interval, o.Interval)
	}
	return ""
}

// carried returns the objectives of the shares, and then those of more that they do not have.
func carried(parts []*report.Report, more []*report.Objective) (all []*report.Objective, err error) {
	add := func(o *report.Objective) {
		if !slices.ContainsFunc(all, func(a *report.Objective) bool { return a.Text == o.Text }) {
			all = append(all, o)
		}
	}
	for _, p := range parts {
		for _, result := range p.Objectives {
			o, err := report.ParseObjective(result.Objective)
			if err != nil {
				return nil, fmt.Errorf("objective of %s: %w", p.Share, err)
			}
			add(o)
		}
	}
	for _, o := range more {
		add(o)
	}
	return all, nil
}

// add sets the sums of the counts and rates, and the start and end of the whole run.
func (m merger) add(parts []*report.Report) {
	begin, end := parts[0].Started, time.Time{}
	var wrong []string
	for _, p := range parts {
		m.Clients += p.Clients
		m.Workers += p.Workers
		m.Grabs = max(m.Grabs, p.Grabs)
		m.Jobs += p.Jobs
		m.AfterWindow += p.AfterWindow
		m.Reconnects += p.Reconnects
		m.RateRequested += p.RateRequested * p.Seconds // divided by the length of the run below
		m.Backlog += p.Backlog
		if m.KeptUp == nil || p.KeptUp != nil && !*p.KeptUp {
			m.KeptUp = p.KeptUp
		}
		m.Submitted += p.Submitted
		m.Collections += p.Collections
		m.Pauses += p.Pauses
		for _, c := range loadgen.Counters {
			*c.Of(&m.Account) += *c.Of(&p.Account)
		}
		m.First = cmp.Or(m.First, p.First)
		if p.Error != "" {
			wrong = append(wrong, fmt.Sprintf("share %d: %s", p.Share.Index, p.Error))
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
	m.Rate, m.RateRequested = loadgen.PerSecond(float64(m.Jobs), m.Seconds), loadgen.PerSecond(m.RateRequested, m.Seconds)
	m.Seed = parts[0].Seed - uint64(parts[0].Share.Index)<<32 // the seed of the whole run, see Share.Of
	for _, p := range parts {
		if p.Share.Late == 0 {
			m.Requested = p.Requested // a late share has only the rest of the schedule
			break
		}
	}
	if s, err := schedule.Parse(m.Requested); err == nil {
		s = s.Times(float64(len(parts)))
		for i := range s.Steps {
			s.Steps[i].From, s.Steps[i].To = math.Round(s.Steps[i].From*1e6)/1e6, math.Round(s.Steps[i].To*1e6)/1e6
		}
		m.Requested = s.String()
	}
}

// addProcessors sets the CPU times. All shares measure the same target, so the CPU time of the target is the largest
// of their values, not the sum. Processors becomes the number of processors of all
// machines; a machine on which several shares ran is counted once. The CPU time of other programs stays unknown,
// because the shares may run on several machines.
func (m merger) addProcessors(parts []*report.Report) {
	var saturation []string
	generator, target, busy := 0.0, 0.0, 0.0
	known := true
	for _, p := range parts {
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
				m.Pacing = &latency.Quantiles{}
			}
			m.Pacing.Worse(p.Pacing)
		}
		if p.Saturated {
			m.Saturated = true
			saturation = append(saturation, fmt.Sprintf("share %d: %s", p.Share.Index, p.Saturation))
		}
	}
	m.Saturation = strings.Join(saturation, "; ")
	for _, host := range machinesOf(parts) {
		m.Processors += host.processors
	}
	if known {
		m.Cores.Generator = &busy
	}
	if m.Jobs > 0 {
		m.CPU = report.PerJob{Generator: latency.Micros(generator / float64(m.Jobs)),
			Target: latency.Micros(target / float64(m.Jobs))}
	}
}

// indexOf returns the index of the interval of the whole run that is nearest to a start time.
func (m merger) indexOf(at time.Time) int {
	return int(math.Round(at.Sub(m.Started).Seconds() / m.Interval))
}

// sumSeries returns the sums of the intervals of all shares, without latencies. The keys are the indexes of the
// intervals in the whole run.
func (m merger) sumSeries(parts []*report.Report) map[int]*report.IntervalEntry {
	series := map[int]*report.IntervalEntry{}
	for _, p := range parts {
		for _, e := range p.Series {
			if e.Start < 0 {
				continue // skip the warm-up
			}
			at := p.Started.Add(time.Duration(e.Start * float64(time.Second)))
			index := m.indexOf(at)
			sum := series[index]
			if sum == nil {
				sum = &report.IntervalEntry{Start: at.Sub(m.Started).Seconds(), Latency: latency.New().Quantiles()}
				series[index] = sum
			}
			// Shares begin at slightly different times.
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
	in    *hdrhistogram.HistogramLogReader
	next  *hdrhistogram.Histogram // nil: end of the log
	index int                     // interval of next
}

// step reads the next histogram. It returns an error if the histograms are not in the order of time.
func (h *head) step(m merger) error {
	var err error
	before := h.index
	if h.next, err = h.in.NextIntervalHistogram(); err != nil || h.next == nil {
		return err
	}
	h.index = m.indexOf(time.UnixMilli(h.next.StartTimeMs()))
	if h.index < before {
		return errors.New("the entries of a histogram log are not in the order of time")
	}
	return nil
}

// addLogs merges the latencies of the logs, interval by interval, into series and the report. It keeps only one
// histogram of each log in memory.
func (m merger) addLogs(logs []io.Reader, series map[int]*report.IntervalEntry, out *latency.Log) error {
	heads := make([]*head, len(logs))
	for i, log := range logs {
		heads[i] = &head{in: hdrhistogram.NewHistogramLogReader(textfile.NewReader(log, "a histogram log")),
			index: math.MinInt}
		if err := heads[i].step(m); err != nil {
			return fmt.Errorf("cannot read a histogram log: %w", err)
		}
	}
	total, now := latency.New(), latency.New()
	var heat latency.HeatMap
	for {
		index := math.MaxInt
		for _, h := range heads {
			if h.next != nil {
				index = min(index, h.index)
			}
		}
		if index == math.MaxInt {
			break
		}
		now.Reset()
		for _, h := range heads {
			for h.next != nil && h.index == index {
				st := slices.Index(latency.Stages[:], h.next.Tag())
				if st < 0 {
					return fmt.Errorf("a histogram log has the tag %q: expected one of %s", h.next.Tag(),
						strings.Join(latency.Stages[:], ", "))
				}
				if dropped := now[st].Merge(h.next); dropped > 0 {
					return fmt.Errorf("a histogram log has %d latencies outside the range of 500 ns to 1 h", dropped)
				}
				if err := h.step(m); err != nil {
					return fmt.Errorf("cannot read a histogram log: %w", err)
				}
			}
		}
		total.Merge(now)
		e := series[index]
		if e == nil { // times in a log are rounded to milliseconds, so an interval can be assigned to the next index
			e = &report.IntervalEntry{Start: float64(index) * m.Interval, Seconds: m.Interval}
			series[index] = e
		}
		e.Latency = now.Quantiles()
		start := time.Duration(e.Start * float64(time.Second))
		length := time.Duration(e.Seconds * float64(time.Second))
		heat.Add(start, length, now[latency.Total])
		if out != nil {
			out.Add(m.Started.Add(start), length, now)
		}
	}
	m.Latency = total.Quantiles()
	m.Stages, m.Spectrum, m.Heat = total, total.Spectrum(), heat.Heat()
	return nil
}
