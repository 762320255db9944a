package pcap

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// JobReport tells what became of the jobs in a capture.
type JobReport struct {
	Functions map[string]*JobStats `json:"functions"` // or tubes
	Odd       []OddJob             `json:"odd"`       // jobs that did not go as they should
	Forgotten int                  `json:"forgotten"` // jobs that were too many to follow
}

// JobStats are the jobs of one function or tube.
type JobStats struct {
	Submitted   int            `json:"submitted"`
	Joined      int            `json:"joined"` // of them: those for which an equal job stood
	Refused     int            `json:"refused"`
	Assigned    int            `json:"assigned"` // each job once
	Redelivered int            `json:"redelivered"`
	Because     map[string]int `json:"redelivered_because"`
	Returned    int            `json:"released"`
	Buried      int            `json:"buried"`
	Deleted     int            `json:"deleted"` // without a worker that had them
	Completed   int            `json:"completed"`
	Failed      int            `json:"failed"`
	Twice       int            `json:"ended_again"`
	Unanswered  int            `json:"answered_to_nobody"` // who waited for the end was gone by then
	Unended     int            `json:"unended"`
	Wait        Durations      `json:"wait"`   // from submission, or the end of a delay, to the first worker
	Run         Durations      `json:"run"`    // from the worker's getting it to its end
	Return      Durations      `json:"return"` // from there to the client
}

// OddJob is a job that did not go as it should.
type OddJob struct {
	Handle    string `json:"handle"`
	Server    string `json:"server"`
	Function  string `json:"function"`
	What      string `json:"what"`
	Uncertain bool   `json:"uncertain"` // bytes are missing on a connection that it was seen on, or it could be another job
}

func (s *JobStats) redelivered(why string) {
	if s.Because == nil {
		s.Because = map[string]int{}
	}
	s.Redelivered++
	s.Because[why]++
}

// add counts what another has counted.
func (s *JobStats) add(o *JobStats) {
	for _, c := range [][2]*int{{&s.Submitted, &o.Submitted}, {&s.Joined, &o.Joined}, {&s.Refused, &o.Refused}, {&s.Assigned, &o.Assigned},
		{&s.Redelivered, &o.Redelivered}, {&s.Returned, &o.Returned}, {&s.Buried, &o.Buried}, {&s.Deleted, &o.Deleted}, {&s.Completed, &o.Completed},
		{&s.Failed, &o.Failed}, {&s.Twice, &o.Twice}, {&s.Unanswered, &o.Unanswered}} {
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

// Report tells what became of the jobs so far.
func (j *Jobs) Report() *JobReport {
	kept := j.report.Odd
	var left []*job
	for _, w := range j.jobs {
		j.settle(w)
		w.stats.Unended = 0
		if w.ends == 0 || w.told == 0 && !w.unheard && !w.nobody && len(w.waiters) > 0 {
			left = append(left, w)
		}
	}
	slices.SortFunc(left, func(a, b *job) int {
		return cmp.Or(cmp.Compare(a.submitted, b.submitted), strings.Compare(a.key.handle, b.key.handle))
	})
	for _, w := range left {
		switch {
		case w.ends > 0:
			j.odd(w, "ended, but who waited for it was not told")
			continue
		case w.buried:
			j.odd(w, "buried, and not kicked")
		case w.assigns == 0:
			j.odd(w, "never assigned")
		case w.why != "":
			j.odd(w, "assigned %d times, and not again: %s", w.assigns, w.why)
		default:
			j.odd(w, "assigned %d times, never ended; last on connection %d", w.assigns, w.worker.id)
		}
		w.stats.Unended++
	}
	for name, s := range j.functions {
		if s.Submitted+s.Assigned == 0 {
			delete(j.functions, name)
		}
	}
	r := JobReport{Functions: j.functions, Odd: j.report.Odd, Forgotten: j.report.Forgotten}
	j.report.Odd = kept
	return &r
}

// WriteJSON writes the report as one object.
func (r *JobReport) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// WriteText writes the report for people.
func (r *JobReport) WriteText(w io.Writer) error {
	var b bytes.Buffer
	for _, name := range sorted(r.Functions) {
		r.Functions[name].writeText(&b, name)
	}
	for _, o := range r.Odd {
		fmt.Fprintf(&b, "%s at %s: %s", o.Handle, o.Server, o.What)
		if o.Uncertain {
			b.WriteString(" (uncertain)")
		}
		b.WriteByte('\n')
	}
	if r.Forgotten > 0 {
		fmt.Fprintf(&b, "%d jobs were too many to follow\n", r.Forgotten)
	}
	_, err := w.Write(b.Bytes())
	return err
}

func (s *JobStats) writeText(b *bytes.Buffer, name string) {
	if name == "" {
		name = "(function or tube not captured)"
	}
	fmt.Fprintf(b, "%s\n  %d submitted", name, s.Submitted)
	for _, c := range []struct {
		n      int
		text   string
		always bool
	}{{s.Joined, "joined another", false}, {s.Refused, "refused", false}, {s.Assigned, "assigned", true}, {s.Redelivered, "redelivered", true},
		{s.Returned, "released", false}, {s.Buried, "buried", false}, {s.Deleted, "deleted from the queue", false},
		{s.Completed, "completed", true}, {s.Failed, "failed", true}, {s.Twice, "ended once more", false},
		{s.Unanswered, "answered to nobody", false}, {s.Unended, "not ended", true}} {
		if c.n > 0 || c.always {
			fmt.Fprintf(b, ", %d %s", c.n, c.text)
		}
	}
	b.WriteByte('\n')
	for _, why := range sorted(s.Because) {
		fmt.Fprintf(b, "  %d times again: %s\n", s.Because[why], why)
	}
	for _, d := range []struct {
		name string
		d    *Durations
	}{{"wait", &s.Wait}, {"run", &s.Run}, {"return", &s.Return}} {
		if d.d.n > 0 {
			fmt.Fprintf(b, "  %-7s p50 %-10v p90 %-10v p99 %-10v max %v\n", d.name, d.d.Quantile(.5), d.d.Quantile(.9), d.d.Quantile(.99), d.d.Quantile(1))
		}
	}
}
