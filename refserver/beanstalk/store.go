package beanstalk

// store finds jobs by their IDs. As these count up, jobs stand in pages that are
// numbered likewise. A page is given up with the last of its jobs.
type store struct {
	last  uint64 // ID given out
	len   int
	pages map[uint64]*page
	spare *page // the last one given up
}

// pageSize makes a page fill 2 KiB. That is also what a job takes that outlives
// all others of its page.
const pageSize = 21

type page struct {
	jobs [pageSize]job
	len  int
}

// add makes a job with the next ID.
func (s *store) add() *job {
	s.last++
	n := s.last / pageSize
	p := s.pages[n]
	if p == nil {
		s.giveUp(n - 1) // it may have been kept for this
		if p, s.spare = s.spare, nil; p == nil {
			p = new(page)
		}
		s.pages[n] = p
	}
	s.len++
	p.len++
	j := &p.jobs[s.last%pageSize]
	j.id = s.last
	return j
}

// find returns the job with that ID, or nil.
func (s *store) find(id uint64) *job {
	if p := s.pages[id/pageSize]; p != nil {
		if j := &p.jobs[id%pageSize]; j.id == id && id != 0 {
			return j
		}
	}
	return nil
}

func (s *store) remove(j *job) {
	n := j.id / pageSize
	*j = job{}
	s.len--
	s.pages[n].len--
	if n < s.last/pageSize { // else there are jobs to come
		s.giveUp(n)
	}
}

// giveUp forgets a page if it is empty.
func (s *store) giveUp(n uint64) {
	if p := s.pages[n]; p != nil && p.len == 0 {
		delete(s.pages, n)
		s.spare = p
	}
}

// all visits the jobs in no order.
func (s *store) all(yield func(*job) bool) {
	for _, p := range s.pages {
		for i := range p.jobs {
			if j := &p.jobs[i]; j.id != 0 && !yield(j) {
				return
			}
		}
	}
}
