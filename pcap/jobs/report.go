package jobs

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"jobwire/internal/prose"
	"jobwire/internal/version"
)

// Report contains statistics about the jobs in a capture.
type Report struct {
	version.Head
	Functions map[string]*Stats `json:"functions"`   // by function or tube
	Anomalies []Anomaly         `json:"anomalies"`   // jobs with anomalies
	Forgotten int               `json:"not_tracked"` // jobs that were not tracked because there were too many

	NotUnderstood map[string]int `json:"not_understood,omitempty"` // as in [pcap.Stats]
}

// Stats are statistics about the jobs of one function or tube.
type Stats struct {
	Submitted   int            `json:"submitted"`
	Coalesced   int            `json:"coalesced"` // number of these jobs that the server combined with an earlier job
	Refused     int            `json:"refused"`
	Assigned    int            `json:"assigned"` // each job is counted once
	Redelivered int            `json:"redelivered"`
	Because     map[string]int `json:"redelivered_because"`
	Released    int            `json:"released"`
	Buried      int            `json:"buried"`
	Deleted     int            `json:"deleted"` // not by the worker that had the job
	Completed   int            `json:"completed"`
	Failed      int            `json:"failed"`
	Twice       int            `json:"ended_repeatedly"`
	Abandoned   int            `json:"client_gone"` // no client waited for the end any more
	Unended     int            `json:"not_ended"`
	// time from the submission, or from the end of a delay, to the first assignment
	Wait   Durations `json:"wait"`
	Run    Durations `json:"run"`    // time from the assignment to the end of the job
	Return Durations `json:"return"` // time from the end of the job until the client received it
}

// Anomaly is an unusual event of a job.
type Anomaly struct {
	Handle    string `json:"handle"`
	Server    string `json:"server"`
	Function  string `json:"function"`
	What      string `json:"what"`
	Uncertain bool   `json:"uncertain"` // bytes are missing on one of its connections, or it may be another job
}

func (s *Stats) redelivered(why string) {
	s.Redelivered++
	s.Because[why]++
}

// add adds the counts of other statistics.
func (s *Stats) add(o *Stats) {
	for _, c := range [][2]*int{{&s.Submitted, &o.Submitted}, {&s.Coalesced, &o.Coalesced}, {&s.Refused, &o.Refused},
		{&s.Assigned, &o.Assigned},
		{&s.Redelivered, &o.Redelivered}, {&s.Released, &o.Released}, {&s.Buried, &o.Buried}, {&s.Deleted, &o.Deleted},
		{&s.Completed, &o.Completed},
		{&s.Failed, &o.Failed}, {&s.Twice, &o.Twice}, {&s.Abandoned, &o.Abandoned}} {
		*c[0] += *c[1]
	}
	for why, n := range o.Because {
		s.Redelivered -= n
		for range n {
			s.redelivered(why)
		}
	}
	s.Wait.addAll(&o.Wait)
	s.Run.addAll(&o.Run)
	s.Return.addAll(&o.Return)
}

// Report returns statistics about the jobs so far.
func (t *Tracker) Report() *Report {
	kept := t.report.Anomalies
	var left []*job
	for _, j := range t.jobs {
		t.settle(j)
		j.stats.Unended = 0
		if j.ends == 0 || j.delivered == 0 && !j.background && !j.abandoned && len(j.waiters) > 0 {
			left = append(left, j)
		}
	}
	slices.SortFunc(left, func(a, b *job) int {
		return cmp.Or(cmp.Compare(a.submitted, b.submitted), strings.Compare(a.key.id, b.key.id))
	})
	for _, j := range left {
		switch {
		case j.ends > 0:
			t.anomaly(j, "ended, but the server did not send the result to the client that waits for it")
			continue
		case j.buried:
			t.anomaly(j, "buried by a worker, and never kicked")
		case j.assigns == 0:
			t.anomaly(j, "never assigned")
		case j.requeued != "":
			t.anomaly(j, "assigned %d times, not redelivered; last event: %s", j.assigns, j.requeued)
		default:
			t.anomaly(j, "assigned %d times, never ended; last assigned to connection %d", j.assigns, j.worker.id)
		}
		j.stats.Unended++
	}
	for name, s := range t.queues {
		if s.Submitted+s.Assigned == 0 {
			delete(t.queues, name)
		}
	}
	r := Report{Head: version.NewHead(), Functions: t.queues, Anomalies: append([]Anomaly{}, t.report.Anomalies...),
		Forgotten: t.report.Forgotten}
	t.report.Anomalies = kept
	return &r
}

// WriteText writes the report as text, in lines of at most width characters where the words allow it.
func (r *Report) WriteText(w io.Writer, width int) error {
	var b bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(r.Functions)) {
		r.Functions[name].writeText(&b, name, width)
	}
	for _, o := range r.Anomalies {
		what := o.What
		if o.Uncertain {
			what += " (uncertain)"
		}
		fmt.Fprintln(&b, prose.Wrap(fmt.Sprintf("%s at %s: ", prose.Line(o.Handle), o.Server), "    ", what, width))
	}
	if r.Forgotten > 0 {
		fmt.Fprintln(&b, prose.Wrap("", "", fmt.Sprintf("%d jobs are not in these statistics: there were too many jobs at the same time to follow them all", r.Forgotten), width))
	}
	_, err := w.Write(b.Bytes())
	return err
}

// writeText writes the statistics of one function or tube: the counts of jobs by what happened to them, the reasons of
// redeliveries, and percentiles of the durations.
func (s *Stats) writeText(b *bytes.Buffer, name string, width int) {
	if name == "" {
		name = "(function or tube not captured)"
	}
	fmt.Fprintln(b, prose.Line(name))
	counts := fmt.Sprintf("%d submitted", s.Submitted)
	for _, c := range []struct {
		n      int
		text   string
		always bool
	}{{s.Coalesced, "combined with an earlier equal job", false}, {s.Refused, "refused", false},
		{s.Assigned, "assigned", true}, {s.Redelivered, "redelivered", true},
		{s.Released, "released", false}, {s.Buried, "buried", false}, {s.Deleted, "deleted from the queue", false},
		{s.Completed, "completed", true}, {s.Failed, "failed", true}, {s.Twice, "ended more than once", false},
		{s.Abandoned, "ended after the client disconnected", false}, {s.Unended, "not ended", true}} {
		if c.n > 0 || c.always {
			counts += fmt.Sprintf(", %d %s", c.n, c.text)
		}
	}
	fmt.Fprintln(b, prose.Wrap("  ", "    ", counts, width))
	for _, why := range slices.Sorted(maps.Keys(s.Because)) {
		fmt.Fprintln(b, prose.Wrap("  ", "    ", fmt.Sprintf("%d redelivered: %s", s.Because[why], why), width))
	}
	for _, d := range []struct {
		name string
		d    *Durations
	}{{"wait", &s.Wait}, {"run", &s.Run}, {"return", &s.Return}} {
		if d.d.Count() > 0 {
			fmt.Fprintf(b, "  %-7s p50 %-10v p90 %-10v p99 %-10v max %v\n", d.name, d.d.Quantile(.5), d.d.Quantile(.9),
				d.d.Quantile(.99), d.d.Quantile(1))
		}
	}
}
