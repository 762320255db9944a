package loadgen

import (
	"jobwire/codec"
	"jobwire/codec/beanstalk"
)

func init() {
	systems[beanstalk.Protocol.Name] = &dialect{
		protocol: beanstalk.Protocol,
		scenarios: []Scenario{
			{Name: "cycle", About: "put, reserve, delete", Background: true, Until: atWorker},
			{Name: "background", About: "jobs are put; they are reserved and deleted, unmeasured, when all are", Standing: true, Filling: true, Background: true, Until: atWorker},
			{Name: "drain", About: "all jobs are put, then reserved and deleted", Standing: true, Background: true, Until: atWorker},
			{Name: "priorities", About: "as cycle, with jobs of three priorities", Background: true, Until: atWorker, Mixed: true},
			{Name: "updates", About: "as cycle, with two touches on the way", Background: true, Until: atWorker, Updates: 2},
			{Name: "status", About: "peek for a job that is not there, without workers", Alone: true, Probe: "peek"},
			{Name: "chaos", About: "as cycle, but workers are killed while they have jobs", Background: true, Until: atWorker, Kills: true},
		},
		grabs: func(c *Config) int { return max(1, min(c.Window*c.Clients/c.Workers, 1024)) },
		client: func(c *conn, s *Scenario) client {
			if s.Alone {
				return newProbe(c, s, question{row: row(beanstalk.Protocol, s.Probe), args: [][]byte{bsZero}})
			}
			return newBeanstalkClient(c)
		},
		worker: func(c *conn, s *Scenario) peer { return newBeanstalkWorker(c, s) },
	}
}

var (
	bsPut         = row(beanstalk.Protocol, "put")
	bsUse         = row(beanstalk.Protocol, "use")
	bsWatch       = row(beanstalk.Protocol, "watch")
	bsIgnore      = row(beanstalk.Protocol, "ignore")
	bsReserve     = row(beanstalk.Protocol, "reserve")
	bsReserveWith = row(beanstalk.Protocol, "reserve-with-timeout")
	bsTouch       = row(beanstalk.Protocol, "touch")
	bsDelete      = row(beanstalk.Protocol, "delete")
)

// Arguments of put: the priorities, no delay, and a time to run that no job reaches.
var (
	bsPriorities = [priorities][]byte{[]byte("0"), []byte("1024"), []byte("4294967295")}
	bsZero       = []byte("0")
	bsTTR        = []byte("600")
	bsDefault    = []byte("default")
)

// beanstalkClient puts jobs.
type beanstalkClient struct {
	*conn
	tubes   [][]byte
	using   int
	waiting queue // jobs that are not acknowledged
}

func newBeanstalkClient(c *conn) *beanstalkClient {
	return &beanstalkClient{conn: c, tubes: c.run.functions(), using: -1}
}

func (b *beanstalkClient) begin() { b.fill() }

func (b *beanstalkClient) submit(s *slot, payload []byte) {
	if b.using != int(s.function) {
		b.using = int(s.function)
		b.send(bsUse, b.tubes[b.using])
	}
	b.waiting.push(s)
	b.send(bsPut, bsPriorities[s.priority], bsZero, bsTTR, payload)
}

func (b *beanstalkClient) handle(f *codec.Frame) { beanstalkClientDoes.of(b.conn, f)(b, f) }

var beanstalkClientDoes = func() handlers[*beanstalkClient] {
	refused := func(b *beanstalkClient, f *codec.Frame) {
		b.note(&b.run.ledger.refused, f, "the server would not take the job")
		if s := b.waiting.pop(); s != nil {
			b.refuse(s)
		}
	}
	return table(beanstalk.Protocol, map[string]func(*beanstalkClient, *codec.Frame){
		"USING": func(*beanstalkClient, *codec.Frame) {},
		"INSERTED": func(b *beanstalkClient, _ *codec.Frame) {
			if s := b.waiting.pop(); s != nil {
				b.acknowledge(s)
			}
		},
		"BURIED_JOB": refused, "JOB_TOO_BIG": refused, "DRAINING": refused, "OUT_OF_MEMORY": refused,
	})
}()

// beanstalkWorker reserves jobs and deletes them. It polls, many times at once, as long as there
// are jobs, since a reservation that blocks would keep back the deletions behind it; only
// when there are none does it block.
type beanstalkWorker struct {
	*conn
	tubes    [][]byte
	touches  int
	grabs    int
	idle     int   // polls that are not outstanding
	blocking bool  // a reserve is
	deleting queue // jobs whose deletion is not acknowledged
}

func newBeanstalkWorker(c *conn, s *Scenario) *beanstalkWorker {
	return &beanstalkWorker{conn: c, tubes: c.run.functions(), touches: s.Updates, grabs: c.run.cfg.Grabs}
}

func (b *beanstalkWorker) begin() {
	for _, t := range b.tubes {
		b.send(bsWatch, t)
	}
	b.send(bsIgnore, bsDefault)
	b.idle = b.grabs
	b.block()
}

// unconfirmed lists the jobs whose deletion was asked for.
func (b *beanstalkWorker) unconfirmed() []*slot {
	var all []*slot
	for b.deleting.n > 0 {
		if s := b.deleting.pop(); s != nil {
			all = append(all, s)
		}
	}
	return all
}

func (b *beanstalkWorker) block() {
	b.blocking = true
	b.ask()
	b.send(bsReserve)
}

func (b *beanstalkWorker) handle(f *codec.Frame) { beanstalkWorkerDoes.of(b.conn, f)(b, f) }

var beanstalkWorkerDoes = table(beanstalk.Protocol, map[string]func(*beanstalkWorker, *codec.Frame){
	"WATCHING": func(*beanstalkWorker, *codec.Frame) {},
	"TOUCHED":  func(*beanstalkWorker, *codec.Frame) {},
	"RESERVED": (*beanstalkWorker).work,
	"TIMED_OUT": func(b *beanstalkWorker, _ *codec.Frame) {
		b.given(none)
		if b.idle++; b.idle == b.grabs && !b.blocking {
			b.block()
		}
	},
	"DELETED": func(b *beanstalkWorker, _ *codec.Frame) {
		if s := b.deleting.pop(); s != nil {
			b.tell(s)
		}
	},
	"NOT_FOUND": func(b *beanstalkWorker, f *codec.Frame) {
		b.deleting.pop()
		b.note(&b.run.ledger.duplicated, f, "a job that this worker has reserved is gone")
	},
})

func (b *beanstalkWorker) work(f *codec.Frame) {
	id := f.Arg(0)
	s := b.took(f, f.Arg(2))
	if d := b.run.cfg.Work; d > 0 {
		id = append([]byte(nil), id...)
		b.later(d, func() { b.done(s, id) })
		return
	}
	b.done(s, id)
}

// done deletes a job and asks for as many as may be asked for.
func (b *beanstalkWorker) done(s *slot, id []byte) {
	for range b.touches {
		b.send(bsTouch, id)
	}
	b.deleting.push(s)
	b.send(bsDelete, id)
	if b.blocking {
		b.blocking = false
	} else {
		b.idle++
	}
	if b.grabs == 1 {
		b.idle = 1
		b.block()
		return
	}
	for ; b.idle > 0; b.idle-- {
		b.ask()
		b.send(bsReserveWith, bsZero)
	}
}
