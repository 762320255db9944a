package audit_test

import (
	"fmt"
	"sync"
	"time"
)

// unusual are programs and the rules that they do not follow.
var unusual = []struct {
	name, protocol, rules string
	do                    func(*site)
}{
	{"polls without a pause", "beanstalk", "polling", func(s *site) {
		c := s.open()
		lastFor(2*time.Second, func() { c.reserve() })
	}},
	{"ignores DEADLINE_SOON", "beanstalk", "deadline", func(s *site) {
		c := s.open()
		id := c.put(1)
		c.reserve()
		for range 5000 {
			if c.ask("reserve-with-timeout 3") == "TIMED_OUT" {
				break
			}
		}
		c.ask("delete %s", id)
	}},
	{"connects again after TIMED_OUT", "beanstalk", "reconnects", func(s *site) {
		for range 2000 {
			c := s.open()
			c.ask("watch t")
			c.reserve()
			c.Close()
		}
	}},
	{"reserves five jobs and holds them", "beanstalk", "abandons holds", func(s *site) {
		c := s.open()
		for range 5 {
			c.put(60)
		}
		for range 5 {
			c.reserve()
		}
		s.sleep(3 * time.Second)
		c.Close()
	}},
	{"leaves reserved jobs and quits", "beanstalk", "abandons", func(s *site) {
		c := s.open()
		for range 3 {
			c.put(60)
		}
		c.ask("delete %s", c.reserve())
		c.reserve()
		c.reserve()
		c.ask("quit")
		c.Close()
	}},
	{"repeats a refused command", "beanstalk", "refused", func(s *site) {
		c := s.open()
		lastFor(2*time.Second, func() { c.ask("release 99 0 0") })
	}},
	{"watches no tube again", "beanstalk", "announces", func(s *site) {
		c := s.open()
		c.ask("watch t")
		c.reserve()
		s.up.Restart()
		c.r.ReadByte() // the end of the connection
		c.Close()
		c = s.open()
		lastFor(20*time.Second, func() { c.ask("reserve-with-timeout 1") })
	}},
	{"keeps jobs after their time limits", "beanstalk", "holds", func(s *site) {
		c := s.open()
		for range 3 {
			c.put(1)
		}
		for range 3 {
			c.reserve()
		}
		s.sleep(20 * time.Second)
		c.Close()
	}},
	{"grabs without a pause", "gearman", "polling", func(s *site) {
		c := s.worker()
		lastFor(2*time.Second, func() { c.call(grab) })
	}},
	{"is slow after NOOP", "gearman", "wake", func(s *site) {
		c := s.worker()
		for range 4 {
			c.send(preSleep)
			s.submit(1)
			c.get() // NOOP
			s.sleep(1500 * time.Millisecond)
			_, job := c.call(grab)
			c.send(complete, job[0], "")
			c.call(grab)
		}
	}},
	{"ignores NOOP", "gearman", "wake", func(s *site) {
		c := s.worker()
		c.send(preSleep)
		s.submit(1)
		s.sleep(15 * time.Second)
		c.Close()
	}},
	{"ignores NOOP until it leaves", "gearman", "wake", func(s *site) {
		c := s.worker()
		c.send(preSleep)
		s.submit(1)
		s.sleep(3500 * time.Millisecond)
		c.Close()
	}},
	{"polls every 4 ms, with a job now and then", "gearman", "polling", func(s *site) {
		c := s.worker()
		next := time.Now().Add(1100 * time.Millisecond)
		lastFor(5*time.Second, func() {
			if time.Now().After(next) {
				s.submit(1)
				next = time.Now().Add(1100 * time.Millisecond)
			}
			if code, job := c.call(grab); code == assigned {
				c.send(complete, job[0], "")
			}
			s.sleep(4 * time.Millisecond)
		})
		c.Close()
	}},
	{"grabs four jobs and works on one", "gearman", "abandons holds", func(s *site) {
		s.submit(4)
		c := s.worker()
		_, job := c.call(grab)
		for range 3 {
			c.call(grab)
		}
		s.sleep(2 * time.Second)
		c.send(complete, job[0], "")
		s.sleep(time.Second)
		c.Close()
	}},
	{"connects without a pause while the server is gone", "gearman", "reconnects", func(s *site) {
		s.up.Stop()
		lastFor(3*time.Second, func() {
			s.sleep(lap)
			if c := s.open(); c != nil {
				c.get()
				c.Close()
			}
		})
	}},
	{"announces no function again", "gearman", "announces", func(s *site) {
		c := s.worker()
		c.call(grab)
		s.up.Restart()
		c.r.ReadByte() // the end of the connection
		c.Close()
		c = s.open()
		lastFor(20*time.Second, func() {
			c.call(grab)
			s.sleep(time.Second)
		})
	}},
	{"repeats a refused option", "gearman", "refused", func(s *site) {
		c := s.open()
		lastFor(2*time.Second, func() { c.call(option, "unknown") })
	}},

	{"polls every 5 ms", "beanstalk", "polling", func(s *site) {
		c := s.open()
		lastFor(5*time.Second, func() {
			c.reserve()
			s.sleep(5 * time.Millisecond)
		})
		c.Close()
	}},
	{"connects again after 20 ms", "beanstalk", "reconnects", func(s *site) {
		lastFor(5*time.Second, func() {
			c := s.open()
			c.reserve()
			c.Close()
			s.sleep(20 * time.Millisecond)
		})
	}},
	{"connects again after 20 ms, with a job now and then", "beanstalk", "reconnects", func(s *site) {
		next := time.Now().Add(time.Second)
		lastFor(5*time.Second, func() {
			c := s.open()
			if time.Now().After(next) {
				c.put(60)
				next = time.Now().Add(time.Second)
			}
			if id := c.reserve(); id != "" {
				c.ask("delete %s", id)
			}
			c.Close()
			s.sleep(20 * time.Millisecond)
		})
	}},
	{"repeats a refused command every 50 ms", "beanstalk", "refused", func(s *site) {
		c := s.open()
		lastFor(5*time.Second, func() {
			c.ask("ignore default")
			s.sleep(50 * time.Millisecond)
		})
		c.Close()
	}},
	{"asks every 100 ms after DEADLINE_SOON and loses the job", "beanstalk", "deadline", func(s *site) {
		c := s.open()
		id := c.put(2)
		c.reserve()
		lastFor(3*time.Second, func() {
			if c.ask("reserve-with-timeout 3") == "DEADLINE_SOON" {
				s.sleep(100 * time.Millisecond)
			}
		})
		c.ask("delete %s", id)
		c.Close()
	}},

	{"asks about a job that it has deleted", "beanstalk", "unknown", func(s *site) {
		c := s.open()
		id := c.put(60)
		c.reserve()
		c.ask("delete %s", id)
		for range 6 {
			s.sleep(700 * time.Millisecond)
			c.ask("stats-job %s", id)
		}
		c.Close()
	}},
	{"asks for the status of a job that has ended", "gearman", "unknown", func(s *site) {
		c, w := s.open(), s.worker()
		_, args := c.call(submitBG, "f", "", "x")
		w.call(grab)
		w.send(complete, args[0], "")
		for range 7 {
			s.sleep(time.Second)
			c.call(getStatus, args[0])
		}
		w.Close()
		c.Close()
	}},
	{"ignores its only tube, and reserves", "beanstalk", "setup", func(s *site) {
		for range 3 {
			c := s.open()
			c.ask("ignore default")
			c.ask("watch a")
			c.reserve()
			c.Close()
		}
	}},
	{"deletes three jobs after their time limits", "beanstalk", "late", func(s *site) {
		c := s.open()
		for range 3 {
			c.put(1)
		}
		ids := []string{c.reserve(), c.reserve(), c.reserve()}
		s.sleep(1100 * time.Millisecond)
		other := s.open()
		for range ids {
			defer other.ask("delete %s", other.reserve())
		}
		for _, id := range ids {
			c.ask("delete %s", id)
		}
		c.Close()
	}},
	{"deletes jobs after the server has taken them back", "beanstalk", "overdue", func(s *site) {
		c := s.open()
		for range 3 {
			c.put(1)
			id := c.reserve()
			s.sleep(2200 * time.Millisecond)
			c.ask("delete %s", id)
		}
		c.Close()
	}},
	{"completes jobs after its own time limit", "gearman", "overdue", completes(3, 2200*time.Millisecond)},
	{"deletes jobs shortly before or after their time limits, or after it has touched them", "beanstalk", "",
		func(s *site) {
			c := s.open()
			for _, took := range []time.Duration{980, 1020, 1500, 1900, 980, 1020, 1500, 1900} {
				c.put(1)
				id := c.reserve()
				s.sleep(took * time.Millisecond)
				c.ask("delete %s", id)
			}
			for range 4 {
				c.put(1)
				id := c.reserve()
				for range 4 {
					s.sleep(700 * time.Millisecond)
					c.ask("touch %s", id)
				}
				c.ask("delete %s", id)
			}
			c.Close()
		}},
	{"is stopped for three seconds twice, while it has several jobs", "beanstalk", "", func(s *site) {
		c := s.open()
		for range 2 {
			var ids []string
			for range 4 {
				c.put(1)
				ids = append(ids, c.reserve())
			}
			s.sleep(3 * time.Second)
			for _, id := range ids {
				c.ask("delete %s", id)
			}
		}
		c.Close()
	}},
	{"completes jobs close to its own time limit", "gearman", "", completes(4, 980*time.Millisecond)},
	{"deletes jobs that it has released", "beanstalk", "deletes", func(s *site) {
		c := s.open()
		for range 3 {
			c.put(60)
			id := c.reserve()
			c.ask("release %s 0 10", id)
			c.ask("delete %s", id)
		}
		c.Close()
	}},
	{"submits different jobs with one unique ID", "gearman", "unique", func(s *site) {
		c := s.open()
		for _, data := range []string{"a", "b", "c", "d"} {
			c.call(submitBG, "f", "u", data)
		}
		c.Close()
	}},
	{"kicks the default tube, and works on another one", "beanstalk", "kicks", func(s *site) {
		c := s.open()
		c.ask("watch a")
		c.ask("ignore default")
		for range 3 {
			c.ask("kick 10")
		}
	}},
	{"uses one ID for two connections", "gearman", "worker-ids", func(s *site) {
		first, second := s.worker(), s.worker()
		first.send(setClientID, "w1")
		second.send(setClientID, "w1")
		second.call(grab)
		first.call(grab)
	}},
	{"kicks the tubes that it uses or watches", "beanstalk", "", func(s *site) {
		c, watches, submits := s.open(), s.open(), s.open()
		c.ask("watch a")
		c.ask("ignore default")
		c.ask("use a")
		watches.ask("ignore default") // refused
		watches.ask("watch a")
		submits.ask("watch a")
		submits.ask("ignore default")
		submits.put(60)
		for range 4 {
			c.ask("kick 10")
			watches.ask("kick 10")
			submits.ask("kick 10")
		}
	}},
	{"sets its ID on a second connection, and ends its job on the first", "gearman", "", func(s *site) {
		first, second := s.worker(), s.worker()
		first.send(setClientID, "w1")
		s.submit(1)
		_, args := first.call(grab)
		second.send(setClientID, "w1")
		second.call(grab)
		first.send(complete, args[0], "x")
		first.Close()
		s.sleep(lap)
		second.call(grab)
		third := s.worker()
		third.send(setClientID, "w2")
		third.call(grab)
		second.call(grab)
	}},
	{"submits jobs with a time from now as the start time", "gearman", "start-time", func(s *site) {
		c := s.open()
		c.call(submitEpoch, "f", "", "5", "x")
		c.Close()
	}},

	{"submits one job again and again, and others after its end", "gearman", "", func(s *site) {
		c, w := s.open(), s.worker()
		for _, data := range []string{"a", "b", "c", "d", "e"} {
			c.call(submitBG, "f", "u", data)
			_, args := c.call(submitBG, "f", "u", data)
			w.call(grab)
			w.send(complete, args[0], "")
			s.sleep(time.Second)
		}
		w.Close()
		c.Close()
	}},
	{"submits jobs for a past and a later time", "gearman", "", func(s *site) {
		c := s.open()
		for _, at := range []string{"0", "1700000000", fmt.Sprint(time.Now().Unix() + 60)} {
			c.call(submitEpoch, "f", "", at, "x")
		}
		c.Close()
	}},
	{"releases and deletes each job after it has reserved it again, and kicks jobs that do not exist", "beanstalk", "",
		func(s *site) {
			c := s.open()
			for i := range 5 {
				c.put(1)
				c.ask("release %s 0 0", c.reserve())
				s.sleep(200 * time.Millisecond)
				c.ask("delete %s", c.reserve())
				c.ask("kick-job %d", 1000+i)
			}
			c.Close()
		}},

	{"polls every 50 ms", "beanstalk", "", func(s *site) {
		c := s.open()
		lastFor(10*time.Second, func() {
			c.reserve()
			s.sleep(50 * time.Millisecond)
		})
		c.Close()
	}},
	{"repeats a refused command every 100 ms", "beanstalk", "", func(s *site) {
		c := s.open()
		lastFor(10*time.Second, func() {
			c.ask("ignore default")
			s.sleep(100 * time.Millisecond)
		})
		c.Close()
	}},
	{"polls without a pause while jobs arrive", "beanstalk", "", func(s *site) {
		var all sync.WaitGroup
		all.Go(func() {
			c := s.open()
			lastFor(5*time.Second, func() {
				c.put(60)
				s.sleep(100 * time.Millisecond)
			})
			c.Close()
		})
		c := s.open()
		lastFor(5*time.Second, func() {
			if id := c.reserve(); id != "" {
				c.ask("delete %s", id)
			}
		})
		all.Wait()
		c.Close()
	}},
	{"polls in short bursts", "beanstalk", "", func(s *site) {
		c := s.open()
		for range 5 {
			for range 500 {
				c.reserve()
			}
			s.sleep(time.Second)
		}
		c.Close()
	}},
	{"one connection per job", "beanstalk", "", func(s *site) {
		for range 1000 {
			c := s.open()
			c.put(60)
			c.Close()
		}
	}},
	{"reserves twenty jobs, then works on them", "beanstalk", "", func(s *site) {
		c := s.open()
		for range 20 {
			c.put(60)
		}
		var ids []string
		for range 20 {
			ids = append(ids, c.reserve())
		}
		for _, id := range ids {
			s.sleep(300 * time.Millisecond)
			c.ask("delete %s", id)
		}
		c.Close()
	}},
	{"touches after DEADLINE_SOON", "beanstalk", "", func(s *site) {
		c := s.open()
		c.put(1)
		id := c.reserve()
		for range 200 {
			if c.ask("reserve-with-timeout 3") == "DEADLINE_SOON" {
				c.ask("touch %s", id)
			}
		}
		c.ask("delete %s", id)
		c.Close()
	}},
	{"pauses after DEADLINE_SOON", "beanstalk", "", func(s *site) {
		c := s.open()
		c.put(2)
		id := c.reserve()
		for range 40 { // less than a second
			if c.ask("reserve-with-timeout 3") == "DEADLINE_SOON" {
				s.sleep(20 * time.Millisecond)
			}
		}
		c.ask("delete %s", id)
		c.Close()
	}},
	{"forty workers connect again after 100 ms", "beanstalk", "", func(s *site) {
		var all sync.WaitGroup
		for range 40 {
			all.Go(func() {
				lastFor(3*time.Second, func() {
					c := s.open()
					c.reserve()
					c.Close()
					s.sleep(100 * time.Millisecond)
				})
			})
		}
		all.Wait()
	}},
	{"deletes jobs that others may have deleted", "beanstalk", "", func(s *site) {
		c := s.open()
		for i := range 2000 {
			c.ask("delete %d", i+1)
		}
		c.Close()
	}},
	{"waits for a job with peek-ready", "beanstalk", "", func(s *site) {
		c := s.open()
		lastFor(3*time.Second, func() {
			c.ask("peek-ready")
			s.sleep(10 * time.Millisecond)
		})
		c.Close()
	}},
	{"twenty workers wake for each job", "gearman", "", func(s *site) {
		var all sync.WaitGroup
		done := time.Now().Add(2 * time.Second)
		for range 20 {
			all.Go(func() {
				c := s.worker()
				c.SetReadDeadline(done)
				for c.send(grab); ; c.send(grab) {
					switch code, job := c.get(); code {
					case 0:
						c.Close()
						return
					case assigned:
						c.send(complete, job[0], "")
					default:
						c.send(preSleep)
						c.get()
					}
				}
			})
		}
		lastFor(1500*time.Millisecond, func() {
			s.submit(1)
			s.sleep(time.Millisecond)
		})
		all.Wait()
	}},
	{"works on ten jobs at once", "gearman", "", func(s *site) {
		s.submit(10)
		c := s.worker()
		var jobs []string
		for range 10 {
			_, job := c.call(grab)
			jobs = append(jobs, job[0])
		}
		c.call(grab)
		c.send(preSleep)
		for _, i := range []int{3, 0, 9, 1, 2, 8, 7, 6, 5, 4} {
			s.sleep(4 * time.Second)
			c.send(complete, jobs[i], "")
		}
		c.Close()
	}},
	{"submits and closes without the reply", "gearman", "", func(s *site) {
		for range 1000 {
			c := s.open()
			c.send(submitBG, "f", "", "x")
			s.sleep(lap)
			c.Close()
		}
	}},
	{"announces its function after an outage", "gearman", "", func(s *site) {
		c := s.worker()
		c.call(grab)
		s.up.Restart()
		c.r.ReadByte() // the end of the connection
		c.Close()
		s.sleep(100 * time.Millisecond)
		c = s.worker()
		for range 20 {
			c.call(grab)
			s.sleep(time.Second)
		}
		c.Close()
	}},
	{"is down while a worker of the default tube connects again", "beanstalk", "", func(s *site) {
		c, other := s.open(), s.open()
		c.ask("watch t")
		c.reserve()
		other.reserve()
		s.up.Restart()
		for _, c := range []*peerConn{c, other} {
			c.r.ReadByte() // the end of the connection
			c.Close()
		}
		other = s.open()
		lastFor(20*time.Second, func() { other.ask("reserve-with-timeout 1") })
		other.Close()
	}},
	{"was stopped for three seconds", "gearman", "", func(s *site) {
		c := s.worker()
		for i := range 10 {
			c.send(preSleep)
			s.submit(1)
			c.get()
			if i == 5 {
				s.sleep(3 * time.Second)
			}
			_, job := c.call(grab)
			c.send(complete, job[0], "")
			c.call(grab)
		}
		c.Close()
	}},
	{"asks for the status without a pause", "gearman", "", func(s *site) {
		c := s.open()
		lastFor(2*time.Second, func() { c.call(getStatus, "H:none:1") })
		c.Close()
	}},
	{"is in the middle of jobs when the audit ends", "gearman", "", func(s *site) {
		s.submit(3)
		c := s.worker()
		for range 3 {
			c.call(grab)
		}
		s.sleep(30 * time.Second)
	}},
}

// completes returns a worker that completes n jobs of one second, each after the time that it took.
func completes(n int, took time.Duration) func(*site) {
	return func(s *site) {
		s.submit(n)
		c := s.open()
		c.send(canDoTimeout, "f", "1")
		for range n {
			code, job := c.call(grab)
			for code != assigned { // the server refuses a late result
				code, job = c.get()
			}
			s.sleep(took)
			c.send(complete, job[0], "")
		}
		c.Close()
	}
}
