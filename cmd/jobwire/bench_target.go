package main

import (
	"context"
	"net"
	"os"
	"runtime"
	"strconv"
	"sync"

	"jobwire/catalog"
	"jobwire/internal/target"
)

// half limits the generator to half of the processors of the process, at least one, so that the others are free for a server on
// the same machine: a generator and a server that use the same processors process a third fewer jobs. It returns the number of
// processors, or 0 if the environment variable GOMAXPROCS is set, which then applies to both.
var half = sync.OnceValue(func() int {
	if os.Getenv("GOMAXPROCS") != "" {
		return 0
	}
	n := max(1, runtime.GOMAXPROCS(0)/2)
	runtime.GOMAXPROCS(n)
	return n
})

// startApart starts the server to measure in a process of its own, also the embedded server, so that its processor time can be
// distinguished from the generator's. An interrupt does not end the server but the run, which waits for its unfinished jobs. In a closed
// loop, generator and server share the processors; in an open loop the generator can use all of them, because it must keep its schedule.
func startApart(ctx context.Context, sys *catalog.Entry, tf targetFlags, open bool) (target.Target, error) {
	if tf.addr != "" {
		return target.Address(tf.addr)
	}
	n := 0
	if !open {
		n = half()
	}
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	defer stop()
	t, err := func() (target.Target, error) {
		if tf.exec != "" {
			return target.Exec(life, tf.exec)
		}
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		c := target.Command{Name: tf.name(sys), Args: []string{self, "serve", sys.Protocol.Name, "--listen", "127.0.0.1:{port}"}}
		if n > 0 {
			c.Env = []string{"GOMAXPROCS=" + strconv.Itoa(n)}
		}
		return c.Start(life)
	}()
	if err != nil {
		cancel()
		return nil, err
	}
	return t, nil
}

func dialer(t target.Target) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) { return target.Dial(ctx, t) }
}
