package pcap

import (
	"fmt"
	"hash/maphash"
	"strings"
	"time"
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
	doesYields:   (*Jobs).yields,
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
	// What a server says to a worker that has left may be captured long after it was said: another has
	// the job since then, or has even ended it.
	if w.assigns++; w.assigns > 1 && e.link.over && (!w.worker.over || w.ends > 0) {
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
		if w.ends > 0 && why != endedBefore {
			w.unheeded()
		}
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
	noReason    = "no reason was captured"
	workerLeft  = "the worker's connection ended"
	gaveUp      = "its worker had said that it cannot do it any more"
	endedBefore = "though it had ended"
)

// again tells why a job is assigned once more.
func (j *Jobs) again(w *job, e *deedOf) string {
	switch {
	case w.worker != nil && w.worker.yielded > w.assigned: // what it says behind that may not be heeded
		return gaveUp
	case w.ends > 0 && w.told == 0 && !e.row.table.serial && w.worker != nil && w.worker.broke: // its end may not have been read
		return workerLeft
	case w.ends > 0:
		return endedBefore
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

func (j *Jobs) yields(e *deedOf) *job {
	e.link.worked, e.link.yielded = true, e.it.At
	return nil
}
