package target

import (
	"context"
	"math/rand/v2"
	"time"
)

const (
	defaultReady = 30 * time.Second
	defaultGrace = 3 * time.Second
	hastyGrace   = time.Second // if the context of the program has ended, for example after Ctrl-C
	portAttempts = 5
)

// Command is a server program that listens on the port or Unix socket in its arguments. It must stay in the foreground:
// a program that becomes a daemon counts as exited.
type Command struct {
	Name  string        // the name in reports; empty: the command line
	Args  []string      // program and arguments; {port}, {host} and {addr}, or {socket}, are replaced
	Env   []string      // added to the environment of this process
	Ready time.Duration // how long it may take until it accepts a connection; 0: 30 s
	Grace time.Duration // from SIGTERM to SIGKILL; 0: 3 s. At most 1 s when the context of Start has ended

	// Memory is the resident memory in bytes, of the program and its child processes, at which the program is killed; 0:
	// no limit. The end of the program then counts as a crash. Only Linux supports it.
	Memory int64

	freePort func() int // returns a random port; tests return ports that are in use
}

// Exec starts the program of a command line, such as
//
//	/usr/sbin/gearmand -L 127.0.0.1 -p {port} -t 1 -l none
//
// and returns when it accepts connections. The end of ctx terminates the program;
// [Target.Stop] also waits for its exit. The error is an [errCommand] or an [*Error].
func Exec(ctx context.Context, line string) (Target, error) { return ExecWithin(ctx, line, 0) }

// ExecWithin is [Exec] with a limit for the memory of the program (see [Command]).
func ExecWithin(ctx context.Context, line string, memory int64) (Target, error) {
	args, err := Split(line)
	if err != nil {
		return nil, err
	}
	return Command{Args: args, Memory: memory}.Start(ctx)
}

// Start is [Exec] for a command that is already split.
func (c Command) Start(ctx context.Context) (Target, error) {
	if err := checkArgs(c.Args); err != nil {
		return nil, err
	}
	if c.Name == "" {
		c.Name = Join(c.Args)
	}
	if c.Ready == 0 {
		c.Ready = defaultReady
	}
	if c.Grace == 0 {
		c.Grace = defaultGrace
	}
	if c.freePort == nil {
		c.freePort = freePort
	}
	s := &supervised{name: c.Name, grace: c.Grace}
	s.begin = func(last string) (*life, error) { return c.begin(ctx, last) }
	return s.supervise()
}

// freePort returns a random port below the ranges that Linux and BSD use for outgoing connections, so that no such
// connection uses it. isFree must be called only after the port was claimed: it listens for an instant, and would
// accept a connection that another jobwire opens to a server that it is starting on the port.
func freePort() int {
	const low, high = 10000, 32768
	return low + rand.IntN(high-low)
}
