package model

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"jobwire/codec"
)

// listLines returns the arguments of each line of a list.
func listLines(f *codec.Frame) [][][]byte {
	var m codec.Message
	f.Message(&m)
	var all [][][]byte
	for n := len(f.Type.Repeat); len(m.Args) >= n; m.Args = m.Args[n:] {
		all = append(all, m.Args[:n:n])
	}
	return all
}

// counts returns the numbers of jobs and workers that lists contain for a function. sure is false if the state of a job
// is unknown.
func (fn *gFunction) counts(m *gearman) (total, running, workers int, queued [3]int, sure bool) {
	sure = true
	for _, j := range fn.jobs {
		sure = sure && !j.uncertain()
		total++
		switch j.state {
		case gRunning:
			running++
		case gQueued:
			queued[j.priority]++
		}
	}
	for _, p := range m.peers {
		if _, can := p.abilities[fn.name]; can {
			workers++
		}
	}
	return total, running, workers, queued, sure
}

// list expects a reply with a list of functions. want returns the expected numbers of a function, and whether they are
// certain.
func (m *gearman) list(p *gPeer, rule codec.RuleID, reply string, want func(fn *gFunction) ([]int, bool)) {
	m.expect(p.conn, rule, reply, typed(reply, func(r *codec.Frame) error {
		seen := map[string]bool{}
		for _, cells := range listLines(r) {
			name := string(cells[0])
			if strings.Contains(name, `\`) { // the specification does not say how lists contain special characters
				continue
			}
			if seen[name] {
				return wrong("expected each function once, but function %q is listed twice", name)
			}
			seen[name] = true
			fn := m.functions[name]
			if fn == nil {
				if m.quirks[Shared] || m.quirks[NameTruncated] {
					continue
				}
				return wrong("expected only functions that a client or worker named, but function %q is listed", name)
			}
			numbers, sure := want(fn)
			for i, n := range numbers {
				if i == len(numbers)-1 && m.quirks[AbilitiesAdd] {
					break
				}
				if got, _ := strconv.Atoi(string(cells[1+i])); sure && got != n {
					return wrong("expected %s %d for function %q, got %d", r.Type.Repeat[1+i].Name, n, name, got)
				}
			}
		}
		for name, fn := range m.functions {
			total, _, workers, _, sure := fn.counts(m)
			if !seen[name] && sure && (total > 0 || workers > 0 || fn.kept && !m.quirks[NameTruncated]) && isPlainName(name) {
				return wrong("expected function %q in the list", name)
			}
		}
		return nil
	}))
}

// isPlainName reports whether a name has no special characters, so that lists contain it unchanged.
func isPlainName(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '\\' })
}

// gAdminStatus handles the administrative command status: for each function, the unfinished jobs, the running jobs and
// the workers.
func gAdminStatus(m *gearman, p *gPeer, _ codec.Frame) {
	m.list(p, "gearman.admin.status", "status-reply", func(fn *gFunction) ([]int, bool) {
		total, running, workers, _, sure := fn.counts(m)
		return []int{total, running, workers}, sure
	})
}

// gPriorities handles the administrative command prioritystatus: for each function, the queued jobs of high, normal and
// low priority, and the workers.
func gPriorities(m *gearman, p *gPeer, _ codec.Frame) {
	m.list(p, "gearman.admin.prioritystatus", "prioritystatus-reply", func(fn *gFunction) ([]int, bool) {
		_, _, workers, queued, sure := fn.counts(m)
		return []int{queued[0], queued[1], queued[2], workers},
			sure && !slices.ContainsFunc(fn.jobs, func(j *gJob) bool { return j.state == gLater })
	})
}

// gShowJobs handles the administrative command show-jobs: the list must contain the handle of each unfinished job once,
// and no other handle.
func gShowJobs(m *gearman, p *gPeer, _ codec.Frame) {
	m.expect(p.conn, "gearman.admin.show-jobs", "show-jobs-reply", typed("show-jobs-reply", func(r *codec.Frame) error {
		seen := map[string]bool{}
		for _, cells := range listLines(r) {
			h := string(cells[0])
			j := m.jobs[h]
			switch {
			case seen[h]:
				return wrong("expected each job once, but job %s is listed twice", h)
			case j == nil && m.quirks[Shared] || j != nil && j.uncertain():
				continue
			case j == nil || j.state == gEnded:
				return wrong("expected only existing jobs, but job %s does not exist", h)
			}
			seen[h] = true
		}
		for _, fn := range m.functions {
			for _, j := range fn.jobs {
				if !j.uncertain() && !seen[string(j.handle)] {
					return wrong("expected job %s in the list", j.handle)
				}
			}
		}
		return nil
	}))
}

// gShowUnique handles the administrative command show-unique-jobs: the list must contain the unique IDs of all
// unfinished jobs and no others. IDs that the list may write in another form, for example with special characters, are
// not checked. The server may reject the command.
func gShowUnique(m *gearman, p *gPeer, _ codec.Frame) {
	m.expect(p.conn, "gearman.admin.show-unique-jobs", "show-unique-jobs-reply",
		typed("show-unique-jobs-reply ERR error-line", func(r *codec.Frame) error {
			if r.Type.Does == codec.Refuse {
				return nil
			}
			seen := map[string]bool{}
			for _, cells := range listLines(r) {
				seen[string(cells[0])] = true
			}
			known := map[string]bool{}
			for _, fn := range m.functions {
				for _, j := range fn.jobs {
					u := string(j.unique)
					known[u] = true
					if isPlainName(u) && u != "-" && u != "." && !strings.HasPrefix(u, "ERR") && !j.uncertain() && !seen[u] {
						return wrong("expected unique ID %q in the list", u)
					}
				}
			}
			for u := range seen {
				if isPlainName(u) && !strings.HasPrefix(u, `\x`) && !known[u] && !known["-"] && !m.quirks[Shared] {
					return wrong("expected only unique IDs of existing jobs, but no job has unique ID %q", u)
				}
			}
			return nil
		}))
}

// gWorkers handles the administrative command workers: the list must contain each worker with its client ID and the
// functions that it has announced. Other entries, and workers whose names have special characters, are not checked.
func gWorkers(m *gearman, p *gPeer, _ codec.Frame) {
	m.expect(p.conn, "gearman.admin.workers", "workers-reply", typed("workers-reply", func(r *codec.Frame) error {
		listed := map[string]int{}
		for _, cells := range listLines(r) {
			names := strings.Fields(string(cells[3]))
			slices.Sort(names)
			if m.quirks[AbilitiesAdd] {
				names = slices.Compact(names)
			}
			listed[fmt.Sprint(string(cells[2]), " ", names)]++
		}
		for _, w := range m.peers {
			if !w.worker || !isPlainName(w.clientID) || len(w.abilities) == 0 {
				continue
			}
			var names []string
			for fn := range w.abilities {
				if names = append(names, fn); !isPlainName(fn) {
					return nil
				}
			}
			slices.Sort(names)
			key := fmt.Sprint(w.clientID, " ", names)
			if listed[key]--; listed[key] < 0 {
				return wrong("expected a worker with client ID %q and functions %q in the list", w.clientID, names)
			}
		}
		return nil
	}))
}

// gMaxQueue handles the administrative command maxqueue with no limit, one limit for all priorities, or one for each of
// the three priorities. With another number of limits, the effect of the command is unknown.
func gMaxQueue(m *gearman, p *gPeer, f codec.Frame) {
	fn := m.function(f.Arg(0))
	// with this quirk, the limit has an effect only if the server knows the function
	fn.vague = fn.vague || m.quirks[LimitForgotten]
	var sizes []int
	for i := 1; f.Arg(i) != nil; i++ {
		n, _ := strconv.Atoi(string(f.Arg(i)))
		sizes = append(sizes, n)
	}
	limits := map[int]*[3]int{}
	switch len(sizes) {
	case 0:
		limits[0] = nil
	case 1:
		limits[1] = &[3]int{sizes[0], sizes[0], sizes[0]}
	case 3:
		limits[3] = &[3]int{sizes[0], sizes[1], sizes[2]}
	default:
		fn.limits, fn.vague = &[3]int{1, 1, 1}, true
		gText("OK ERR error-line")(m, p, f)
		return
	}
	fn.limits = limits[len(sizes)]
	m.expect(p.conn, "gearman.admin.maxqueue", "OK", typed("OK", nil))
}

// gShutdown handles the administrative command shutdown. The server may close all connections at any time after it, so
// the model checks nothing more.
func gShutdown(m *gearman, p *gPeer, f codec.Frame) {
	for c := range m.peers {
		m.unchecked[c] = true
	}
	m.taint()
}

// gCancel handles the administrative command cancel-job: a queued job fails, and the reply is OK. A running, finished
// or unknown job cannot be canceled, so the reply is ERR; with the quirk cancel-lingers, a running job can. A job whose
// state is uncertain, for example because its scheduled time is near, may have ended afterwards.
func gCancel(m *gearman, p *gPeer, f codec.Frame) {
	j := m.jobs[string(f.Arg(0))]
	switch {
	case j != nil && j.uncertain(), j == nil && m.quirks[Shared]:
		if j != nil {
			for _, c := range j.waits {
				m.allow(c, "WORK_FAIL "+string(j.handle), m.sameHandle(j, "WORK_FAIL"))
			}
			j.vague = true
		}
		gText("OK ERR error-line")(m, p, f)
	case j == nil || j.state == gEnded || j.state == gRunning && !m.quirks[CancelLingers]:
		m.expect(p.conn, "gearman.admin.cancel-job", "ERR", typed("ERR error-line", nil))
	default:
		m.fail(j)
		if m.quirks[CancelLingers] {
			j.fn.jobs = append(j.fn.jobs, j)
			j.vague = true
		}
		m.expect(p.conn, "gearman.admin.cancel-job", "OK", typed("OK", nil))
	}
}

// gCreate handles the administrative command create-function: the function stays in lists even if it has no job and no
// worker.
func gCreate(m *gearman, p *gPeer, f codec.Frame) {
	m.function(f.Arg(0)).kept = true
	m.expect(p.conn, "gearman.admin.create-function", "OK", typed("OK", nil))
}

// gDrop handles the administrative command drop-function: the reply is ERR if the function has jobs or workers, and OK
// if a client has created the function. In other cases the specification does not determine the reply.
func gDrop(m *gearman, p *gPeer, f codec.Frame) {
	fn := m.functions[string(f.Arg(0))]
	if fn != nil && m.quirks[DropLoses] {
		if len(fn.jobs) > 0 {
			m.taint() // the command may also affect the jobs of other functions
		}
	}
	if fn == nil || m.quirks[NameTruncated] {
		gText("OK ERR error-line")(m, p, f)
		if fn != nil {
			fn.kept = false
		}
		return
	}
	total, _, workers, _, sure := fn.counts(m)
	switch {
	case !sure:
		gText("OK ERR error-line")(m, p, f)
		fn.kept = false
	case total > 0 || workers > 0:
		m.expect(p.conn, "gearman.admin.drop-function", "ERR", typed("ERR error-line", nil))
	case fn.kept:
		fn.kept, fn.limits = false, nil
		m.expect(p.conn, "gearman.admin.drop-function", "OK", typed("OK", nil))
	default:
		fn.limits = nil
		gText("OK ERR error-line")(m, p, f)
	}
}
