package gearmonkey

import (
	"context"
	"io"
	"time"

	"jobwire/refpeer/internal/line"
)

// grace is how long a worker may take to exit cleanly after the context of Drive has ended.
const grace = 3 * time.Second

// Driver performs the tasks of docs/drivers.md.
type Driver struct {
	Program *Program // nil: Document()

	addr string
	conn *Conn
}

// Drive calls [Driver.Drive] with the program of [Document].
func Drive(ctx context.Context, addr string, tasks io.Reader, answers io.Writer) error {
	return (&Driver{}).Drive(ctx, addr, tasks, answers)
}

// Drive reads tasks, one per line, performs them with the Redis server at addr and answers each task with one line, until
// the end of tasks. It connects at the first task that needs a connection, keeps the connection for the following tasks and
// replaces it after a failure.
//
// The end of ctx aborts a task, but a worker has 3 seconds to exit cleanly. Drive cannot abort the reading of a task. It
// returns the error of reading, of writing or of ctx; errors of tasks are reported in their answers.
func (d *Driver) Drive(ctx context.Context, addr string, tasks io.Reader, answers io.Writer) error {
	d.addr = addr
	defer d.hangUp()
	return line.Serve(ctx, tasks, answers, &line.Quirks{}, map[string]line.Verb{
		"run":  d.verb(2, "run FUNCTION INPUT [priority=low|normal|high|scheduled] [at=UNIXTIME] [blocking=SECONDS] [rollcall]", d.run),
		"get":  d.verb(2, "get FUNCTION ID", d.get),
		"work": d.verb(3, "work FUNCTION[,FUNCTION...] echo|fail|progress|empty|reverse JOBS", d.work),
	}, failure)
}

// connect returns the connection to the server. It connects if there is none.
func (d *Driver) connect(ctx context.Context) (*Conn, error) {
	if d.conn == nil {
		c, err := Dial(ctx, d.addr)
		if err != nil {
			return nil, err
		}
		d.conn = c
	}
	return d.conn, nil
}

func (d *Driver) hangUp() {
	if d.conn != nil {
		d.conn.Abort()
		d.conn = nil
	}
}
