package behavior

import (
	"time"

	"jobwire/codec"
)

// minKicks is the number of requests to kick jobs of a default queue that a connection does not use. Once or twice may
// be intended.
const minKicks = 3

// identities is what all connections have said about themselves and the default queue.
type identities struct {
	workers map[string]*conn // the last open connection with each ID of a worker
	kicks   int              // requests to kick jobs of a default queue that the connection does not use
}

// identify notes what a connection says about itself and its queues. It reports connections with one ID that ask for
// jobs at the same time: a worker that has lost a connection may not know yet, and may end its jobs on the old one. It
// also reports requests about the default queue of a connection that uses other queues only.
func (m *Monitor) identify(c *conn, f *codec.Frame, e *codec.Event, at time.Duration) {
	if id := string(f.Get(codec.WorkerID)); id != "" && m.workers[id] != c {
		if m.workers[c.worker] == c {
			delete(m.workers, c.worker)
		}
		c.worker, m.workers[id] = id, c
	}
	ofDefault := string(e.Queue) == m.protocol.DefaultQueue
	switch e.Does.Does {
	case codec.Ask:
		if o := m.workers[c.worker]; o != nil && o != c {
			m.report("worker-ids", c, at, "the worker asked for a job; connection %d has the same ID (%.40q) and is open", o.id,
				c.worker)
			c.worker = ""
		}
	case codec.Use, codec.Submit:
		c.uses = true
	case codec.Register:
		c.left = c.left && !ofDefault
	case codec.Unregister:
		c.left = c.left || ofDefault && c.announced
	case codec.Kick:
		if e.Job != nil || e.Queue != nil || c.uses || !c.left {
			return
		}
		if m.kicks++; m.kicks == minKicks {
			m.report("kicks", c, at, "the program asked %d times to kick jobs of the queue %s, and has neither used nor "+
				"watched it", m.kicks, m.protocol.DefaultQueue)
		}
	}
}
