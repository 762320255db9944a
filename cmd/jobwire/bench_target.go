package main

import (
	"context"
	"net"
	"os"

	"jobwire/internal/target"
)

// startApart starts what is to be measured in a process of its own, the embedded server too,
// so that its processor time is told from the generator's. An interruption does not end it: it
// ends the run, which then asks for what is still under way.
func startApart(ctx context.Context, sys *system, tf targetFlags) (target.Target, error) {
	if tf.addr != "" {
		return target.Address(tf.addr)
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
		return target.Command{Name: tf.name(sys), Args: []string{self, "serve", sys.protocol.Name, "--listen", "127.0.0.1:{port}"}}.Start(life)
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
