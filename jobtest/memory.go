package jobtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"jobwire/internal/transport"
	"jobwire/internal/virtualtime"
)

// Listener is a listener in memory. Its connections behave like TCP connections of Linux over the loopback interface,
// except that nothing takes time. They also have the method CloseWrite of [net.TCPConn].
type Listener struct{ net.Listener }

// Listen returns a new listener, which the end of the test closes. In a bubble of package testing/synctest, a goroutine
// that waits for a connection, or for bytes of one, is durably blocked.
func Listen(t testing.TB) *Listener {
	t.Helper()
	ln, err := transport.Listen(transport.Memory, nil)
	if err != nil {
		t.Fatalf("jobtest: %v", err)
	}
	t.Cleanup(func() { ln.Close() })
	return &Listener{ln}
}

// Dial connects to the listener. After Close, the error matches syscall.ECONNREFUSED.
func (l *Listener) Dial(ctx context.Context) (net.Conn, error) {
	return new(transport.Dialer).Dial(ctx, transport.Name(l.Listener))
}

// maxCaseTime is how long a case may take in real time. A case in virtual time takes milliseconds.
var maxCaseTime = time.Minute

// errLeft is the error about goroutines that wait when a case has ended.
var errLeft = errors.New("goroutines still wait, although the context of Serve has ended and its listener is closed")

// inBubble calls do in a bubble, and returns when all goroutines of the bubble have ended. It returns errLeft, with the
// stacks, if goroutines wait after do has returned, and another error if the bubble takes longer than maxCaseTime,
// because no time passes in it. These goroutines then remain.
func inBubble(t *testing.T, do func(context.Context)) error {
	bubble, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		defer func() {
			switch p := recover(); {
			case p != nil && len(bubble) == 0: // package synctest cannot be used
				panic(p)
			case p != nil: // package synctest panics if goroutines are left
				ended <- fmt.Errorf("%w:\n%s", errLeft, stacks(<-bubble, ""))
			}
			close(ended)
		}()
		synctest.Test(t, func(t *testing.T) {
			bubble <- bubbleName()
			virtualtime.Forward()
			do(t.Context())
		})
	}()
	select {
	case err := <-ended:
		return err
	case <-time.After(maxCaseTime):
		return fmt.Errorf("the case has not ended after %v of real time, because virtual time does not pass: a goroutine "+
			"runs all the time, or waits for a mutex or for something outside of the bubble:\n%s",
			maxCaseTime, stacks(<-bubble, "(durable)"))
	}
}

var bubblePart = regexp.MustCompile(`^goroutine .*, (synctest bubble \d+)`)

// bubbleName returns the name that the bubble of this goroutine has in stack traces, or "" if there is none.
func bubbleName() string {
	b := make([]byte, 200)
	if m := bubblePart.FindSubmatch(b[:runtime.Stack(b, false)]); m != nil {
		return string(m[1])
	}
	return ""
}

// maxStacks is the largest number of goroutines whose stacks an error contains.
const maxStacks = 4

// stacks returns the stack traces of goroutines of a bubble, without those whose state contains skip, if it is not "".
func stacks(bubble, skip string) string {
	b := make([]byte, 1<<20)
	b = b[:runtime.Stack(b, true)]
	var found []string
	for one := range strings.SplitSeq(strings.TrimSpace(string(b)), "\n\n") {
		head, _, _ := strings.Cut(one, "\n")
		if strings.HasSuffix(head, bubble+"]:") && (skip == "" || !strings.Contains(head, skip)) {
			found = append(found, one)
		}
	}
	more := ""
	if n := len(found) - maxStacks; n > 0 {
		found, more = found[:maxStacks], fmt.Sprintf("\n\nand %d more goroutines", n)
	}
	return strings.Join(found, "\n\n") + more
}
