package connect

import (
	"context"
	"net"
	"os"
	"time"

	"jobwire/catalog"
	"jobwire/codec"
	"jobwire/fuzz/exec"
	"jobwire/internal/target"
	"jobwire/refserver"
)

// StartBuiltin starts the reference server in a process of its own.
func StartBuiltin(ctx context.Context, name string, sys *catalog.Entry) (target.Target, error) {
	return StartSelf(ctx, name, "serve", sys.Protocol.Name, "--listen", "127.0.0.1:{port}")
}

// StartSelf starts this program as a server in a process of its own.
func StartSelf(ctx context.Context, name string, args ...string) (target.Target, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	// Several servers run in parallel: one processor for each is enough, and takes less CPU time.
	return target.Command{Name: name, Args: append([]string{self}, args...), Env: append(exec.ServerEnv(), "GOMAXPROCS=1"),
		Ready: ReadyTime, Grace: GraceTime}.Start(ctx)
}

// Builtin returns a function that runs the reference server with the defaults of its flags.
func Builtin(s *catalog.Entry) func(context.Context, net.Listener) error {
	return func(ctx context.Context, ln net.Listener) error {
		return refserver.New(s.New(), refserver.Options{Protocol: s.Protocol,
			Codec: codec.Options{Waive: s.Lenient}}).Serve(ctx, ln)
	}
}

// ReadyTime is the time limit for the start of a server. It is long because the fuzzer keeps the machine busy.
const ReadyTime = 30 * time.Second

// GraceTime is the time limit for a server to exit and to print a report about leaks.
const GraceTime = 5 * time.Second
