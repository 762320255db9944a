package pcap

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/bits"
	"net/netip"
	"slices"
	"time"

	"jobwire/codec"
	"jobwire/codec/beanstalk"
	"jobwire/codec/gearman"
)

// deed is what a message does to a job.
type deed uint8

const (
	submits  deed = iota + 1 // its handle comes with the reply
	creates                  // tells the handle of the oldest job that waits for one
	refuses                  // the same, and there is no job
	assigns                  // to whoever it is sent to
	finishes                 // the worker is done
	fails                    // the worker has failed
	tells                    // the client is told of the end
	returns                  // the job waits for another worker
	names                    // the function of what follows on the connection
)

// jobRow is a message that does something to a job.
type jobRow struct {
	from     codec.Side
	typ      string
	does     deed
	key      string // the argument that tells the job
	function string // the argument that tells the function or tube
}

// jobRows says how the protocols with handles carry jobs.
var jobRows = map[*codec.Protocol][]jobRow{
	gearman.Protocol: {
		{codec.Peer, "SUBMIT_JOB", submits, "", "Function"},
		{codec.Peer, "SUBMIT_JOB_BG", submits, "", "Function"},
		{codec.Peer, "SUBMIT_JOB_HIGH", submits, "", "Function"},
		{codec.Peer, "SUBMIT_JOB_HIGH_BG", submits, "", "Function"},
		{codec.Peer, "SUBMIT_JOB_LOW", submits, "", "Function"},
		{codec.Peer, "SUBMIT_JOB_LOW_BG", submits, "", "Function"},
		{codec.Peer, "SUBMIT_JOB_SCHED", submits, "", "Function"},
		{codec.Peer, "SUBMIT_JOB_EPOCH", submits, "", "Function"},
		{codec.Peer, "SUBMIT_REDUCE_JOB", submits, "", "Function"},
		{codec.Peer, "SUBMIT_REDUCE_JOB_BACKGROUND", submits, "", "Function"},
		{codec.Server, "JOB_CREATED", creates, "Job handle", ""},
		{codec.Server, "ERROR", refuses, "", ""},
		{codec.Server, "JOB_ASSIGN", assigns, "Job handle", "Function"},
		{codec.Server, "JOB_ASSIGN_UNIQ", assigns, "Job handle", "Function"},
		{codec.Server, "JOB_ASSIGN_ALL", assigns, "Job handle", "Function"},
		{codec.Peer, "WORK_COMPLETE", finishes, "Job handle", ""},
		{codec.Peer, "WORK_FAIL", fails, "Job handle", ""},
		{codec.Server, "WORK_COMPLETE", tells, "Job handle", ""},
		{codec.Server, "WORK_FAIL", tells, "Job handle", ""},
	},
	beanstalk.Protocol: {
		{codec.Peer, "use", names, "", "Tube"},
		{codec.Peer, "put", submits, "", ""},
		{codec.Server, "INSERTED", creates, "Job ID", ""},
		{codec.Server, "BURIED_JOB", creates, "Job ID", ""},
		{codec.Server, "JOB_TOO_BIG", refuses, "", ""},
		{codec.Server, "EXPECTED_CRLF", refuses, "", ""},
		{codec.Server, "DRAINING", refuses, "", ""},
		{codec.Server, "RESERVED", assigns, "Job ID", ""},
		{codec.Peer, "delete", finishes, "Job ID", ""},
		{codec.Peer, "release", returns, "Job ID", ""},
		{codec.Peer, "bury", fails, "Job ID", ""},
	},
}

// Bounds of what is remembered.
const (
	maxJobs      = 1 << 17 // jobs, and those that wait for their handle
	maxFunctions = 1000
	maxOdd       = 1000 // jobs that are told by name
)

// Jobs follows jobs across connections, by the handles of their server.
type Jobs struct {
	rows      map[*codec.Type][2]*jobRow
	jobs      map[jobKey]*job
	waiting   map[int][]*job // by connection: for their handle
	tube      map[int]string // by connection
	functions map[string]*JobStats
	report    JobReport
	full      int // jobs that came when there was no room
}

type jobKey struct {
	server netip.AddrPort
	handle string
}

type job struct {
	key                              jobKey
	stats                            *JobStats
	submitted, assigned, ended, told int64
	assigns, ends                    int
	worker                           int // connection it was assigned to last
	uncertain                        bool
}

// JobReport tells what became of the jobs in a capture.
type JobReport struct {
	Functions map[string]*JobStats `json:"functions"` // or tubes
	Odd       []OddJob             `json:"odd"`       // jobs that did not go as they should
	Forgotten int                  `json:"forgotten"` // jobs that were too many to follow
}

// JobStats are the jobs of one function or tube.
type JobStats struct {
	Submitted   int       `json:"submitted"`
	Refused     int       `json:"refused"`
	Assigned    int       `json:"assigned"` // each job once
	Redelivered int       `json:"redelivered"`
	Completed   int       `json:"completed"`
	Failed      int       `json:"failed"` // or buried
	Unended     int       `json:"unended"`
	Wait        Durations `json:"wait"`   // from submission to the first worker
	Run         Durations `json:"run"`    // from the worker's getting it to its end
	Return      Durations `json:"return"` // from there to the client
}

// OddJob is a job that did not go as it should.
type OddJob struct {
	Handle    string `json:"handle"`
	Server    string `json:"server"`
	What      string `json:"what"`
	Uncertain bool   `json:"uncertain"` // bytes are missing on a connection that it was seen on
}

// NewJobs returns one that knows no job yet.
func NewJobs() *Jobs {
	j := &Jobs{rows: map[*codec.Type][2]*jobRow{}, jobs: map[jobKey]*job{}, waiting: map[int][]*job{}, tube: map[int]string{}, functions: map[string]*JobStats{}}
	for p, rows := range jobRows {
		for i := range rows {
			t := p.TypeNamed(rows[i].typ)
			both := j.rows[t]
			both[rows[i].from] = &rows[i]
			j.rows[t] = both
		}
	}
	return j
}

// Add follows the jobs in an item.
func (j *Jobs) Add(it *Item) {
	if it.Kind == Ends || it.Kind == Breaks {
		delete(j.waiting, it.Conn.ID)
		delete(j.tube, it.Conn.ID)
		return
	}
	if it.Kind != Message || it.Frame.Type == nil {
		return
	}
	r := j.rows[it.Frame.Type][it.From]
	if r == nil {
		return
	}
	c, handle, function := it.Conn, argument(it.Frame, r.key), string(argument(it.Frame, r.function))
	if function == "" {
		function = j.tube[c.ID]
	}
	switch r.does {
	case names:
		j.tube[c.ID] = function
		return
	case submits:
		w := &job{stats: j.of(function), submitted: it.At, uncertain: c.Uncertain}
		w.stats.Submitted++
		if len(j.waiting[c.ID]) < maxJobs {
			j.waiting[c.ID] = append(j.waiting[c.ID], w)
		}
		return
	case creates, refuses:
		queue := j.waiting[c.ID]
		if len(queue) == 0 {
			return
		}
		w := queue[0]
		j.waiting[c.ID] = queue[1:]
		if r.does == refuses {
			w.stats.Refused++
			return
		}
		w.key = jobKey{c.Server, string(handle)}
		w.uncertain = w.uncertain || c.Uncertain
		if old := j.jobs[w.key]; old != nil && old.submitted == 0 { // assigned before its handle was told
			old.submitted = w.submitted
			if old.stats != w.stats && old.stats == j.functions[""] {
				old.stats = w.stats
			}
			old.stats.Wait.add(old.assigned - old.submitted)
		} else if old == nil || old.ends > 0 {
			j.remember(w)
		}
		return
	}
	w := j.jobs[jobKey{c.Server, string(handle)}]
	if w == nil {
		if r.does != assigns { // begun before the capture
			return
		}
		w = &job{key: jobKey{c.Server, string(handle)}, stats: j.of(function), uncertain: c.Uncertain}
		j.remember(w)
	}
	w.uncertain = w.uncertain || c.Uncertain
	w.does(r.does, it)
	if w.ends > 1 && (r.does == finishes || r.does == fails) {
		j.odd(w, fmt.Sprintf("ended %d times", w.ends))
	}
}

// does notes what a message did.
func (w *job) does(d deed, it *Item) {
	switch d {
	case assigns:
		if w.assigns++; w.assigns == 1 {
			w.stats.Assigned++
			if w.submitted != 0 {
				w.stats.Wait.add(it.At - w.submitted)
			}
		} else {
			w.stats.Redelivered++
		}
		w.assigned, w.worker = it.At, it.Conn.ID
	case finishes, fails:
		if w.ends++; w.ends > 1 {
			return
		}
		if d == finishes {
			w.stats.Completed++
		} else {
			w.stats.Failed++
		}
		if w.ended = it.At; w.assigned != 0 {
			w.stats.Run.add(it.At - w.assigned)
		}
	case tells:
		if w.ended != 0 && w.told == 0 {
			w.told = it.At
			w.stats.Return.add(it.At - w.ended)
		}
	}
}

// argument returns an argument by its name.
func argument(f *codec.Frame, name string) []byte {
	if name == "" {
		return nil
	}
	for i := range f.Spans {
		if f.Spans[i].Field.Name == name {
			return f.Value(i)
		}
	}
	return nil
}

func (j *Jobs) of(function string) *JobStats {
	s := j.functions[function]
	if s == nil {
		if len(j.functions) >= maxFunctions {
			function = "others"
		}
		if s = j.functions[function]; s == nil {
			s = &JobStats{}
			j.functions[function] = s
		}
	}
	return s
}

// remember follows a job, and forgets those that have ended where it would be one
// too many.
func (j *Jobs) remember(w *job) {
	if len(j.jobs) >= maxJobs {
		if j.full++; j.full%(maxJobs/8) == 1 { // not for every job, where none has ended
			for key, old := range j.jobs {
				if old.ends > 0 {
					delete(j.jobs, key)
				}
			}
			if len(j.jobs) < maxJobs/2 {
				j.full = 0
			}
		}
		if len(j.jobs) >= maxJobs {
			j.report.Forgotten++
			return
		}
	}
	j.jobs[w.key] = w
}

func (j *Jobs) odd(w *job, what string) {
	if len(j.report.Odd) < maxOdd {
		j.report.Odd = append(j.report.Odd, OddJob{w.key.handle, w.key.server.String(), what, w.uncertain})
	}
}

// Report tells what became of the jobs so far.
func (j *Jobs) Report() *JobReport {
	r := j.report
	j.report.Odd = nil
	r.Functions = j.functions
	var left []*job
	for _, w := range j.jobs {
		if w.ends == 0 {
			w.stats.Unended++
			left = append(left, w)
		}
	}
	slices.SortFunc(left, func(a, b *job) int { return bytes.Compare([]byte(a.key.handle), []byte(b.key.handle)) })
	j.report = r
	for _, w := range left {
		what := "never assigned"
		if w.assigns > 0 {
			what = fmt.Sprintf("assigned %d times, never ended; last on connection %d", w.assigns, w.worker)
		}
		j.odd(w, what)
	}
	for name, s := range j.functions {
		if *s == (JobStats{}) {
			delete(j.functions, name)
		}
	}
	r.Odd = j.report.Odd
	return &r
}

// Durations is a histogram of times, exact to some three percent.
type Durations struct {
	counts [64 * 32]uint32
	n      int
}

func (d *Durations) add(ns int64) {
	v := uint64(max(ns, 0))
	i := int(v)
	if v >= 32 {
		e := bits.Len64(v) - 6
		i = (e+1)*32 + int(v>>e) - 32
	}
	d.counts[i]++
	d.n++
}

// Quantile returns the time that a share of all does not exceed, 0 if there are none.
func (d *Durations) Quantile(q float64) time.Duration {
	left := int(q*float64(d.n) + 0.5)
	for i, c := range d.counts {
		if left -= int(c); c > 0 && left <= 0 {
			if i < 32 {
				return time.Duration(i)
			}
			e := i/32 - 1
			return time.Duration(uint64(i%32+32)<<e + 1<<e/2)
		}
	}
	return 0
}

// MarshalJSON writes count and quantiles in nanoseconds.
func (d *Durations) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]int64{"count": int64(d.n), "p50": int64(d.Quantile(.5)), "p90": int64(d.Quantile(.9)), "p99": int64(d.Quantile(.99)), "max": int64(d.Quantile(1))})
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
		s := r.Functions[name]
		if name == "" {
			name = "(function or tube not captured)"
		}
		fmt.Fprintf(&b, "%s\n  %d submitted, %d refused, %d assigned, %d redelivered, %d completed, %d failed, %d not ended\n",
			name, s.Submitted, s.Refused, s.Assigned, s.Redelivered, s.Completed, s.Failed, s.Unended)
		for _, d := range []struct {
			name string
			d    *Durations
		}{{"wait", &s.Wait}, {"run", &s.Run}, {"return", &s.Return}} {
			if d.d.n > 0 {
				fmt.Fprintf(&b, "  %-7s p50 %-10v p90 %-10v p99 %-10v max %v\n", d.name, d.d.Quantile(.5), d.d.Quantile(.9), d.d.Quantile(.99), d.d.Quantile(1))
			}
		}
	}
	for _, o := range r.Odd {
		fmt.Fprintf(&b, "%s at %s: %s", o.Handle, o.Server, o.What)
		if o.Uncertain {
			b.WriteString(" (uncertain: data is missing)")
		}
		b.WriteByte('\n')
	}
	if r.Forgotten > 0 {
		fmt.Fprintf(&b, "%d jobs were too many to follow\n", r.Forgotten)
	}
	_, err := w.Write(b.Bytes())
	return err
}
