package gearman

import (
	"bytes"
	"hash/maphash"
	"strconv"
	"time"

	"jobwire/codec"
)

// store has the jobs, and finds them by handle and by unique ID.
type store struct {
	prefix  []byte // of all handles
	written []byte // the last handle that was formatted
	hundred uint64 // the number of that handle without its last two digits
	lastJob uint64
	seed    maphash.Seed

	jobs   pool[job, [2]link]
	waits  pool[wait, [2]link]
	names  pool[name, [2]link]
	extras pool[extra, [0]link]
	blobs  blobStore

	byNumber handleIndex // jobs by number
	byUnique index       // index of names by unique ID; contains the oldest name of each ring
	byKey    index       // index of all other names, and of the names that represent a workload
	unique   chain       // names in the order of submission

	functions pool[*function, [0]link]
	peers     pool[*peer, [0]link]
}

// job is a job from its submission to its end. It is in exactly one state: scheduled (it has a timer), queued (in
// fn.queue) or running (in worker.work).
//
// Data that few jobs have is stored separately, in a name or an extra.
type job struct {
	number uint64
	id     id
	fn     id   // in store.functions
	worker id   // in store.peers; 0 while it is not running
	waiter id   // in store.peers: the first client that waits for it, or 0
	name   id   // in store.names, if it has a unique ID
	extra  id   // in store.extras, or 0
	text   text // reducer and workload, if they are longer than short
	short  [20]byte

	priority   uint8
	queued     bool
	background bool // the job runs even if no client waits for it
	reduce     bool
}

// Indexes of a job's links.
const (
	inTurn   = iota // in a queue or in peer.work
	ofWaiter        // in peer.waits
)

// wait is one client that waits for a job that already has a waiter. A client that submits the same job twice gets its
// messages twice.
type wait struct{ job, peer id }

// Indexes of a wait's links.
const (
	ofJob  = iota // in extra.waits
	ofPeer        // in peer.further
)

// name is the unique ID of a job. The names with the same ID form a ring in the order of their submission.
type name struct {
	job    id
	text   text   // the ID
	hash   uint32 // of the ID
	key    uint32 // hash of the function and the ID, or of the function and the workload if dash is set
	dash   bool   // the ID is "-", which represents the workload
	oldest bool   // of its ring
}

// Indexes of a name's links.
const (
	inRing   = iota
	inUnique // in store.unique
)

// extra is data that few jobs have.
type extra struct {
	job              id
	waits            chain // waits of clients other than the waiter
	lost             int   // number of workers that disconnected while running the job
	numerator, denom uint64
	reducer          int       // length of the reducer's name in bytes
	firesAt          time.Time // time at which a scheduled job is queued, or a running job fails
	timer            int       // index in machine.timers plus 1, or 0
}

// newStore returns an empty store. The prefix is the first part of the handles of all jobs.
func newStore(prefix string) *store {
	return &store{
		prefix:    []byte(prefix),
		seed:      maphash.MakeSeed(),
		jobs:      newPool[job, [2]link](),
		waits:     newPool[wait, [2]link](),
		names:     newPool[name, [2]link](),
		extras:    newPool[extra, [0]link](),
		blobs:     newBlobStore(),
		byNumber:  newHandleIndex(),
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

// add creates a job with the next number.
func (s *store) add(fn *function, unique, reducer, workload []byte) *job {
	s.lastJob++
	i, j := s.jobs.add()
	j.number, j.id, j.fn = s.lastJob, i, fn.id
	if size := len(reducer) + len(workload); size <= len(j.short) {
		j.text.size = uint32(size)
		copy(j.short[copy(j.short[:], reducer):], workload)
	} else {
		j.text = s.blobs.add(reducer, workload)
	}
	if len(reducer) > 0 {
		s.extra(j).reducer = len(reducer)
	}
	s.byNumber.add(j.number, i)
	if len(unique) > 0 {
		s.addName(j, fn, unique, workload)
	}
	return j
}

// remove removes a job. It must not be queued or running, and no client may wait for it.
func (s *store) remove(j *job) {
	if j.name != 0 {
		s.removeName(j)
	}
	if j.extra != 0 {
		s.extras.remove(j.extra)
	}
	s.byNumber.remove(j.number)
	if int(j.text.size) > len(j.short) {
		s.blobs.remove(j.text)
	}
	s.jobs.remove(j.id)
}

// find returns the job with the handle, or nil.
func (s *store) find(handle []byte) *job {
	digits, ok := bytes.CutPrefix(handle, s.prefix)
	n, isNumber := codec.ParseNumber(digits)
	if !ok || !isNumber || digits[0] == '0' { // the server writes numbers without leading zeros
		return nil
	}
	return s.job(s.byNumber.find(n))
}

// job returns the job with the ID, or nil for 0.
func (s *store) job(i id) *job {
	if i == 0 {
		return nil
	}
	return s.jobs.at(i)
}

// handle returns the handle of a job, which is valid until the next call. Consecutive calls are often for handles that
// differ only in the last two digits; only these are formatted then.
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

// parts returns the arguments with which a job was submitted. They are valid until the job is removed.
func (s *store) parts(j *job) (unique, reducer, workload []byte) {
	if int(j.text.size) > len(j.short) {
		workload = s.blobs.bytes(j.text)
	} else {
		workload = j.short[:j.text.size:j.text.size]
	}
	if j.name != 0 {
		unique = s.blobs.bytes(s.names.at(j.name).text)
	}
	if j.extra != 0 {
		n := s.extras.at(j.extra).reducer
		reducer, workload = workload[:n], workload[n:]
	}
	return unique, reducer, workload
}

// extra returns the extra of the job, and creates it if necessary.
func (s *store) extra(j *job) *extra {
	if j.extra == 0 {
		var x *extra
		j.extra, x = s.extras.add()
		x.job = j.id
	}
	return s.extras.at(j.extra)
}

// isDash reports whether submissions with this unique ID are equal if their workloads are.
func isDash(unique []byte) bool { return len(unique) == 1 && unique[0] == '-' }

func (s *store) hash(b []byte) uint32 { return uint32(maphash.Bytes(s.seed, b)) }

// keyHash combines a function with the hash of a unique ID or workload.
func keyHash(fn *function, hash uint32) uint32 { return hash ^ uint32(fn.id)*0x9e3779b1 }

// jobToMerge returns the job that a submission is merged with, or nil: a job of the function with the same unique ID, or if
// that is "-", with the same workload. Submissions without a unique ID are never merged.
//
// Jobs of several functions rarely have the same unique ID. So byKey has only the names that byUnique does not
// distinguish, and the other submissions need one lookup.
func (s *store) jobToMerge(fn *function, unique, workload []byte) *job {
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

// named returns the job with the name, or nil for 0.
func (s *store) named(i id) *job {
	if i == 0 {
		return nil
	}
	return s.jobs.at(s.names.at(i).job)
}

// oldest returns the oldest job with a unique ID, or nil.
func (s *store) oldest(unique []byte) *job { return s.named(s.oldestName(unique, s.hash(unique))) }

func (s *store) oldestName(unique []byte, hash uint32) id {
	return s.byUnique.find(hash, func(i id) bool { return bytes.Equal(s.blobs.bytes(s.names.at(i).text), unique) })
}

// addName records the unique ID of a new job: it adds the ID to the list in the order of submission, to the ring of the
// names with the same ID, and to the index. For the ID "-" the workload takes the place of the ID in the key.
func (s *store) addName(j *job, fn *function, unique, workload []byte) {
	hash := s.hash(unique)
	first := s.oldestName(unique, hash)
	i, n := s.names.add()
	j.name = i
	*n = name{job: j.id, text: s.blobs.add(unique), hash: hash, key: keyHash(fn, hash), dash: isDash(unique),
		oldest: first == 0}
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

// addIndex adds a name to the indexes that must have it. removeIndex reverses that.
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

// removeName removes the unique ID of a job that ends. If it was the oldest name of its ring, the next one becomes the
// oldest.
func (s *store) removeName(j *job) {
	i, n := j.name, s.names.at(j.name)
	s.removeIndex(i, n)
	ring := s.names.node(i).links[inRing]
	s.names.node(ring.prev).links[inRing].next = ring.next
	s.names.node(ring.next).links[inRing].prev = ring.prev
	if next := s.names.at(ring.next); n.oldest && next != n {
		s.removeIndex(ring.next, next)
		next.oldest = true
		s.addIndex(ring.next, next)
	}
	s.names.unlink(&s.unique, inUnique, i)
	s.blobs.remove(n.text)
	s.names.remove(i)
}
