package model

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"jobwire/codec"
)

// stats expects a reply with a YAML dictionary that has the given values. It does not check other keys, nor whether a
// key is missing.
func (m *beanstalk) stats(p *bPeer, rule string, names string, expected map[string]string) {
	m.expect(p.conn, codec.RuleID(rule+".answered"), strings.ReplaceAll(names, " ", " or "),
		typed(names, func(r *codec.Frame) error {
			if r.Type.Name == "NOT_FOUND" {
				return nil
			}
			for _, cells := range listLines(r) {
				if string(cells[0]) == m.p.Framing.Lines.Body[codec.Peer].MaxOf[1] {
					m.Accepts(int(min(number(cells[1]), math.MaxInt32)))
				}
				want, ok := expected[string(cells[0])]
				if ok && want != string(cells[1]) {
					return &Complaint{Rule: codec.RuleID(rule + "." + string(cells[0])), Text: "expected " + string(cells[0]) + ": " +
						want + ", got " + string(cells[1])}
				}
			}
			return nil
		}))
}

// bStatsJob handles stats-job: it expects the job's ID, tube, priority, time-to-run, counts of events and, where the
// model knows it, its state.
func bStatsJob(m *beanstalk, p *bPeer, f codec.Frame) {
	j := m.byID(f)
	if j == nil {
		m.expectReply(p, "beanstalk.stats-job.not-found", "NOT_FOUND")
		return
	}
	expected := map[string]string{"id": string(j.id), "tube": j.tube.name, "ttr": strconv.FormatUint(j.ttr, 10),
		"reserves": strconv.Itoa(j.reserves),
		"timeouts": strconv.Itoa(j.timeouts), "releases": strconv.Itoa(j.releases), "buries": strconv.Itoa(j.buries),
		"pri": strconv.FormatUint(j.pri, 10)}
	if !j.vague {
		expected["state"] = j.state.String()
	}
	if !j.wasUncertain {
		expected["kicks"] = strconv.Itoa(j.kicks)
	}
	m.stats(p, "beanstalk.stats-job", "stats-reply", expected)
}

// counted adds the numbers of jobs in each state, of the jobs for which in returns true, to the expected statistics.
func (m *beanstalk) counted(expected map[string]string, in func(*bJob) bool) {
	var byState [5]int
	urgent := 0
	for _, j := range m.live {
		if !in(j) {
			continue
		}
		if j.vague {
			return
		}
		byState[j.state]++
		if j.state == bReady && j.pri < 1024 {
			urgent++
		}
	}
	expected["current-jobs-urgent"] = strconv.Itoa(urgent)
	for s := bReady; s <= bBuried; s++ {
		expected["current-jobs-"+s.String()] = strconv.Itoa(byState[s])
	}
}

// bStatsTube handles stats-tube: it expects the numbers of the tube's jobs by state and of its clients, and the totals
// since the tube was created. It does not check values that other clients of a shared server change.
func bStatsTube(m *beanstalk, p *bPeer, f codec.Frame) {
	name := string(f.Arg(0))
	sure, maybe := m.exists(name)
	if !maybe {
		m.expectReply(p, "beanstalk.stats-tube.not-found", "NOT_FOUND")
		return
	}
	t := m.tube(name)
	using, watching, waiting := 0, 0, 0
	for _, q := range m.peers {
		if q.used == name {
			using++
		}
		if slices.Contains(q.watched, name) {
			watching++
			if q.waiting {
				waiting++
			}
		}
	}
	expected := map[string]string{"name": name}
	if !m.quirks[Lingering] && (!m.quirks[Shared] || name != "default") {
		expected["current-waiting"] = strconv.Itoa(waiting)
		watched := m.quirks[Watched] && name == "default" // other clients have used the default tube and still use it
		if !watched {
			expected["current-using"], expected["current-watching"] = strconv.Itoa(using), strconv.Itoa(watching)
		}
		m.counted(expected, func(j *bJob) bool { return j.tube == t })
		if !t.lost && !watched {
			expected["total-jobs"], expected["cmd-pause-tube"], expected["cmd-delete"] = strconv.Itoa(t.total),
				strconv.Itoa(t.pauses), strconv.Itoa(t.deletes)
		}
	}
	names := "stats-reply"
	if !sure {
		names = "stats-reply NOT_FOUND"
	}
	m.stats(p, "beanstalk.stats-tube", names, expected)
}

// bStats handles stats: it expects the numbers of jobs by state and of clients by role. On a shared server it checks
// nothing.
func bStats(m *beanstalk, p *bPeer, _ codec.Frame) {
	expected := map[string]string{}
	if !m.listsOthers() {
		waiting, producers, workers, doubt := 0, 0, 0, false
		for _, q := range m.peers {
			if q.waiting {
				waiting++
			}
			if q.put {
				producers++
			}
			if q.worker {
				workers++
			}
			doubt = doubt || q.doubt
		}
		if expected["current-waiting"] = strconv.Itoa(waiting); !doubt {
			expected["current-producers"], expected["current-workers"] = strconv.Itoa(producers), strconv.Itoa(workers)
		}
		m.counted(expected, func(*bJob) bool { return true })
	}
	m.stats(p, "beanstalk.stats", "stats-reply", expected)
}

// bListTubes handles list-tubes: the reply must contain each tube that certainly exists, once, and no tube that
// certainly does not exist.
func bListTubes(m *beanstalk, p *bPeer, _ codec.Frame) {
	m.expect(p.conn, "beanstalk.list.tubes", "list-reply", typed("list-reply", func(r *codec.Frame) error {
		seen := map[string]bool{}
		for _, cells := range listLines(r) {
			name := string(cells[0])
			if _, maybe := m.exists(name); !maybe || seen[name] {
				return wrong("expected each tube in use once, but tube %s is listed twice or is not in use", name)
			}
			seen[name] = true
		}
		for name := range m.tubes {
			if sure, _ := m.exists(name); sure && !seen[name] {
				return wrong("expected tube %s in the list", name)
			}
		}
		return nil
	}))
}

// bListWatched handles list-tubes-watched: the reply must contain exactly the tubes on the watch list of the
// connection, in any order.
func bListWatched(m *beanstalk, p *bPeer, _ codec.Frame) {
	want := map[string]bool{}
	for _, w := range p.watched {
		want[w] = true
	}
	m.expect(p.conn, "beanstalk.list.watched", "list-reply", typed("list-reply", func(r *codec.Frame) error {
		seen := map[string]bool{}
		for _, cells := range listLines(r) {
			seen[string(cells[0])] = true
		}
		if !maps.Equal(seen, want) || len(listLines(r)) != len(want) {
			return wrong("expected a list of the %d tubes %v", len(want), slices.Sorted(maps.Keys(want)))
		}
		return nil
	}))
}
