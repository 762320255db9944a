package gearman

import (
	"bytes"
	"hash/maphash"
	"strconv"
	"time"

	"jobwire/codec"
)

// store holds the jobs and finds them again.
type store struct {
	prefix  []byte // of every handle
	written []byte // the handle last written
	hundred uint64 // its number without the last two digits
	lastJob uint64
	seed    maphash.Seed

	jobs   pool[job, [2]link]
	waits  pool[wait, [2]link]
	names  pool[name, [2]link]
	extras pool[extra, [0]link]
	texts  texts

	numbers  numbers // of jobs
	byUnique index   // of names, the oldest with each unique ID
	byKey    index   // of the others, and all that stand for their workload
	unique   chain   // names, as they were submitted

	functions pool[*function, [0]link]
	peers     pool[*peer, [0]link]
}

// job is one job from its submission to its end. It is in exactly one state:
// scheduled (with a timer), queued (in fn.queue), running (in worker.work).
//
// What is not true of most jobs stands apart, in a name or an extra.
type job struct {
	number uint64
	id     id
	fn     id   // in store.functions
	worker id   // in store.peers; 0 while it is nobody's
	waiter id   // in store.peers: a client that waits for it, or 0
	name   id   // in store.names, if it has a unique ID
	extra  id   // in store.extras, if it has one
	text   text // reducer and workload, where they are longer than short
	short  [20]byte

	priority   uint8
	queued     bool
	background bool // it is worth running though nobody waits
	reduce     bool
}

// Links of a job.
const (
	inTurn   = iota // in a queue or in a worker's work
	ofWaiter        // in peer.waits
)

// wait is a further submission's wish to hear of a job that has a waiter already. A
// client that submits the same job twice hears of it twice.
type wait struct{ job, peer id }

// Links of a wait.
const (
	ofJob  = iota // in extra.waits
	ofPeer        // in peer.further
)

// name is a job's unique ID. Names with the same ID form a ring, in the order
// of their age.
type name struct {
	job    id
	text   text   // the ID
	hash   uint32 // of the ID
	key    uint32 // hash of the function and of the ID, or of the workload that it stands for
	dash   bool   // it is "-", and stands for the workload
	oldest bool   // of its ring
}

// Links of a name.
const (
	inRing   = iota
	inUnique // in store.unique
)

// extra is what few jobs have.
type extra struct {
	job              id
	waits            chain // of others than its waiter
	lost             int   // workers that the job was lost with
	numerator, denom uint64
	reducer          int       // the reducer's size
	due              time.Time // scheduled: when the job is to be queued; running: when it fails
	timer            int       // its place among the timers
}

func newStore(prefix string) *store {
	return &store{
		prefix:    []byte(prefix),
		seed:      maphash.MakeSeed(),
		jobs:      newPool[job, [2]link](),
		waits:     newPool[wait, [2]link](),
		names:     newPool[name, [2]link](),
		extras:    newPool[extra, [0]link](),
		texts:     newTexts(),
		numbers:   newNumbers(),
		functions: newPool[*function, [0]link](),
		peers:     newPool[*peer, [0]link](),
	}
}

func (s *store) function(j *job) *function { return *s.functions.at(j.fn) }

// worker returns the peer that runs the job, or nil.
func (s *store) worker(j *job) *peer {
	if j.worker == 0 {
		return nil
	}
	return *s.peers.at(j.worker)
}

// add makes a job with the next handle.
func (s *store) add(fn *function, unique, reducer, workload []byte) *job {
	s.lastJob++
	i, j := s.jobs.add()
	j.number, j.id, j.fn = s.lastJob, i, fn.id
	if size := len(reducer) + len(workload); size <= len(j.short) {
		j.text.size = uint32(size)
		copy(j.short[copy(j.short[:], reducer):], workload)
	} else {
		j.text = s.texts.add(reducer, workload)
	}
	if len(reducer) > 0 {
		s.extra(j).reducer = len(reducer)
	}
	s.numbers.add(j.number, i)
	if len(unique) > 0 {
		s.addName(j, fn, unique, workload)
	}
	return j
}

// remove forgets a job, which must be in no queue, with no worker and awaited by
// nobody.
func (s *store) remove(j *job) {
	if j.name != 0 {
		s.removeName(j)
	}
	if j.extra != 0 {
		s.extras.remove(j.extra)
	}
	s.numbers.remove(j.number)
	if int(j.text.size) > len(j.short) {
		s.texts.remove(j.text)
	}
	s.jobs.remove(j.id)
}

// find returns the job with that handle, or nil.
func (s *store) find(handle []byte) *job {
	digits, ok := bytes.CutPrefix(handle, s.prefix)
	if !ok || len(digits) == 0 || digits[0] == '0' {
		return nil
	}
	n, bad := codec.ParseNumber(digits)
	if bad >= 0 {
		return nil
	}
	return s.job(s.numbers.find(n))
}

// job returns a job, or nil for 0.
func (s *store) job(i id) *job {
	if i == 0 {
		return nil
	}
	return s.jobs.at(i)
}

// handle writes a job's handle. It is good until the next call. Mostly that is for a
// neighbour, whose handle ends differently, and no more.
func (s *store) handle(j *job) []byte {
	hundred, rest := j.number/100, j.number%100
	if hundred != s.hundred || hundred == 0 {
		s.hundred = hundred
		s.written = strconv.AppendUint(append(s.written[:0], s.prefix...), j.number, 10)
	} else {
		end := s.written[len(s.written)-2:]
		end[0], end[1] = byte('0'+rest/10), byte('0'+rest%10)
	}
	return s.written
}

// parts returns what a job was submitted with.
func (s *store) parts(j *job) (unique, reducer, workload []byte) {
	if int(j.text.size) > len(j.short) {
		workload = s.texts.bytes(j.text)
	} else {
		workload = j.short[:j.text.size:j.text.size]
	}
	if j.name != 0 {
		unique = s.texts.bytes(s.names.at(j.name).text)
	}
	if j.extra != 0 {
		n := s.extras.at(j.extra).reducer
		reducer, workload = workload[:n], workload[n:]
	}
	return unique, reducer, workload
}

// extra returns what the job has beyond others.
func (s *store) extra(j *job) *extra {
	if j.extra == 0 {
		var x *extra
		j.extra, x = s.extras.add()
		x.job = j.id
	}
	return s.extras.at(j.extra)
}

// isDash reports whether a unique ID means that the workload is what makes
// submissions equal.
func isDash(unique []byte) bool { return len(unique) == 1 && unique[0] == '-' }

func (s *store) hash(b []byte) uint32 { return uint32(maphash.Bytes(s.seed, b)) }

// keyHash mixes a function into the hash of a unique ID or of a workload.
func keyHash(fn *function, hash uint32) uint32 { return hash ^ uint32(fn.id)*0x9e3779b1 }

// equal returns the job that a submission joins, or nil: a job of the function
// with that unique ID; for "-", one with that workload; for none, no job.
//
// Hardly ever do several functions have jobs with one unique ID. So those are
// looked for apart, and others cost a single look at memory.
func (s *store) equal(fn *function, unique, workload []byte) *job {
	if len(unique) == 0 {
		return nil
	}
	hash, dash := s.hash(unique), isDash(unique)
	if dash {
		hash = s.hash(workload)
	} else if i := s.oldestName(unique, hash); i == 0 || s.named(i).fn == fn.id {
		return s.named(i)
	} else if s.names.node(i).links[inRing].next == i {
		return nil
	}
	return s.named(s.byKey.find(keyHash(fn, hash), func(i id) bool {
		j := s.named(i)
		if j.fn != fn.id || s.names.at(i).dash != dash {
			return false
		}
		u, _, w := s.parts(j)
		return dash && bytes.Equal(w, workload) || !dash && bytes.Equal(u, unique)
	}))
}

// named returns the job that has a name, or nil for 0.
func (s *store) named(i id) *job {
	if i == 0 {
		return nil
	}
	return s.jobs.at(s.names.at(i).job)
}

// oldest returns the oldest job with a unique ID, or nil.
func (s *store) oldest(unique []byte) *job { return s.named(s.oldestName(unique, s.hash(unique))) }

func (s *store) oldestName(unique []byte, hash uint32) id {
	return s.byUnique.find(hash, func(i id) bool { return bytes.Equal(s.texts.bytes(s.names.at(i).text), unique) })
}

func (s *store) addName(j *job, fn *function, unique, workload []byte) {
	hash := s.hash(unique)
	first := s.oldestName(unique, hash)
	i, n := s.names.add()
	j.name = i
	*n = name{job: j.id, text: s.texts.add(unique), hash: hash, key: keyHash(fn, hash), dash: isDash(unique), oldest: first == 0}
	if n.dash {
		n.key = keyHash(fn, s.hash(workload))
	}
	s.names.pushBack(&s.unique, inUnique, i)
	if first == 0 {
		first = i
		s.names.node(i).links[inRing] = link{i, i}
	}
	last := s.names.node(first).links[inRing].prev
	s.names.node(i).links[inRing] = link{last, first}
	s.names.node(last).links[inRing].next = i
	s.names.node(first).links[inRing].prev = i
	s.addIndex(i, n)
}

// addIndex and removeIndex enter a name where it is looked for.
func (s *store) addIndex(i id, n *name) {
	if n.oldest {
		s.byUnique.add(n.hash, i)
	}
	if n.dash || !n.oldest {
		s.byKey.add(n.key, i)
	}
}

func (s *store) removeIndex(i id, n *name) {
	if n.oldest {
		s.byUnique.remove(n.hash, i)
	}
	if n.dash || !n.oldest {
		s.byKey.remove(n.key, i)
	}
}

func (s *store) removeName(j *job) {
	i, n := j.name, s.names.at(j.name)
	s.removeIndex(i, n)
	ring := s.names.node(i).links[inRing]
	s.names.node(ring.prev).links[inRing].next = ring.next
	s.names.node(ring.next).links[inRing].prev = ring.prev
	if heir := s.names.at(ring.next); n.oldest && heir != n {
		s.removeIndex(ring.next, heir)
		heir.oldest = true
		s.addIndex(ring.next, heir)
	}
	s.names.unlink(&s.unique, inUnique, i)
	s.texts.remove(n.text)
	s.names.remove(i)
}
