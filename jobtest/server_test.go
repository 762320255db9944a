package jobtest_test

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"jobwire/catalog"
	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/jobtest"
	"jobwire/play"
)

// fakeTB records the errors that a test would report.
type fakeTB struct {
	testing.TB
	mu       sync.Mutex
	errors   []string
	cleanups []func()
}

func (f *fakeTB) Helper()           {}
func (f *fakeTB) Cleanup(do func()) { f.cleanups = append(f.cleanups, do) }

func (f *fakeTB) Errorf(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.errors = append(f.errors, fmt.Sprintf(format, args...))
}

func (f *fakeTB) Fatalf(format string, args ...any) {
	f.Errorf(format, args...)
	runtime.Goexit()
}

// errorsOf runs a test like package testing, and returns its errors.
func errorsOf(test func(testing.TB)) []string {
	f := &fakeTB{}
	var run sync.WaitGroup
	run.Go(func() {
		defer func() {
			for _, do := range slices.Backward(f.cleanups) {
				do()
			}
		}()
		test(f)
	})
	run.Wait()
	return f.errors
}

// perform sends the messages of clients and workers in a transcript over connections that dial opens. The error is the
// first difference in the replies.
func perform(t *testing.T, protocol string, dial func(context.Context) (net.Conn, error), text string) error {
	t.Helper()
	e, err := catalog.Named(protocol)
	if err != nil {
		t.Fatal(err)
	}
	scripts, err := transcript.Parse(e.Protocol, "test", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return play.Peers(t.Context(), scripts[0], func(ctx context.Context, _ transcript.Actor) (net.Conn, error) {
		return dial(ctx)
	}, play.Options{Timeout: 30 * time.Second}).Err()
}

// job is the conversation about one Gearman job.
const job = `Client -> Job Server: SUBMIT_JOB resize "" photo.jpg
Job Server -> Client: JOB_CREATED $job
Worker -> Job Server: CAN_DO resize
Worker -> Job Server: GRAB_JOB
Job Server -> Worker: JOB_ASSIGN $job resize photo.jpg
Worker -> Job Server: WORK_COMPLETE $job done
Job Server -> Client: WORK_COMPLETE $job done
`

const (
	again   = "Worker -> Job Server: unchecked WORK_COMPLETE $job again\nJob Server -> Worker: ERROR * *\n"
	illegal = "Client -> Job Server: raw 00 \"REQ\" 00 00 00 63 00 00 00 00\nJob Server -> Client: ERROR * *\n"
)

// TestViolationsAreErrors tests that a test that uses the server fails if its client or worker violates a rule, unless
// the level of the rule is not selected or the checks are switched off.
func TestViolationsAreErrors(t *testing.T) {
	tests := []struct {
		name     string
		protocol string
		options  jobtest.Options
		text     string
		want     []string // part of each error
	}{
		{"correct", "gearman", jobtest.Options{}, job, nil},
		{"correct", "beanstalk", jobtest.Options{}, "Client -> Server: put 0 0 60 test\nServer -> Client: INSERTED $id\n", nil},
		{"two results", "gearman", jobtest.Options{}, job + again, []string{
			"rule gearman.work.final (MUST) violated by a client or worker"}},
		{"wrong number", "beanstalk", jobtest.Options{}, "Client -> Server: raw \"put x 0 60 4\\r\\ntest\\r\\n\"\nServer -> Client: BAD_FORMAT\n", []string{
			"rule beanstalk.number.priority (MUST) violated by a client or worker"}},
		{"two results, other levels", "gearman", jobtest.Options{Levels: []codec.Level{codec.Should}}, job + again, nil},
		{"two results, unchecked", "gearman", jobtest.Options{Unchecked: true}, job + again, nil},
	}
	for _, tt := range tests {
		t.Run(tt.protocol+" "+tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				errs := errorsOf(func(tb testing.TB) {
					if err := perform(t, tt.protocol, jobtest.NewServer(tb, tt.protocol, tt.options).Dial, tt.text); err != nil {
						t.Error(err)
					}
				})
				if !slices.EqualFunc(errs, tt.want, strings.Contains) {
					t.Errorf("errors %q, want %q", errs, tt.want)
				}
			})
		})
	}
}

// TestWaivedRule tests that a violation of a waived rule is not reported, and that the server accepts the message.
func TestWaivedRule(t *testing.T) {
	const rule = "gearman.work.final"
	errs := errorsOf(func(tb testing.TB) {
		s := jobtest.NewServer(tb, "gearman", jobtest.Options{Waive: []codec.RuleID{rule}})
		perform(t, "gearman", s.Dial, job+again) // the transcript differs: the server sends no ERROR
		s.Close()
		if r := s.Report(); len(r.BrokenRules) > 0 {
			t.Errorf("reported %v", r.BrokenRules[0].Rule.ID)
		}
	})
	if len(errs) > 0 {
		t.Errorf("%q", errs)
	}
}

// TestMessagesOfServer tests that the server returns the transcript and the messages that it received, also illegal
// ones, and that it accepts no connections after Close.
func TestMessagesOfServer(t *testing.T) {
	s := jobtest.NewServer(t, "gearman", jobtest.Options{Unchecked: true})
	overTCP := func(ctx context.Context) (net.Conn, error) { return new(net.Dialer).DialContext(ctx, "tcp", s.Addr()) }
	if err := perform(t, "gearman", overTCP, job+"Worker -> Job Server: PRE_SLEEP\n"+illegal); err != nil {
		t.Error(err)
	}
	s.Close() // the last messages have no reply
	s.Close()
	all := s.Transcript()
	for _, line := range []string{
		"Client 1 -> Job Server: SUBMIT_JOB resize \"\" photo.jpg\n",
		"Worker 2 -> Job Server: PRE_SLEEP\n",
		"Job Server -> Client 1: WORK_COMPLETE H:",
		"Client 1 -> Job Server: raw 00 \"REQ\"",
	} {
		if !strings.Contains(all, line) {
			t.Errorf("the transcript has no line %q:\n%s", line, all)
		}
	}
	types := map[string]int{}
	for _, m := range s.Received() {
		if m.Type == nil {
			types["illegal"]++
		} else if types[m.Type.Name]++; m.Type.Name == "SUBMIT_JOB" && string(m.Arg(2)) != "photo.jpg" {
			t.Errorf("workload %q", m.Arg(2))
		}
	}
	if types["SUBMIT_JOB"] != 1 || types["WORK_COMPLETE"] != 1 || types["PRE_SLEEP"] != 1 || types["illegal"] != 1 || types["JOB_CREATED"] != 0 {
		t.Errorf("received %v", types)
	}
	for _, dial := range []func(context.Context) (net.Conn, error){overTCP, s.Dial} {
		if c, err := dial(t.Context()); err == nil {
			c.Close()
			t.Error("the server accepts connections after Close")
		}
	}
}

// TestAddrInBubble tests that a call of Addr in a bubble, in which it would make the test wait forever, panics.
func TestAddrInBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := jobtest.NewServer(t, "beanstalk", jobtest.Options{})
		defer func() {
			if text := fmt.Sprint(recover()); !strings.Contains(text, "use Dial") {
				t.Errorf("recovered %s", text)
			}
		}()
		t.Errorf("the address is %s", s.Addr())
	})
}

// TestInvalidOptions tests that an unknown protocol, fault, rule or level ends the test with an error that names it.
func TestInvalidOptions(t *testing.T) {
	for _, tt := range []struct {
		protocol string
		options  jobtest.Options
		want     string
	}{
		{"gearmann", jobtest.Options{}, "gearmann"},
		{"gearman", jobtest.Options{Faults: []string{"drop NOTHING"}}, "NOTHING"},
		{"gearman", jobtest.Options{Waive: []codec.RuleID{"gearman.no-rule"}}, "gearman.no-rule"},
		{"gearman", jobtest.Options{Levels: []codec.Level{"must"}}, `got "must"`},
	} {
		errs := errorsOf(func(tb testing.TB) {
			jobtest.NewServer(tb, tt.protocol, tt.options)
			t.Errorf("%v was accepted", tt)
		})
		if len(errs) != 1 || !strings.Contains(errs[0], tt.want) {
			t.Errorf("errors %q, want %q", errs, tt.want)
		}
	}
}
