package fuzz

import (
	"flag"
	"testing"
	"time"

	"jobwire/codec"
	"jobwire/codec/beanstalk"
	"jobwire/codec/gearman"
	"jobwire/codec/gearmonkey"
	"jobwire/fuzz/faults"
)

// lab returns the triage of a run without workers.
func lab(t *testing.T, cfg Config) *examiner {
	f := &Fuzzer{cfg: cfg, corpus: newCorpus(nil), start: time.Now(), stopped: func() bool { return false }, enough: func() {}}
	f.triage = newTriage(t.Context(), f)
	t.Cleanup(func() {
		f.triage.alone.replay.close()
		f.ending.Wait()
	})
	return f.triage.alone
}

// TestBlamesNobody holds inputs with faultless servers that a fuzzer who takes himself for
// alone, or knows more than he can, would object to.
func TestBlamesNobody(t *testing.T) {
	for _, tt := range []struct {
		name string
		p    *codec.Protocol
		wire string
	}{
		{"his own questions are counted", beanstalk.Protocol, `Client -> Server: stats
Server -> Client: stats-reply ...
`},
		{"what was counted before is not", beanstalk.Protocol, `Client -> Server: put 0 0 60 x
Server -> Client: INSERTED $id
Client -> Server: delete $id
Client -> Server: stats-tube default
`},
		{"he uses the default tube himself", beanstalk.Protocol, `Client -> Server: stats-tube default
Server -> Client: stats-reply ...
`},
		{"a job that nobody saw begin is joined", gearman.Protocol, `Client -> Job Server: unchecked GET_STATUS ""
Client -> Job Server: SUBMIT_JOB_HIGH a u ""
Client 2 -> Job Server: SUBMIT_JOB a u b
Worker -> Job Server: CAN_DO a
Worker -> Job Server: GRAB_JOB
`},
		{"who asks for the end in two parts", gearman.Protocol, `Client -> Job Server: raw "shut"
Client -> Job Server: raw "down\n"
`},
		{"a key is to be kept longer than anybody counts", gearmonkey.Protocol, `Operator -> Server: HMSET_DONE a 1 success ""
Operator -> Server: EXPIRE_JOB a 1 274877906943
Operator -> Server: TTL_JOB a 1
`},
		{"a count is the least there may be", gearmonkey.Protocol, `Operator -> Server: SET_COUNT a -9223372036854775808
Worker -> Server: INCR_COUNT a
Worker -> Server: DECR_COUNT a
Worker -> Server: DECR_COUNT a
`},
		{"an ID begins with a zero", beanstalk.Protocol, `Client -> Server: put 0 0 1 ""
Client -> Server: reserve-job 1
Client -> Server: release 01 0 0
Client -> Server: delete 001
`},
		{"a reply came while he waited", beanstalk.Protocol, `Client -> Server: use b
Client -> Server: put 0 0 1 x
Client -> Server: pause-tube b 1
Client -> Server: watch b
Client -> Server: reserve-with-timeout 1000
Client -> Server: watch b after 2.2s
Client -> Server: reserve-with-timeout 0
`},
		{"a name is not written as it is", gearman.Protocol, `Client -> Job Server: SUBMIT_JOB "\x06" "" x
Client -> Job Server: SUBMIT_JOB "\\" "" x
Admin -> Job Server: status
Admin -> Job Server: prioritystatus
Admin -> Job Server: workers
Admin -> Job Server: show-unique-jobs
`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := lab(t, Config{Protocol: tt.p, Start: serve(faults.Faultless(tt.p.Name)), Patience: 5 * time.Second}).replay
			for range 2 { // the same server, if nothing is left of the first time
				if _, fault := l.execute(FromScript(script(t, tt.p, tt.wire))); fault != nil {
					t.Error(fault)
				}
			}
		})
	}
}

var blamesFlag = flag.Int("blames", 200, "inputs of each protocol that are held with a faultless server, alone")

// TestBlamesNobodyAtRandom holds inputs as the fuzzer makes them, each alone with a faultless
// server. What shows only once is a busy machine's.
func TestBlamesNobodyAtRandom(t *testing.T) {
	for _, p := range protocols {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			l := lab(t, Config{Protocol: p, Start: serve(faults.Faultless(p.Name)), Patience: 10 * time.Second}).replay
			b := newGenerator(p, randOf(11), &Known{})
			for range *blamesFlag {
				c := b.generate()
				if len(c.Steps) == 0 {
					continue
				}
				if _, fault := l.execute(c); fault != nil {
					if _, again := l.execute(c); fault.same(again) {
						t.Errorf("%v\n%+v", fault, c.Steps)
					}
				}
			}
		})
	}
}
