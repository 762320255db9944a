package pcap

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"time"

	"jobwire/codec"
)

// deeds are what messages do. Each returns the job that it was about, if that is known.
var deeds = [...]func(*Jobs, *deedOf) *job{
	doesConcerns: (*Jobs).known,
	doesSubmits:  (*Jobs).submits,
	doesQueues:   (*Jobs).queues,
	doesCreates:  (*Jobs).creates,
	doesRefuses:  (*Jobs).refuses,
	doesBuries:   (*Jobs).buries,
	doesAssigns:  (*Jobs).assigns,
	doesExtends:  (*Jobs).extends,
	doesLimits:   (*Jobs).limits,
	doesFinishes: (*Jobs).finishes,
	doesFails:    (*Jobs).finishes,
	doesRaises:   (*Jobs).finishes,
	doesRemoves:  (*Jobs).removes,
	doesReturns:  (*Jobs).returns,
	doesKicks:    (*Jobs).kicks,
	doesWaits:    (*Jobs).waits,
	doesTells:    (*Jobs).tells,
	doesPops:     (*Jobs).pops,
	doesLeaves:   (*Jobs).leaves,
	doesAsks:     (*Jobs).asks,
}

// known returns the job that a message names, or that its worker has. One that was begun
// before the capture is not known.
func (j *Jobs) known(e *deedOf) *job {
	w := j.jobs[e.key()]
	if w == nil && e.row.table.single && e.row.keyAt < 0 {
		w = e.link.has
	}
	if w != nil {
		w.uncertain = w.uncertain || e.it.Conn.Uncertain
	}
	return w
}

// begin makes a job that nobody has submitted yet.
func (j *Jobs) begin(e *deedOf, stats *JobStats) *job {
	w := &job{key: e.key(), function: e.function, stats: stats, uncertain: e.it.Conn.Uncertain, unheard: e.row.unheard}
	w.life = j.lives.begin(w)
	return w
}

func (w *job) submit(e *deedOf) {
	w.stats.Submitted++
	w.submitted, w.ready = e.it.At, e.it.At
	w.note(e, "submitted")
}

func (j *Jobs) submits(e *deedOf) *job {
	if e.function == "" {
		e.function = e.link.tube
	}
	w := j.begin(e, j.of(e.function))
	w.submit(e)
	t := e.row.table
	switch {
	case t.serial: // a delay
		w.ready += seconds(e.number)
		w.limit = seconds(max(1, number(e.it.Frame, e.row.moreAt+1))) // the time to run stands behind it
	case t.single: // a job type: only an application that waits hears of the end unasked
		w.unheard = e.number != 0
		w.like = j.likeness(e)
		if j.free < maxJobs {
			j.alike[w.like] = append(j.alike[w.like], w)
			j.free++
		}
	case e.row.moreAt >= 0: // a time of day
		w.ready = max(w.ready, seconds(e.number))
	}
	e.link.push(ask{row: e.row, job: w})
	return w
}

// queues is a submission that has its handle.
func (j *Jobs) queues(e *deedOf) *job {
	w := j.known(e)
	switch {
	case w == nil:
		w = j.begin(e, j.of(e.function))
		w.submit(e)
		if w.unheard = true; e.row.moreAt >= 0 {
			w.ready = max(w.ready, seconds(e.number))
		}
		j.remember(w)
	case w.submitted == 0: // assigned before it was seen in the queue
		w.submit(e)
		if w.assigned != 0 {
			w.stats.Wait.add(w.assigned - w.ready)
		}
	default:
		w.why = "it was queued again"
		w.note(e, "queued again")
	}
	return w
}

// made returns the submission that a reply is to.
func (e *deedOf) made() *job {
	if !e.row.table.serial {
		e.ask = e.link.pop()
	}
	if e.ask.row == nil || e.ask.row.does != doesSubmits {
		return nil
	}
	return e.ask.job
}

func (j *Jobs) creates(e *deedOf) *job {
	w := e.made()
	if w == nil {
		return j.known(e)
	}
	w.uncertain = w.uncertain || e.it.Conn.Uncertain
	if e.handle == "" {
		j.nameless++
		e.handle = fmt.Sprintf("%s#%d", w.function, j.nameless)
	}
	w.key = e.key()
	if !w.unheard {
		w.waited(e.link)
		if e.row.table.single {
			e.link.waits = append(e.link.waits, w)
		}
	}
	old := j.jobs[w.key]
	switch {
	case old != nil && old.submitted == 0: // assigned before its handle was told
		j.recognise(old, w)
		w = old
	case old != nil && old.ends == 0: // a job of the same unique ID was there
		w.stats.Joined++
		old.unheard = old.unheard && w.unheard
		old.waiters = append(old.waiters, w.waiters...)
		old.held = append(old.held, w.held...)
		w.life.drop()
		old.note(e, "joined")
		w = old
	default:
		j.remember(w)
		w.life.name(w)
		w.note(e, "created")
	}
	return w
}

// recognise joins a job that was seen at a worker with its submission.
func (j *Jobs) recognise(old, w *job) {
	old.submitted, old.ready, old.unheard, old.waiters, old.held = w.submitted, w.ready, w.unheard, w.waiters, w.held
	if old.limit == 0 {
		old.limit = w.limit
	}
	old.function = w.function
	j.settle(old)
	old.stats.Wait.add(old.first - old.ready)
	w.life.drop()
	old.life.name(old)
}

// settle counts with its function what was counted of a job while that was not known.
func (j *Jobs) settle(w *job) {
	if w.alone {
		all := j.of(w.function)
		all.add(w.stats)
		w.stats, w.alone = all, false
	}
}

func (j *Jobs) refuses(e *deedOf) *job {
	if e.ask.row == nil && e.row.table.serial || !e.row.table.serial && len(e.link.asked) == 0 {
		return nil
	}
	w := e.made()
	if w != nil {
		w.stats.Refused++
		w.uncertain = w.uncertain || e.link.worked // it may be about something else
		w.note(e, "refused")
	}
	return w
}

func (j *Jobs) assigns(e *deedOf) *job {
	w := j.known(e)
	if e.row.table.single {
		w = j.likeliest(e)
		if w == nil && e.link.over { // captured late: it is another's already
			j.of(e.function).redelivered(workerLeft)
			return nil
		}
	}
	if w == nil {
		w = j.begin(e, &JobStats{})
		w.alone = true
		if e.row.table.single {
			j.nameless++
			w.key.handle = fmt.Sprintf("%s#%d", w.function, j.nameless)
		}
		j.remember(w)
		w.life.name(w)
	}
	w.uncertain = w.uncertain || e.it.Conn.Uncertain
	if w.assigns++; w.assigns > 1 && e.link.over && !w.worker.over { // what has left before was captured late
		w.stats.redelivered(workerLeft)
		w.note(e, "assigned before")
		return w
	}
	if w.assigns == 1 {
		w.first = e.it.At
		w.stats.Assigned++
		if w.submitted != 0 {
			w.stats.Wait.add(e.it.At - w.ready)
		}
	} else {
		why := j.again(w, e)
		w.stats.redelivered(why)
		if why == noReason || w.ends > 0 {
			j.odd(w, "assigned again to connection %d: %s", e.link.id, why)
		}
		w.note(e, "assigned again: "+why)
	}
	if w.assigns == 1 {
		w.note(e, "assigned")
	}
	w.assigned, w.worker, w.why, w.buried = e.it.At, e.link, "", false
	if limit := e.link.limits[w.function]; limit > 0 {
		w.limit = limit
	}
	if e.row.table.single {
		if e.link.has = w; e.link.over {
			j.gives(e.link, workerLeft)
		}
	}
	return w
}

// pops is an element of a list, with the list's name before it.
func (j *Jobs) pops(e *deedOf) *job {
	var words [][]byte
	for i := range e.it.Frame.Spans {
		if !e.it.Frame.Spans[i].Field.Derived() {
			words = append(words, e.it.Frame.Value(i))
		}
	}
	e.handle = ""
	if len(words) != 2 {
		return nil
	}
	kind, rest, _ := strings.Cut(string(words[0]), ":")
	k := strings.LastIndexByte(rest, ':')
	switch {
	case k < 0:
	case kind == "queue":
		e.function, e.handle = rest[:k], rest[:k]+":"+string(words[1])
		return j.assigns(e)
	case kind == "lock":
		e.handle = rest
		return j.tells(e)
	}
	return nil
}

// Reasons for which a job is assigned again.
const (
	noReason   = "no reason was captured"
	workerLeft = "the worker's connection ended"
)

// again tells why a job is assigned once more.
func (j *Jobs) again(w *job, e *deedOf) string {
	switch {
	case w.ends > 0:
		return "though it had ended"
	case w.why != "":
		return w.why
	case w.buried:
		return "it was kicked"
	case w.worker == nil:
		return noReason
	case w.worker.over:
		return workerLeft
	case w.limit > 0 && e.it.At-max(w.assigned, w.extended) >= w.limit-w.limit/50:
		return "its time was over"
	}
	return noReason
}

// likeness sums up what a job is: its function, and its input, which stands last.
func (j *Jobs) likeness(e *deedOf) likeness {
	var h maphash.Hash
	h.SetSeed(j.seed)
	h.WriteString(e.function)
	h.WriteByte(0)
	h.Write(e.it.Frame.Arg(len(e.it.Frame.Type.Fields) - 1))
	return likeness{e.it.Conn.Server, h.Sum64()}
}

// likeliest returns the first of the jobs that look like this one and that no worker has.
func (j *Jobs) likeliest(e *deedOf) *job {
	like := j.likeness(e)
	all := j.alike[like]
	if len(all) == 0 {
		return nil
	}
	j.free--
	w := all[0]
	w.uncertain = w.uncertain || len(all) > 1 // any of them
	if len(all) == 1 {
		delete(j.alike, like)
	} else {
		j.alike[like] = all[1:]
	}
	return w
}

func (j *Jobs) extends(e *deedOf) *job {
	w := j.known(e)
	if w != nil && w.worker == e.link && e.row.table.serial {
		w.extended = e.it.At
	}
	return w
}

func (j *Jobs) limits(e *deedOf) *job {
	l := e.link
	l.worked = true
	if l.limits == nil {
		l.limits = map[string]int64{}
	}
	if len(l.limits) < maxFunctions {
		l.limits[e.function] = int64(min(e.number, 1<<40)) * int64(time.Millisecond)
	}
	return nil
}

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
	if failed {
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
