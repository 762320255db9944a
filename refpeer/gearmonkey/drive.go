package gearmonkey

import (
	"context"
	"io"
	"time"

	"jobwire/codec"
	"jobwire/refpeer/internal/line"
)

// grace is how long a worker may take to leave cleanly after Drive was interrupted.
const grace = 3 * time.Second

// Driver carries out tasks, as the package's documentation says.
type Driver struct {
	Program *Program      // nil is the document's
	Codec   codec.Options // limits of what the server may say

	addr string
	conn *Conn
}

// Drive is a Driver's of the document's program.
func Drive(ctx context.Context, addr string, tasks io.Reader, answers io.Writer) error {
	return (&Driver{}).Drive(ctx, addr, tasks, answers)
}

// Drive reads tasks, one a line, carries them out at the Redis server at addr and
// answers each with a line, until there are no more tasks. It connects at the first
// task that needs it, keeps the connection for those that follow and makes a new one
// if that breaks.
//
// The end of ctx breaks a task off, save that a worker has 3 seconds to leave
// cleanly. Drive cannot break off the reading of a task. The error is that of
// reading, of writing or of ctx; what goes wrong with tasks stands in the answers.
func (d *Driver) Drive(ctx context.Context, addr string, tasks io.Reader, answers io.Writer) error {
	d.addr = addr
	defer d.hangUp()
	return line.Serve(ctx, tasks, answers, &line.Habits{}, map[string]line.Verb{
		"run":  d.verb(2, "run FUNCTION INPUT [priority=low|normal|high|scheduled] [at=UNIXTIME] [blocking=SECONDS] [rollcall]", d.run),
		"get":  d.verb(2, "get FUNCTION ID", d.get),
		"work": d.verb(3, "work FUNCTION[,FUNCTION...] echo|fail|progress|empty|reverse JOBS", d.work),
	}, failure)
}

// connect returns the connection to the server.
func (d *Driver) connect(ctx context.Context) (*Conn, error) {
	if d.conn == nil {
		c, err := Dial(ctx, d.addr, d.Codec)
		if err != nil {
			return nil, err
		}
		d.conn = c
	}
	return d.conn, nil
}

func (d *Driver) hangUp() {
	if d.conn != nil {
		d.conn.Close()
		d.conn = nil
	}
}
