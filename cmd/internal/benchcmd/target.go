package benchcmd

import (
	"context"
	"net"
	"os"
	"runtime"
	"strconv"
	"sync"

	"jobwire/catalog"
	"jobwire/cmd/internal/connect"
	"jobwire/internal/target"
)

// half limits the load generator to half of the processors that the process may use, at least one, and leaves the
// others to a server on the same machine: if both use the same processors, they process a third fewer jobs. It
// returns the number of processors, or 0 if the environment variable GOMAXPROCS is set, which then applies to both.
var half = sync.OnceValue(func() int {
	if os.Getenv("GOMAXPROCS") != "" {
		return 0
	}
	n := max(1, runtime.GOMAXPROCS(0)/2)
	runtime.GOMAXPROCS(n)
	return n
})

// startApart starts the server to measure in a process of its own, even the built-in server, so that its CPU time can
// be measured separately. An interrupt ends the run, which then waits for the jobs in flight, but not the server. In
// a closed loop (open is false), the load generator and the built-in server each use half of the processors; in an
// open loop the load generator can use all of them, because it must keep its schedule.
func startApart(ctx context.Context, sys *catalog.Entry, tf connect.TargetFlags, open bool) (target.Target, error) {
	if tf.Addr != "" {
		return tf.StartChecked(ctx, sys)
	}
	n := 0
	if !open {
		n = half()
	}
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	defer stop()
	t, err := func() (target.Target, error) {
		if tf.Exec != "" {
			return tf.StartChecked(life, sys)
		}
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		c := target.Command{Name: tf.Name(sys), Args: []string{self, "serve", sys.Protocol.Name, "--listen", "127.0.0.1:{port}"}}
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

// dialer returns a function that connects to the target.
func dialer(t target.Target) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) { return target.Dial(ctx, t) }
}
