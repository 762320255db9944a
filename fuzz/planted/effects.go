package planted

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"jobwire/codec"
)

// when is a condition of a fault: a peer and what it says.
type when func(p *peer, f *frame) bool

// effect is what a fault does. p is the peer that brought it about.
type effect func(b *bench, p *peer)

// upon has an effect before messages of these types, for which all conditions hold, are
// handled. Of a peer that has become deaf by it they are not.
func upon(types string, do effect, conds ...when) Hook {
	return func(b *bench) {
		b.on(types, func(p *peer, f *frame) {
			if holds(p, f, conds) {
				do(b, p)
			}
			if !p.deaf {
				b.pass(p, f)
			}
		})
	}
}

// instead does something in the place of the machine with messages of these types for which all
// conditions hold.
func instead(types string, do func(b *bench, p *peer, f *frame), conds ...when) Hook {
	return func(b *bench) {
		b.on(types, func(p *peer, f *frame) {
			if holds(p, f, conds) {
				do(b, p, f)
			} else {
				b.pass(p, f)
			}
		})
	}
}

// overlook does nothing.
func overlook(*bench, *peer, *frame) {}

// leaving has an effect before the machine learns that a connection has ended.
func leaving(do effect, conds ...when) Hook {
	return func(b *bench) {
		b.left = func(p *peer) {
			if holds(p, nil, conds) {
				do(b, p)
			}
		}
	}
}

// halving has an effect when a peer ends its own direction.
func halving(do effect, conds ...when) Hook {
	return func(b *bench) {
		b.halved = func(p *peer) {
			if holds(p, nil, conds) {
				do(b, p)
			}
		}
	}
}

// refused has an effect before a message that breaks the rule is refused.
func refused(rule codec.RuleID, do effect, conds ...when) Hook {
	return func(b *bench) {
		b.rejected = func(p *peer, f *frame, e *codec.Error) {
			if e.Rule == rule && holds(p, f, conds) {
				do(b, p)
			}
		}
	}
}

// told has replies of these types, for which all conditions hold, changed.
func told(types string, change func(b *bench, p *peer, f *frame) verdict, conds ...when) Hook {
	return func(b *bench) {
		b.out(types, func(p *peer, f *frame) verdict {
			if holds(p, f, conds) {
				return change(b, p, f)
			}
			return verdict{}
		})
	}
}

func holds(p *peer, f *frame, conds []when) bool {
	for _, c := range conds {
		if !c(p, f) {
			return false
		}
	}
	return true
}

// is demands that very value of a field.
func is(label, value string) when {
	return func(_ *peer, f *frame) bool { return arg(f, label) == value }
}

// sized demands a field of so many bytes.
func sized(label string, n int) when {
	return func(_ *peer, f *frame) bool { return len(arg(f, label)) == n }
}

// atLeast demands a number.
func atLeast(label string, n uint64) when {
	return func(_ *peer, f *frame) bool {
		v, err := strconv.ParseUint(arg(f, label), 10, 64)
		return err == nil && v >= n
	}
}

// after demands that the peer's last messages, the latest last, were of these types. What only
// asks whether all is well is not counted.
func after(types string) when {
	want := strings.Fields(types)
	return func(p *peer, _ *frame) bool {
		last := p.past[max(0, len(p.past)-len(want)):]
		return strings.Join(last, " ") == types
	}
}

// exits ends the process, with words or without.
func exits(status int, words string) effect {
	return func(*bench, *peer) {
		fmt.Fprint(os.Stderr, words)
		os.Exit(status)
	}
}

// killedBy ends the process by a signal, as the kernel or the C library would. A Go program
// cannot be hurt that way itself, so it becomes one that can.
func killedBy(signal, words string) effect {
	return func(*bench, *peer) {
		fmt.Fprint(os.Stderr, words)
		syscall.Exec("/bin/sh", []string{"sh", "-c", "ulimit -c 0; kill -" + signal + " $$"}, nil)
		os.Exit(1)
	}
}

// prints is a sanitizer that reports and goes on.
func prints(words string) effect {
	return func(*bench, *peer) { fmt.Fprint(os.Stderr, words) }
}

// deafens has the peer not heard any more.
func deafens(_ *bench, p *peer) { p.deaf = true }

// blocks has nobody heard any more: the server's lock is never given back before it is to end.
func blocks(b *bench, _ *peer) { <-b.ctx.Done() }

// spins keeps a core busy for good.
func spins(b *bench, _ *peer) {
	go func() {
		for b.ctx.Err() == nil {
		}
	}()
}

// Caps on what leaks, so that a long run does not take the machine with it.
const (
	maxLeak        = 512 << 20
	maxDescriptors = 2000
)

// leak is how many bytes leak at once.
const leak = 256 << 10

// leaks keeps memory for good each time.
func leaks(b *bench, _ *peer) {
	if len(b.kept)*leak >= maxLeak {
		return
	}
	page := make([]byte, leak)
	for i := 0; i < leak; i += 512 {
		page[i] = 1 // what is not touched takes no memory
	}
	b.kept = append(b.kept, page)
}

// leaksDescriptor keeps one open for good each time.
func leaksDescriptor(b *bench, _ *peer) {
	if len(b.open) < maxDescriptors {
		if f, err := os.Open(os.DevNull); err == nil {
			b.open = append(b.open, f)
		}
	}
}

// closesOther ends the oldest of the other connections in use.
func closesOther(b *bench, p *peer) {
	if o := b.other(p); o != nil {
		o.Conn.Close()
	}
}

// with has another hook as well, for messages that h leaves alone.
func (h Hook) with(other Hook) Hook {
	return func(b *bench) {
		other(b)
		h(b)
	}
}
