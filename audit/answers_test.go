package audit_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"jobwire/audit"
	"jobwire/audit/behavior"
	"jobwire/catalog"
	"jobwire/internal/target"
	"jobwire/internal/transport"
	"jobwire/internal/verdict"
	"jobwire/refpeer/beanstalk"
)

// stressClient performs the tasks of a client of Beanstalk under fault profiles.
func stressClient(t *testing.T, client audit.Driver, profiles ...string) []audit.Outcome {
	t.Helper()
	e, err := catalog.Named("beanstalk")
	if err != nil {
		t.Fatal(err)
	}
	o := inMemory(e, profiles...)
	o.Drivers = map[string]audit.Driver{"Client": client}
	all, err := audit.Stress(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestCompletedTasksHaveNotFailed tests that a task counts as completed if the driver has completed it, even if the
// server closed a connection during the task, so that its job may be lost.
func TestCompletedTasksHaveNotFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, o := range stressClient(t, triesAgain, "closed-after") {
			if o.Verdict != verdict.Completed {
				t.Error(described(&o))
			}
		}
	})
}

// triesAgain is the reference client, which performs a task again if the connection was lost.
func triesAgain(ctx context.Context, addr string, tasks io.Reader, answers io.Writer) error {
	return edited(ctx, addr, tasks, answers, func(_, answer string, again func() string) string {
		for n := 0; n < 2 && strings.HasPrefix(answer, "error connection"); n++ {
			answer = again()
		}
		return answer
	})
}

// edited is the reference client, whose answers are edited. again gives it the task again.
func edited(ctx context.Context, addr string, tasks io.Reader, answers io.Writer,
	edit func(task, answer string, again func() string) string) error {
	in, given := io.Pipe()
	got, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := beanstalk.Drive(ctx, addr, in, out)
		out.CloseWithError(err)
		ended <- err
	}()
	replies, lines := bufio.NewReader(got), bufio.NewScanner(tasks)
	for lines.Buffer(nil, 1<<20); lines.Scan(); {
		ask := func() string {
			fmt.Fprintln(given, lines.Text())
			answer, _ := replies.ReadString('\n')
			return answer
		}
		io.WriteString(answers, edit(lines.Text(), ask(), ask))
	}
	given.Close()
	return <-ended
}

// TestLateReplies: a client that sends put again after half a second without a reply fails if a reply is late, and
// one that waits passes.
func TestLateReplies(t *testing.T) {
	for _, tt := range []struct {
		name   string
		client audit.Driver
		passes bool
	}{{"waits", beanstalk.Drive, true}, {"sends again", sendsAgain, false}} {
		synctest.Test(t, func(t *testing.T) {
			all := stressClient(t, tt.client, "plain", "late-replies")
			if !all[0].Passed() || all[1].Passed() != tt.passes {
				t.Errorf("%s: %s\n%s", tt.name, described(&all[0]), described(&all[1]))
			}
		})
	}
}

// sendsAgain is the reference client, whose put commands are sent again if there is no reply for half a second of
// virtual time.
func sendsAgain(ctx context.Context, addr string, tasks io.Reader, answers io.Writer) error {
	return relayed(ctx, addr, tasks, answers, func(near, far net.Conn) {
		replied, ended := make(chan struct{}, 1), make(chan struct{})
		go func() {
			defer close(ended)
			transport.Forward(near, far, func(b []byte) error {
				select {
				case replied <- struct{}{}:
				default:
				}
				_, err := near.Write(b)
				return err
			})
		}()
		transport.Forward(far, near, func(b []byte) error {
			select {
			case <-replied: // to the previous request
			default:
			}
			_, err := far.Write(b)
			if err != nil || !bytes.HasPrefix(b, []byte("put ")) || len(b) > 1000 {
				return err
			}
			select {
			case <-replied:
			case <-time.After(500 * time.Millisecond):
				_, err = far.Write(b)
			}
			return err
		})
		<-ended
	})
}

// relayed is the reference client, whose connections are forwarded by a function.
func relayed(ctx context.Context, addr string, tasks io.Reader, answers io.Writer,
	forward func(near, far net.Conn)) error {
	relay, err := target.InMemory(ctx, "relay", func(ctx context.Context, ln net.Listener) error {
		dial := func(ctx context.Context) (net.Conn, error) { return new(transport.Dialer).Dial(ctx, addr) }
		return new(transport.Relay).Serve(ctx, ln, dial, forward)
	})
	if err != nil {
		return err
	}
	defer relay.Stop()
	return beanstalk.Drive(ctx, relay.Addr(), tasks, answers)
}

// TestCutsWithinMessages: the server closes connections in the middle of messages, after their first byte and before
// their last one.
func TestCutsWithinMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		first, middle, last := 0, 0, 0
		client := func(ctx context.Context, addr string, tasks io.Reader, answers io.Writer) error {
			return relayed(ctx, addr, tasks, answers, func(near, far net.Conn) {
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					transport.Forward(far, near, func(b []byte) error { _, err := far.Write(b); return err })
				}()
				var line []byte
				transport.Forward(near, far, func(b []byte) error {
					line = append(line, b...)
					line = line[bytes.LastIndexByte(line, '\n')+1:]
					_, err := near.Write(b)
					return err
				})
				<-ended
				mu.Lock()
				defer mu.Unlock()
				switch {
				case len(line) == 1:
					first++
				case bytes.HasSuffix(line, []byte("\r")):
					last++
				case len(line) > 1:
					middle++
				}
			})
		}
		if all := stressClient(t, client, "closed-within"); !all[0].Passed() || first < 3 || middle < 3 || last < 3 {
			t.Errorf("%s; cuts: %d after the first byte, %d in the middle, %d before the last byte", described(&all[0]), first,
				middle, last)
		}
	})
}

// TestUnreachableServer: a client that connects again only once after it has lost the connection fails under the
// profile unreachable alone, and the reference client passes.
func TestUnreachableServer(t *testing.T) {
	once := func(ctx context.Context, addr string, tasks io.Reader, answers io.Writer) error {
		failures := 0
		return edited(ctx, addr, tasks, answers, func(_, answer string, _ func() string) string {
			if failures > 1 {
				return "error connection given up\n"
			}
			if failures++; !strings.HasPrefix(answer, "error connection") {
				failures = 0
			}
			return answer
		})
	}
	for _, tt := range []struct {
		client audit.Driver
		want   verdict.Verdict
	}{{beanstalk.Drive, verdict.FailedCleanly}, {once, verdict.Unrecovered}} {
		synctest.Test(t, func(t *testing.T) {
			all := stressClient(t, tt.client, "closed-after", "unreachable")
			if !all[0].Passed() || all[1].Verdict != tt.want {
				t.Errorf("expected %s, got %s; %s", tt.want, described(&all[1]), described(&all[0]))
			}
		})
	}
}

// TestRareReplies: a client may report a rarer reply to put as a success or as an error, but not as another ID.
func TestRareReplies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := stressClient(t, beanstalk.Drive, "rare-replies")
		if o := &all[0]; !o.Passed() || o.Runs+o.SkippedHung != 2 { // no time passes in some
			t.Errorf("expected two repetitions, one for each reply that BURIED can stand for: %s", described(o))
		}
	})
}

// TestAnsweredID: an answer to put with another ID than that of the new job is wrong.
func TestAnsweredID(t *testing.T) {
	wrong := func(ctx context.Context, addr string, tasks io.Reader, answers io.Writer) error {
		return edited(ctx, addr, tasks, answers, func(task, answer string, _ func() string) string {
			if strings.HasPrefix(task, "put t1") {
				return "ok 9999\n"
			}
			return answer
		})
	}
	synctest.Test(t, func(t *testing.T) {
		all := stressClient(t, wrong, "plain", "long-handles")
		for _, o := range all {
			if o.Verdict != verdict.WrongResult || !strings.Contains(o.Note, "the driver answered ok 9999") {
				t.Error(described(&o))
			}
		}
	})
}

// TestJobSubmittedAgain: a client that submits a job again after a lost connection is reported, and one that leaves
// this to its user is not.
func TestJobSubmittedAgain(t *testing.T) {
	for _, tt := range []struct {
		client audit.Driver
		want   bool
	}{{triesAgain, true}, {beanstalk.Drive, false}} {
		synctest.Test(t, func(t *testing.T) {
			for _, o := range stressClient(t, tt.client, "plain", "closed-before") {
				found := slices.ContainsFunc(o.Behavior,
					func(f behavior.Finding) bool { return f.Rule.ID == "behavior.duplicates" })
				if found != (tt.want && o.FaultProfile.Fails) || !o.Passed() {
					t.Errorf("%s: reported: %v", described(&o), found)
				}
			}
		})
	}
}

// TestJobsOfOtherQueues: a client that takes and deletes a job of the tube default while it works on another tube has
// not completed the task, even if the tube has the same job afterwards.
func TestJobsOfOtherQueues(t *testing.T) {
	for _, tt := range []struct {
		ends string
		want verdict.Verdict
	}{
		{"delete %[1]s\r\nput 0 0 6000 5\r\njob-c\r\n", verdict.WrongResult},
		{"release %[1]s 0 0\r\npeek-ready\r\n", verdict.Completed},
	} {
		synctest.Test(t, func(t *testing.T) {
			client := func(ctx context.Context, addr string, tasks io.Reader, answers io.Writer) error {
				return edited(ctx, addr, tasks, answers, func(task, answer string, _ func() string) string {
					if !strings.HasPrefix(task, "work t2") {
						return answer
					}
					c, err := new(transport.Dialer).Dial(ctx, addr)
					if err != nil {
						return err.Error()
					}
					defer c.Close()
					r := bufio.NewReader(c)
					fmt.Fprint(c, "reserve-with-timeout 0\r\n")
					line, _ := r.ReadString('\n')
					r.ReadString('\n')
					fmt.Fprintf(c, tt.ends, append(strings.Fields(line), "", "")[1])
					r.ReadString('\n')
					r.ReadString('\n')
					return answer
				})
			}
			for _, o := range stressClient(t, client, "plain") {
				if o.Verdict != tt.want {
					t.Errorf("%q: expected %v, got %s", tt.ends, tt.want, described(&o))
				}
			}
		})
	}
}
