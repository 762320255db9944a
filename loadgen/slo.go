package loadgen

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Objective is a bound on a figure of the report, as "p99<5ms" or "rate>1000".
type Objective struct {
	Text   string
	stage  string // of a latency; "" is the rate
	metric string
	limit  float64 // in microseconds, or jobs a second
}

// Judgement is what became of an objective.
type Judgement struct {
	Objective string `json:"objective"`
	Held      bool   `json:"held"`
	Why       string `json:"why"`
}

// ParseObjective reads [STAGE.]METRIC<TIME, where METRIC is p50, p90, p99, p99.9, max or mean
// and STAGE one of [Stages], by default the last; or rate>NUMBER.
func ParseObjective(text string) (*Objective, error) {
	o := &Objective{Text: text}
	fail := func(why string) (*Objective, error) {
		return nil, fmt.Errorf("the objective %q: %s", text, why)
	}
	if number, ok := strings.CutPrefix(text, "rate>"); ok {
		v, err := ParseRate(number)
		if err != nil {
			return fail(err.Error())
		}
		o.limit = v
		return o, nil
	}
	name, bound, ok := strings.Cut(text, "<")
	if !ok {
		return fail("want p99<5ms, queued.p99.9<20ms, max<1s or rate>1000")
	}
	o.stage = Stages[stageTotal]
	if stage, metric, ok := strings.Cut(name, "."); ok && slices.Contains(Stages[:], stage) {
		o.stage, name = stage, metric
	}
	o.metric = name
	if column(name) < 0 {
		var names []string
		for _, c := range columns {
			names = append(names, c.name)
		}
		return fail(fmt.Sprintf("%q is none of %s, nor that of a stage (%s)", name, strings.Join(names, ", "), strings.Join(Stages[:], ", ")))
	}
	d, err := time.ParseDuration(bound)
	if err != nil || d <= 0 {
		return fail(fmt.Sprintf("%q is no time: want 5ms or 200us", bound))
	}
	o.limit = float64(d) / 1e3
	return o, nil
}

// column finds a percentile by its name.
func column(name string) int {
	for i, c := range columns {
		if c.name == name {
			return i
		}
	}
	return -1
}

// Judge holds the report to objectives.
func (r *Report) Judge(objectives []*Objective) {
	r.Objectives = nil
	for _, o := range objectives {
		r.Objectives = append(r.Objectives, o.judge(r))
	}
}

func (o *Objective) judge(r *Report) Judgement {
	j := Judgement{Objective: o.Text}
	word := map[bool]string{true: "held", false: "BROKEN"}
	if o.stage == "" {
		j.Held = r.Rate > o.limit
		j.Why = fmt.Sprintf("%s, it was %s jobs/s", word[j.Held], strconv.FormatFloat(math.Round(r.Rate), 'f', -1, 64))
		return j
	}
	q := r.Latency[o.stage]
	v := columns[column(o.metric)].of(&q)
	if v == 0 {
		// What cannot be known does not hold: a run that is too short must not pass.
		j.Why = fmt.Sprintf("BROKEN, since %s of %s are too few samples to tell", Grouped(q.Count), o.stage)
		return j
	}
	j.Held = float64(v) < o.limit
	j.Why = fmt.Sprintf("%s, it was %s", word[j.Held], v)
	return j
}

// Samples is how many jobs a run needs for the objective to be judged.
func (o *Objective) Samples() int64 {
	if o.stage == "" {
		return 1
	}
	return columns[column(o.metric)].samples
}
