package judge

import "jobwire/codec"

// conduct is what is known of how a worker goes about its jobs.
type conduct struct {
	announced bool // it has said that it can do something
	asked     bool // it has asked for a job
	woken     bool // it was, and has not asked since
	ignored   int  // how often in a row it slept again without asking
}

// sleeps judges a worker that says that it sleeps. What has answered it is heard here before
// it is heard there, so that what is still open was not waited for.
func (g *gearmanCourt) sleeps(c *conn, _ *codec.Frame) {
	await(c, &c.gm.sleeps, c.gm.seq)
	if !g.Conduct {
		return
	}
	d := &c.gm.conduct
	switch {
	case len(c.gm.grabs) > c.gm.slack:
		g.accuse(c, "gearman.worker.hears-before-sleep", "", "it has asked for a job, and the answer has not come")
	case !d.asked:
		g.accuse(c, "gearman.worker.asks-before-sleep", "", "it has not asked for a job")
	case d.woken:
		// The first may have been on its way when the NOOP was.
		if d.ignored++; d.ignored > 1 {
			g.accuse(c, "gearman.worker.asks-when-woken", "", "it was woken %d times, and has not asked for a job", d.ignored)
		}
	}
	d.woken = false
}

// asks judges a worker that asks for a job.
func (g *gearmanCourt) asks(c *conn) {
	d := &c.gm.conduct
	if g.Conduct && !d.announced {
		g.accuse(c, "gearman.worker.announces-first", "", "it has not said that it can do anything")
	}
	d.asked, d.woken, d.ignored = true, false, 0
}
