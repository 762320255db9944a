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

// half has the generator use half of the processors that it may, at least one, so that the server
// beside it finds the others free: ends that take turns on the same ones do a third less. It
// returns how many. The environment's GOMAXPROCS goes before it, for both ends; then it is 0.
var half = sync.OnceValue(func() int {
	if os.Getenv("GOMAXPROCS") != "" {
		return 0
	}
	n := max(1, runtime.GOMAXPROCS(0)/2)
	runtime.GOMAXPROCS(n)
	return n
})

// startApart starts what is to be measured in a process of its own, the embedded server too,
// so that its processor time is told from the generator's. An interruption does not end it: it
// ends the run, which then asks for what is still under way.
//
// Ends that go as fast as they can share the processors between them. In an open loop the generator
// has them all: it must keep its schedule.
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
