package triage

import (
	"cmp"
	"testing"
	"testing/synctest"
	"time"

	"jobwire/codec"
	"jobwire/codec/beanstalk"
	"jobwire/codec/gearman"
	"jobwire/codec/gearmonkey"
	"jobwire/fuzz/exec"
	"jobwire/fuzz/faults"
	"jobwire/fuzz/input"
	"jobwire/fuzz/internal/fuzztest"
)

// testRun is a run without workers.
type testRun struct{}

func (testRun) Doing(string)        {}
func (testRun) Logf(string, ...any) {}
func (testRun) Prefix() string      { return input.PrefixOf('a', input.UnusedNames()) }
func (testRun) End()                {}

// testTriage returns the examiner of a run without workers.
func testTriage(t *testing.T, cfg Config) *examiner {
	cfg.Timeout = cmp.Or(cfg.Timeout, 2*time.Second)
	cfg.Barrier, cfg.Begun = exec.NewBarrier(cfg.Protocol, cfg.Protocol.Barriers[0]), time.Now()
	tr := New(t.Context(), testRun{}, cfg)
	t.Cleanup(func() {
		tr.Close()
		tr.ending.Wait()
	})
	return tr.onlyExaminer
}

// examineNow adds a candidate and examines the next one, first its last input and then, if necessary, its log.
func (e *examiner) examineNow(candidate *Candidate) {
	e.Add(candidate)
	e.examine(e.next(either))
	if candidate.of.fromLog && candidate.of.waiting && candidate.of.deferred.IsZero() {
		e.examine(e.next(either))
	}
}

// TestNoFaults runs inputs on servers without a fault. A model that is wrong might report faults, because it assumes
// that no other client uses the server or that it knows more than it can know.
func TestNoFaults(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		p    *codec.Protocol
		wire string
	}{
		{"the requests for statistics are counted", beanstalk.Protocol, `Client -> Server: stats
Server -> Client: stats-reply ...
`},
		{"what was counted before the input is unknown", beanstalk.Protocol, `Client -> Server: put 0 0 60 x
Server -> Client: INSERTED $id
Client -> Server: delete $id
Client -> Server: stats-tube default
`},
		{"the client itself uses the default tube", beanstalk.Protocol, `Client -> Server: stats-tube default
Server -> Client: stats-reply ...
`},
		{"a submission joins a job", gearman.Protocol, `Client -> Job Server: unchecked GET_STATUS ""
Client -> Job Server: SUBMIT_JOB_HIGH a u ""
Client 2 -> Job Server: SUBMIT_JOB a u b
Worker -> Job Server: CAN_DO a
Worker -> Job Server: GRAB_JOB
`},
		{"shutdown in two parts", gearman.Protocol, `Client -> Job Server: raw "shut"
Client -> Job Server: raw "down\n"
`},
		{"a lifetime overflows", gearmonkey.Protocol, `Operator -> Server: HMSET_DONE a 1 success ""
Operator -> Server: EXPIRE_JOB a 1 274877906943
Operator -> Server: TTL_JOB a 1
`},
		{"the smallest count", gearmonkey.Protocol, `Operator -> Server: SET_COUNT a -9223372036854775808
Worker -> Server: INCR_COUNT a
Worker -> Server: DECR_COUNT a
Worker -> Server: DECR_COUNT a
`},
		{"an ID begins with a zero", beanstalk.Protocol, `Client -> Server: put 0 0 1 ""
Client -> Server: reserve-job 1
Client -> Server: release 01 0 0
Client -> Server: delete 001
`},
		{"a reply arrived during the pause", beanstalk.Protocol, `Client -> Server: use b
Client -> Server: put 0 0 1 x
Client -> Server: pause-tube b 1
Client -> Server: watch b
Client -> Server: reserve-with-timeout 1000
Client -> Server: watch b after 2.2s
Client -> Server: reserve-with-timeout 0
`},
		{"a name is escaped in lists", gearman.Protocol, `Client -> Job Server: SUBMIT_JOB "\x06" "" x
Client -> Job Server: SUBMIT_JOB "\\" "" x
Admin -> Job Server: status
Admin -> Job Server: prioritystatus
Admin -> Job Server: workers
Admin -> Job Server: show-unique-jobs
`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := testTriage(t, Config{Protocol: tt.p, Timeout: 5 * time.Second, Server: Server{Start: fuzztest.Serve(faults.Faultless(tt.p.Name))}}).replay
				for range 2 { // the second execution uses the same server if the first one has left nothing
					if _, fault := l.execute(fuzztest.Input(t, tt.p, tt.wire)); fault != nil {
						t.Error(fault)
					}
				}
			})
		})
	}
}

// TestNoFaultsAfterOtherInputs runs two inputs on a server without a fault. The second one meets a job of the first one,
// or the first client's disconnect that the server has not noticed yet.
func TestNoFaultsAfterOtherInputs(t *testing.T) {
	t.Parallel()
	// A client whose disconnect the server has not noticed still uses tube b.
	lists := faults.Fault{Name: "lists a tube", Protocol: "beanstalk",
		Script: `write list-reply {replace_all(raw, "14\r\n---\n- default\n", "18\r\n---\n- default\n- b\n")}`}
	for _, tt := range []struct {
		name, first, second, prefix string
		server                      faults.Fault
	}{
		{"a job number in data that the server reads as a command", "put 66 0 60 x",
			"raw \"ignore \"\nClient -> Server: put 0 0 60 \"stats-job 1\\r\\n\"", input.Nth(1), faults.Faultless("beanstalk")},
		{"a tube that only the first client uses", "use b", "list-tubes", "", lists},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := testTriage(t, Config{Protocol: beanstalk.Protocol, Timeout: 5 * time.Second,
					Server: Server{Start: fuzztest.Serve(tt.server)}}).replay
				read := func(wire string) *input.Input {
					return fuzztest.Input(t, beanstalk.Protocol, "Client -> Server: "+wire+"\n")
				}
				entries := []input.Entry{{Input: read(tt.first), Prefix: input.Nth(0)}, {Input: read(tt.second), Prefix: tt.prefix}}
				if v, _ := l.entries(entries, nil); v != nil {
					t.Error(v)
				}
			})
		})
	}
}

// TestUnfinishedPut tests that statistics may include a put whose body is incomplete, but no other put.
func TestUnfinishedPut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		counts := faults.Fault{Name: "counts a producer", Protocol: "beanstalk",
			Script: `write stats-reply {replace_all(raw, "current-producers: 0", "current-producers: 1")}`}
		l := testTriage(t, Config{Protocol: beanstalk.Protocol, Timeout: 5 * time.Second, Server: Server{Start: fuzztest.Serve(counts)}}).replay
		for first, wrong := range map[string]bool{`raw "put 3 1 1 5\r\n"`: false, "peek 1": true} {
			_, v := l.execute(fuzztest.Input(t, beanstalk.Protocol, "Client -> Server: "+first+"\nClient 2 -> Server: stats\n"))
			if (v != nil) != wrong {
				t.Errorf("after %s: expected a wrong reply: %v, got %v", first, wrong, v)
			}
		}
	})
}
