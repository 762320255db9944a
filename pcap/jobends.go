package pcap

import (
	"slices"

	"jobwire/codec"
)

// failed reports whether a result is a failure, by its type or by what it says.
func (e *deedOf) failed() bool {
	v := arg(e.it.Frame, e.row.moreAt)
	return e.row.does != doesFinishes || len(v) == 1 && v[0] != 0 || string(v) == "error"
}

func (j *Jobs) finishes(e *deedOf) *job {
	w := j.known(e)
	e.link.worked = true
	if w == nil {
		return nil
	}
	if w.raised && e.row.does == doesFails && w.worker == e.link { // the end of it, once more
		return w
	}
	if w.worker != nil && w.worker != e.link && !e.row.table.pooled {
		j.odd(w, "ended by connection %d, to which it was not assigned", e.link.id)
	}
	w.raised = w.raised || e.row.does == doesRaises
	j.ends(w, e, e.failed())
	if e.link.has == w {
		e.link.has = nil
	}
	return w
}

// ends notes an end. The first is the one that counts.
func (j *Jobs) ends(w *job, e *deedOf, failed bool) {
	what := "completed"
	if failed {
		what = "failed"
	}
	w.note(e, what)
	if w.ends++; w.ends > 1 {
		w.stats.Twice++
		j.odd(w, "ended %d times", w.ends)
		return
	}
	if w.failed = failed; failed {
		w.stats.Failed++
	} else {
		w.stats.Completed++
	}
	if w.ended = e.it.At; w.assigned != 0 {
		w.stats.Run.add(e.it.At - w.assigned)
	}
	if len(w.waiters) > 0 && !slices.ContainsFunc(w.waiters, func(l *link) bool { return !l.over }) {
		w.nobody = true
		w.stats.Unanswered++
		j.odd(w, "answered to nobody: who waited for it has gone")
	}
}

// unheeded takes the end of a job back, since it was not the worker's any more.
func (w *job) unheeded() {
	if w.ends != 1 || w.told != 0 {
		return
	}
	w.ends, w.ended, w.raised = 0, 0, false
	if w.failed {
		w.stats.Failed--
	} else {
		w.stats.Completed--
	}
}

// removes is an end for a worker that has the job, and the loss of it for all others.
func (j *Jobs) removes(e *deedOf) *job {
	w := j.known(e)
	switch {
	case w == nil:
	case w.worker == e.link && !w.buried && w.why == "":
		j.ends(w, e, false)
	case w.ends > 0:
		j.odd(w, "deleted once more")
	default:
		w.stats.Deleted++
		w.ends, w.ended = 1, e.it.At
		w.note(e, "deleted")
	}
	return w
}

func (j *Jobs) returns(e *deedOf) *job {
	w := j.known(e)
	if w != nil {
		w.stats.Returned++
		w.why, w.ready = "it was released", e.it.At+seconds(e.number)
		w.note(e, "released")
	}
	return w
}

// buries takes a job out of the queue. As the reply to a submission it makes one that is.
func (j *Jobs) buries(e *deedOf) *job {
	if e.it.From == codec.Server && e.ask.row != nil && e.ask.row.does == doesSubmits {
		return j.bury(j.creates(e), e)
	}
	return j.bury(j.known(e), e)
}

func (j *Jobs) bury(w *job, e *deedOf) *job {
	if w != nil {
		w.stats.Buried++
		w.buried, w.why = true, ""
		w.note(e, "buried")
	}
	return w
}

func (j *Jobs) kicks(e *deedOf) *job {
	w := j.known(e)
	if w != nil {
		w.buried, w.why = false, "it was kicked"
		w.note(e, "kicked")
	}
	return w
}

func (j *Jobs) waits(e *deedOf) *job {
	w := j.known(e)
	if w != nil {
		w.unheard = false
		w.waited(e.link)
	}
	return w
}

// waited adds a client that waits for the end.
func (w *job) waited(l *link) {
	if len(w.waiters) < maxWaiters {
		w.waiters = append(w.waiters, l)
	}
}

func (j *Jobs) tells(e *deedOf) *job {
	w := j.known(e)
	if e.row.table.single {
		w = j.toldOf(e)
	}
	if w == nil {
		return nil
	}
	if w.ends == 0 && e.row.typ == "WORK_FAIL" { // nobody but the server has said so
		j.ends(w, e, true)
		j.odd(w, "failed by the server")
	}
	if w.ended != 0 && w.told == 0 {
		w.told = e.it.At
		w.stats.Return.add(e.it.At - w.ended)
		w.note(e, "told")
	}
	return w
}

// toldOf returns the job of an answer that does not name it: what was asked for, or what the
// application waits for.
func (j *Jobs) toldOf(e *deedOf) *job {
	if l := e.link; len(l.asked) > 0 && l.asked[0].row.does == doesAsks {
		w := l.pop().job
		if e.number == 0 { // not yet
			return nil
		}
		return w
	} else if len(l.waits) > 0 {
		w := l.waits[0]
		l.waits = l.waits[1:]
		return w
	}
	return nil
}

func (j *Jobs) leaves(e *deedOf) *job {
	w := e.link.has
	j.gives(e.link, "its worker said goodbye")
	return w
}

func (j *Jobs) asks(e *deedOf) *job {
	w := j.jobs[e.key()]
	e.link.push(ask{row: e.row, job: w, handle: e.handle})
	return w
}
