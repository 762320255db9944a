package beanstalk

// store finds jobs by their IDs. IDs are assigned consecutively, so consecutive jobs are stored in one page. A
// page is removed with the last of its jobs.
type store struct {
	last  uint64 // the last ID that was assigned
	len   int
	pages map[uint64]*page
	spare *page // the last page that was removed
}

// pageSize makes a page 2 KiB large. A single remaining job keeps its whole page.
const pageSize = 21

type page struct {
	jobs [pageSize]job
	len  int
}

// add creates a job with the next ID.
func (s *store) add() *job {
	s.last++
	n := s.last / pageSize
	p := s.pages[n]
	if p == nil {
		s.freePage(n - 1) // remove keeps the newest page
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

// find returns the job with the ID, or nil.
func (s *store) find(id uint64) *job {
	if p := s.pages[id/pageSize]; p != nil {
		if j := &p.jobs[id%pageSize]; j.id == id && id != 0 {
			return j
		}
	}
	return nil
}

// remove removes a job. A page without jobs is freed, unless new jobs are still added to it.
func (s *store) remove(j *job) {
	n := j.id / pageSize
	*j = job{}
	s.len--
	s.pages[n].len--
	if n < s.last/pageSize { // otherwise this page gets more jobs
		s.freePage(n)
	}
}

// freePage removes a page if it is empty.
func (s *store) freePage(n uint64) {
	if p := s.pages[n]; p != nil && p.len == 0 {
		delete(s.pages, n)
		s.spare = p
	}
}
