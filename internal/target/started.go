package target

import "context"

// startedKey is the key of a function in a context.
type startedKey struct{}

// OnStart returns a context in which programs call do with their process ID when they start.
func OnStart(ctx context.Context, do func(pid int)) context.Context {
	return context.WithValue(ctx, startedKey{}, do)
}

// Started calls the function of [OnStart], if the context has one.
func Started(ctx context.Context, pid int) {
	if do, ok := ctx.Value(startedKey{}).(func(int)); ok {
		do(pid)
	}
}
