package target

import (
	"context"
	"os/exec"
	"strconv"
)

// startedKey is the key of a function in a context.
type startedKey struct{}

// OnStart returns a context in which programs call do with their process ID when they start.
func OnStart(ctx context.Context, do func(pid int)) context.Context {
	return context.WithValue(ctx, startedKey{}, do)
}

// descriptorsKey is the key of a number in a context.
type descriptorsKey struct{}

// LimitDescriptors returns a context in which [Command] starts servers that may have at most n file descriptors open,
// and that cannot raise this limit. Servers often read the limit when they start.
func LimitDescriptors(ctx context.Context, n int) context.Context {
	return context.WithValue(ctx, descriptorsKey{}, n)
}

// limited returns a command that starts the command cmd with the limit of [LimitDescriptors], if the context has one.
func limited(ctx context.Context, cmd *exec.Cmd) (_ *exec.Cmd, isLimited bool) {
	n, ok := ctx.Value(descriptorsKey{}).(int)
	if !ok || cmd.Err != nil {
		return cmd, false
	}
	words := append([]string{"-c", `ulimit -n "$0" && exec "$@"`, strconv.Itoa(n), cmd.Path}, cmd.Args[1:]...)
	return exec.Command("/bin/sh", words...), true
}

// Started calls the function of [OnStart], if the context has one.
func Started(ctx context.Context, pid int) {
	if do, ok := ctx.Value(startedKey{}).(func(int)); ok {
		do(pid)
	}
}
