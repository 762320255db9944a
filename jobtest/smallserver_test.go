package jobtest_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// smallServer is a Beanstalk server that shares no code with jobwire. faults has the names of its faults.
type smallServer struct {
	faults map[string]bool

	mu      sync.Mutex
	began   time.Time
	last    uint64 // ID of the last job
	order   int    // number of the last buried job
	jobs    map[uint64]*smallJob
	tubes   map[string]*smallTube
	clients map[*smallClient]bool
	waiting []*smallClient // oldest first
	did     map[string]int // number of commands and other events
	timer   *time.Timer    // fires when something happens next
}

type smallTube struct {
	did    map[string]int
	pause  uint64    // seconds
	paused time.Time // until
}

type smallJob struct {
	id, pri, ttr uint64
	body         []byte
	tube, state  string
	owner        *smallClient
	put, until   time.Time // until: end of the delay or of the time to run
	buried       int       // order of the buried jobs
	did          map[string]int
}

type smallClient struct {
	nc            net.Conn
	used          string
	watched       []string
	put, reserved bool           // has sent such a command
	until         time.Time      // end of the timeout of reserve
	pending       []smallRequest // received while a reserve waits
	quit, ended   bool           // sent quit; ended its direction
	closing       bool           // closes after the output

	mu   sync.Mutex
	some sync.Cond
	out  []byte
}

// smallRequest is a command line, with the body of a put, or a reply to an invalid line.
type smallRequest struct {
	words []string
	body  []byte
	reply string
}

// newSmallServer returns the function Serve of a server with faults.
func newSmallServer(faults ...string) func(context.Context, net.Listener) error {
	return func(ctx context.Context, ln net.Listener) error {
		s := &smallServer{faults: map[string]bool{}, began: time.Now(), jobs: map[uint64]*smallJob{}, tubes: map[string]*smallTube{},
			clients: map[*smallClient]bool{}, did: map[string]int{}}
		for _, name := range faults {
			s.faults[name] = true
		}
		s.timer = time.AfterFunc(math.MaxInt64, func() { s.locked(func() {}) })
		defer s.timer.Stop()
		var conns sync.WaitGroup
		defer conns.Wait()
		defer context.AfterFunc(ctx, func() {
			s.locked(func() {
				for c := range s.clients {
					c.nc.Close()
				}
			})
		})()
		for {
			nc, err := ln.Accept()
			if err != nil {
				return nil
			}
			conns.Go(func() { s.connection(nc) })
		}
	}
}

// connection serves one connection until it ends.
func (s *smallServer) connection(nc net.Conn) {
	c := &smallClient{nc: nc, used: "default", watched: []string{"default"}}
	c.some.L = &c.mu
	s.locked(func() {
		s.clients[c] = true
		s.did["connection"]++
	})
	var writer sync.WaitGroup
	writer.Go(c.write)
	in := bufio.NewReader(nc)
	for {
		r, err := readRequest(in)
		if err != nil {
			break
		}
		s.locked(func() {
			if s.waits(c) {
				c.pending = append(c.pending, r)
			} else if !c.quit {
				s.perform(c, r)
			}
		})
	}
	s.locked(func() {
		c.ended = true
		if s.waits(c) {
			s.reply(c, "TIMED_OUT")
		}
	})
	c.send("", true)
	writer.Wait()
	s.locked(func() {
		delete(s.clients, c)
		for _, j := range s.jobs {
			if j.owner == c {
				j.state, j.owner = "ready", nil
			}
		}
	})
	nc.Close()
}

// readRequest reads a command, which may be invalid.
func readRequest(in *bufio.Reader) (r smallRequest, err error) {
	var line []byte
	long := false
	for !bytes.HasSuffix(line, []byte("\r\n")) {
		b, err := in.ReadByte()
		if err != nil {
			return r, err
		}
		if line = append(line, b); len(line) > 224 {
			line, long = line[len(line)-1:], true
		}
	}
	if long {
		return smallRequest{reply: "BAD_FORMAT"}, nil
	}
	r.words = strings.Split(string(line[:len(line)-2]), " ")
	if r.words[0] != "put" {
		return r, nil
	}
	size := uint64(0)
	if len(r.words) != 5 || !numbers(r.words[1:4], 32) || !number(r.words[4], 32, &size) {
		return smallRequest{reply: "BAD_FORMAT"}, nil
	}
	if size > 65535 {
		_, err = io.CopyN(io.Discard, in, int64(size)+2)
		return smallRequest{reply: "JOB_TOO_BIG"}, err
	}
	r.body = make([]byte, size+2)
	_, err = io.ReadFull(in, r.body)
	if r.body = r.body[:size]; err == nil && string(r.body[size:size+2]) != "\r\n" {
		r.reply = "EXPECTED_CRLF"
	}
	return r, err
}

func number(word string, bits int, n *uint64) bool {
	var err error
	*n, err = strconv.ParseUint(word, 10, bits)
	return err == nil
}

func numbers(words []string, bits int) bool {
	n := uint64(0)
	return !slices.ContainsFunc(words, func(w string) bool { return !number(w, bits, &n) })
}

// send appends to the output of a client, and ends it.
func (c *smallClient) send(text string, end bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out, c.closing = append(c.out, text...), c.closing || end
	c.some.Signal()
}

// write writes the output of a client until it ends.
func (c *smallClient) write() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		for len(c.out) == 0 && !c.closing {
			c.some.Wait()
		}
		if len(c.out) == 0 {
			return
		}
		b := c.out
		c.out = nil
		c.mu.Unlock()
		_, err := c.nc.Write(b)
		c.mu.Lock()
		if err != nil {
			c.closing = true
		}
	}
}

// locked changes the state of the server, and then does what has become possible.
func (s *smallServer) locked(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	s.proceed()
}

func (s *smallServer) waits(c *smallClient) bool { return slices.Contains(s.waiting, c) }

// reply replies to a waiting client, and performs what it has sent meanwhile.
func (s *smallServer) reply(c *smallClient, text string) {
	s.waiting = slices.DeleteFunc(s.waiting, func(other *smallClient) bool { return other == c })
	c.send(text+"\r\n", false)
	for len(c.pending) > 0 && !s.waits(c) && !c.quit {
		r := c.pending[0]
		c.pending = c.pending[1:]
		s.perform(c, r)
	}
}

// proceed moves jobs whose time has come, assigns jobs to waiting clients, and sets the timer.
func (s *smallServer) proceed() {
	now, next := time.Now(), time.Time{}
	passed := func(t time.Time) bool { // otherwise, the timer fires then at the latest
		if t.After(now) && (next.IsZero() || t.Before(next)) {
			next = t
		}
		return !t.After(now)
	}
	for _, j := range s.jobs {
		if (j.state == "reserved" || j.state == "delayed") && passed(j.until) {
			if j.state == "reserved" {
				if s.faults["keeps jobs"] {
					continue
				}
				j.did["timeouts"]++
				s.did["timeouts"]++
			}
			j.state, j.owner = "ready", nil
		}
	}
	for _, t := range s.tubes {
		if t.pause > 0 && passed(t.paused) {
			t.pause = 0
		}
	}
	for _, c := range slices.Clone(s.waiting) {
		j := s.best(func(j *smallJob) bool {
			return j.state == "ready" && slices.Contains(c.watched, j.tube) && s.tube(j.tube).pause == 0
		})
		soon := false
		for _, j := range s.jobs {
			soon = soon || j.state == "reserved" && j.owner == c && passed(j.until.Add(-time.Second))
		}
		switch {
		case j != nil:
			j.state, j.owner, j.until = "reserved", c, now.Add(seconds(j.ttr))
			passed(j.until)
			j.did["reserves"]++
			s.reply(c, fmt.Sprintf("RESERVED %d %d\r\n%s", j.id, len(j.body), j.body))
		case soon && !s.faults["no warning"]:
			s.reply(c, "DEADLINE_SOON")
		case c.ended, !c.until.IsZero() && passed(c.until):
			s.reply(c, "TIMED_OUT")
		}
	}
	for name := range s.tubes {
		used := len(s.jobsIn(name, "")) > 0
		for c := range s.clients {
			used = used || c.used == name || slices.Contains(c.watched, name)
		}
		if !used && name != "default" {
			delete(s.tubes, name)
		}
	}
	if next.IsZero() {
		s.timer.Stop()
	} else {
		s.timer.Reset(time.Until(next))
	}
}

func seconds(n uint64) time.Duration { return time.Duration(n) * time.Second }

func (s *smallServer) tube(name string) *smallTube {
	if s.tubes[name] == nil {
		s.tubes[name] = &smallTube{did: map[string]int{}}
	}
	return s.tubes[name]
}

// best returns the job with the smallest priority and ID, or nil.
func (s *smallServer) best(ok func(*smallJob) bool) (best *smallJob) {
	for _, j := range s.jobs {
		if ok(j) && (best == nil || cmp.Or(cmp.Compare(j.pri, best.pri), cmp.Compare(j.id, best.id)) < 0) {
			best = j
		}
	}
	return best
}

// jobsIn returns the jobs of a tube in a state, in the order in which kick takes them. "" means any.
func (s *smallServer) jobsIn(tube, state string) (all []*smallJob) {
	for _, j := range s.jobs {
		if (tube == "" || j.tube == tube) && (state == "" || j.state == state) {
			all = append(all, j)
		}
	}
	slices.SortFunc(all, func(a, b *smallJob) int {
		return cmp.Or(cmp.Compare(a.buried, b.buried), a.until.Compare(b.until), cmp.Compare(a.id, b.id))
	})
	return all
}

var tubeName = regexp.MustCompile(`^[A-Za-z0-9+/;.$_()][A-Za-z0-9+/;.$_()-]{0,199}$`)

// smallArgs are the arguments of each command: a tube, a number of 32 bits, or an ID.
var smallArgs = map[string]string{"put": "nnnn", "use": "t", "reserve": "", "reserve-with-timeout": "n", "delete": "i", "release": "inn",
	"bury": "in", "touch": "i", "watch": "t", "ignore": "t", "peek": "i", "peek-ready": "", "peek-delayed": "", "peek-buried": "",
	"kick": "n", "kick-job": "i", "stats-job": "i", "stats-tube": "t", "stats": "", "list-tubes": "", "list-tube-used": "",
	"list-tubes-watched": "", "quit": "", "pause-tube": "tn"}

// perform performs a command of a client that does not wait.
func (s *smallServer) perform(c *smallClient, r smallRequest) {
	answer := func(format string, args ...any) { c.send(fmt.Sprintf(format, args...)+"\r\n", false) }
	if r.reply != "" {
		answer("%s", r.reply)
		return
	}
	name := r.words[0]
	kinds, known := smallArgs[name]
	if !known {
		answer("UNKNOWN_COMMAND")
		return
	}
	args, n := r.words[1:], [4]uint64{}
	ok := len(args) == len(kinds)
	for i := 0; ok && i < len(args); i++ {
		switch kinds[i] {
		case 't':
			ok = tubeName.MatchString(args[i])
		case 'n':
			ok = number(args[i], 32, &n[i])
		case 'i':
			ok = number(args[i], 64, &n[i])
		}
	}
	if !ok {
		answer("BAD_FORMAT")
		return
	}
	s.did[name]++
	j := s.jobs[n[0]]
	if strings.HasPrefix(kinds, "i") && j == nil {
		answer("NOT_FOUND")
		return
	}
	mine := j != nil && j.state == "reserved" && j.owner == c
	found := func(j *smallJob) {
		if j == nil {
			answer("NOT_FOUND")
		} else {
			answer("FOUND %d %d\r\n%s", j.id, len(j.body), j.body)
		}
	}
	first := func(state string) {
		if all := s.jobsIn(c.used, state); len(all) > 0 {
			found(all[0])
		} else {
			found(nil)
		}
	}
	data := func(text string) { answer("OK %d\r\n%s", len(text), text) }
	switch name {
	case "put":
		s.last++
		j := &smallJob{id: s.last, pri: n[0], ttr: max(1, n[2]), body: r.body, tube: c.used, put: time.Now(), did: map[string]int{}}
		s.jobs[j.id], c.put = j, true
		s.tube(c.used).did["put"]++
		j.delay(n[1])
		answer("INSERTED %d", j.id)
	case "use":
		c.used = args[0]
		s.tube(c.used)
		answer("USING %s", c.used)
	case "reserve", "reserve-with-timeout":
		c.until, c.reserved = time.Time{}, true
		if name != "reserve" {
			c.until = time.Now().Add(seconds(n[0]))
		}
		s.waiting = append(s.waiting, c)
		s.proceed()
	case "delete":
		if j.state == "reserved" && !mine {
			answer("NOT_FOUND")
			return
		}
		delete(s.jobs, j.id)
		s.tube(j.tube).did["delete"]++
		answer("DELETED")
	case "release", "bury", "touch":
		if !mine {
			answer("NOT_FOUND")
			return
		}
		switch name {
		case "release":
			j.pri, j.owner = n[1], nil
			j.did["releases"]++
			if s.faults["no delay"] {
				n[2] = 0
			}
			j.delay(n[2])
			answer("RELEASED")
		case "bury":
			j.pri, j.owner, j.state = n[1], nil, "buried"
			j.did["buries"]++
			s.order++
			j.buried = s.order
			answer("BURIED")
		case "touch":
			if !s.faults["touch does nothing"] {
				j.until = time.Now().Add(seconds(j.ttr))
			}
			answer("TOUCHED")
		}
	case "watch":
		if !slices.Contains(c.watched, args[0]) {
			c.watched = append(c.watched, args[0])
			s.tube(args[0])
		}
		answer("WATCHING %d", len(c.watched))
	case "ignore":
		if slices.Equal(c.watched, args) {
			answer("NOT_IGNORED")
			return
		}
		c.watched = slices.DeleteFunc(c.watched, func(tube string) bool { return tube == args[0] })
		answer("WATCHING %d", len(c.watched))
	case "peek":
		found(j)
	case "peek-ready":
		found(s.best(func(j *smallJob) bool { return j.tube == c.used && j.state == "ready" }))
	case "peek-delayed", "peek-buried":
		first(strings.TrimPrefix(name, "peek-"))
	case "kick":
		all := s.jobsIn(c.used, "buried")
		if len(all) == 0 {
			all = s.jobsIn(c.used, "delayed")
		}
		all = all[:min(uint64(len(all)), n[0])]
		for _, j := range all {
			j.kick()
		}
		answer("KICKED %d", len(all))
	case "kick-job":
		if j.state != "buried" && j.state != "delayed" {
			answer("NOT_FOUND")
			return
		}
		j.kick()
		answer("KICKED")
	case "stats-job":
		data(s.statsJob(j))
	case "stats-tube":
		if s.tubes[args[0]] == nil && args[0] != "default" {
			answer("NOT_FOUND")
			return
		}
		data(s.statsTube(args[0]))
	case "stats":
		data(s.stats())
	case "list-tubes":
		s.tube("default")
		text := "---\n"
		for name := range s.tubes {
			text += "- " + name + "\n"
		}
		data(text)
	case "list-tube-used":
		answer("USING %s", c.used)
	case "list-tubes-watched":
		data("---\n- " + strings.Join(c.watched, "\n- ") + "\n")
	case "quit":
		c.quit = true
		c.nc.SetReadDeadline(time.Unix(1, 0))
	case "pause-tube":
		if s.tubes[args[0]] == nil && args[0] != "default" {
			answer("NOT_FOUND")
			return
		}
		t := s.tube(args[0])
		t.did["pause-tube"]++
		if !s.faults["no pause"] {
			t.pause, t.paused = n[1], time.Now().Add(seconds(n[1]))
		}
		answer("PAUSED")
	}
}

func (j *smallJob) delay(n uint64) {
	if j.state = "ready"; n > 0 {
		j.state, j.until = "delayed", time.Now().Add(seconds(n))
	}
}

func (j *smallJob) kick() {
	j.state, j.buried = "ready", 0
	j.did["kicks"]++
}

// yaml returns a dictionary with names and values, which alternate.
func yaml(entries ...any) string {
	text := "---\n"
	for i := 0; i < len(entries); i += 2 {
		text += fmt.Sprintf("%v: %v\n", entries[i], entries[i+1])
	}
	return text
}

// left returns the whole seconds until a time.
func left(t time.Time) int { return int(max(0, time.Until(t)) / time.Second) }

func (s *smallServer) statsJob(j *smallJob) string {
	wait := 0
	if j.state == "reserved" || j.state == "delayed" {
		wait = left(j.until)
	}
	return yaml("id", j.id, "tube", j.tube, "state", j.state, "pri", j.pri, "age", int(time.Since(j.put)/time.Second),
		"ttr", j.ttr, "time-left", wait, "file", 0, "reserves", j.did["reserves"], "timeouts", j.did["timeouts"],
		"releases", j.did["releases"], "buries", j.did["buries"], "kicks", j.did["kicks"])
}

// current returns the numbers of jobs by state, of a tube or of all.
func (s *smallServer) current(tube string) []any {
	urgent := 0
	for _, j := range s.jobsIn(tube, "ready") {
		if j.pri < 1024 {
			urgent++
		}
	}
	all := []any{"current-jobs-urgent", urgent}
	for _, state := range []string{"ready", "reserved", "delayed", "buried"} {
		all = append(all, "current-jobs-"+state, len(s.jobsIn(tube, state)))
	}
	return all
}

func (s *smallServer) statsTube(name string) string {
	t, using, watching, waiting := s.tube(name), 0, 0, 0
	for c := range s.clients {
		if c.used == name {
			using++
		}
		if slices.Contains(c.watched, name) {
			watching++
			if s.waits(c) {
				waiting++
			}
		}
	}
	entries := append([]any{"name", name}, s.current(name)...)
	entries = append(entries, "total-jobs", t.did["put"], "current-using", using, "current-watching", watching, "current-waiting", waiting,
		"cmd-delete", t.did["delete"], "cmd-pause-tube", t.did["pause-tube"], "pause", t.pause, "pause-time-left", left(t.paused))
	return yaml(entries...)
}

func (s *smallServer) stats() string {
	producers, workers := 0, 0
	for c := range s.clients {
		if c.put {
			producers++
		}
		if c.reserved {
			workers++
		}
	}
	entries := s.current("")
	for _, name := range strings.Fields("put peek peek-ready peek-delayed peek-buried reserve reserve-with-timeout touch use watch ignore " +
		"delete release bury kick stats stats-job stats-tube list-tubes list-tube-used list-tubes-watched pause-tube") {
		entries = append(entries, "cmd-"+name, s.did[name])
	}
	s.tube("default")
	return yaml(append(entries, "job-timeouts", s.did["timeouts"], "total-jobs", s.last, "max-job-size", 65535, "current-tubes", len(s.tubes),
		"current-connections", len(s.clients), "current-producers", producers, "current-workers", workers, "current-waiting", len(s.waiting),
		"total-connections", s.did["connection"], "pid", 1, "version", 1, "rusage-utime", "0.0", "rusage-stime", "0.0",
		"uptime", int(time.Since(s.began)/time.Second), "binlog-oldest-index", 0, "binlog-current-index", 0, "binlog-records-migrated", 0,
		"binlog-records-written", 0, "binlog-max-size", 0, "draining", false, "id", "small", "hostname", "small", "os", "go", "platform", "go")...)
}
