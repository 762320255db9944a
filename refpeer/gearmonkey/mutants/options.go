package mutants

import (
	"context"
	"errors"
	"strings"

	"jobwire/refpeer/gearmonkey"
)

// waiting are faults of the option blocking.
var waiting = []fault{
	{Name: "does-not-wait", About: "The client does not wait although the option blocking is set.",
		KilledBy: blocks, Edit: drop("BRPOP_LOCK")},
	{Name: "looks-at-the-lock-once", About: "The client pops the lock once without waiting, instead of waiting for it.",
		KilledBy: blocks, Edit: sendInstead("BRPOP_LOCK", "command RPOP lock:{FN}:{ID}")},
	{Name: "high-jobs-not-waited-for", About: "The client does not wait for jobs of high priority.",
		KilledBy: "blocking.high", Edit: when("BRPOP_LOCK", func(t *task) bool { return t.Blocking && string(t.Priority) != "high" })},
	{Name: "waits-for-the-first-job", About: "The client always waits for the lock of its first job.",
		KilledBy: "blocking.lock-was-there blocking.one-by-one rollcall.blocking", Edit: stateful(func(id *string) func(*program) {
			return first("BRPOP_LOCK", func(t *task) error {
				if *id == "" {
					*id = string(t.ID)
				}
				t.ID = []byte(*id)
				return nil
			})
		})},
	{Name: "lock-cleared-first", About: "The client deletes the lock before it waits for it.",
		KilledBy: "blocking.lock-was-there", Edit: before("BRPOP_LOCK", "command DEL lock:{FN}:{ID}")},
	{Name: "waits-a-second-longer", About: "The client sends a timeout that is one second too long.",
		KilledBy: "blocking.times-out blocking.goes-on-after-time-out rollcall.blocking", Edit: first("BRPOP_LOCK", func(t *task) error {
			if n := len(t.Timeout) - 1; t.Timeout[n] > '0' && t.Timeout[n] < '9' {
				t.Timeout[n]++
			}
			return nil
		})},
	{Name: "time-out-is-an-end", About: "The client reports the job as finished after a timeout.",
		KilledBy: "blocking.times-out blocking.goes-on-after-time-out", Edit: recheck("BRPOP_LOCK", func(was check) check {
			return func(t *task, m *message) error {
				if err := was(t, m); !errors.Is(err, gearmonkey.ErrTimedOut) {
					return err
				}
				return nil
			}
		})},
	{Name: "time-out-takes-the-job-back", About: "The client removes the job from its queue after a timeout.",
		KilledBy: "blocking.times-out", Edit: stateful(func(late *bool) func(*program) {
			return func(p *program) {
				change(p, "BRPOP_LOCK", func(s step) []step {
					was := s.Then
					s.Then = func(t *task, m *message) error {
						err := was(t, m)
						*late = errors.Is(err, gearmonkey.ErrTimedOut)
						if *late {
							return nil
						}
						return err
					}
					timedOut := func(*task) bool { return *late }
					return []step{s,
						{Do: "command LREM queue:{FN}:{PRIO} 0 {ID}", If: timedOut},
						{Do: "late", If: timedOut, Local: func(context.Context, *task) error { *late = false; return gearmonkey.ErrTimedOut }}}
				})
			}
		})},
	{Name: "time-out-is-the-end-of-the-client", About: "The client creates no more jobs after a timeout.",
		KilledBy: "blocking.goes-on-after-time-out", Edit: stateful(func(late *bool) func(*program) {
			return both(
				recheck("BRPOP_LOCK", func(was check) check {
					return func(t *task, m *message) error {
						err := was(t, m)
						*late = *late || errors.Is(err, gearmonkey.ErrTimedOut)
						return err
					}
				}),
				first("INCR_UID", func(*task) error {
					if *late {
						return errors.New("no more jobs")
					}
					return nil
				}))
		})},
	{Name: "for-ever-is-a-second", About: "The client sends a timeout of 1 second instead of 0, which means no limit.",
		KilledBy: "blocking.for-ever", Edit: first("BRPOP_LOCK", func(t *task) error {
			if string(t.Timeout) == "0" {
				t.Timeout = []byte("1")
			}
			return nil
		})},
}

// count changes which replies to the roll call are accepted. text is the count, there whether it exists.
func count(enough func(text string, there bool) bool) func(*program) {
	return recheck("GET_COUNT", func(check) check {
		return func(_ *task, m *message) error {
			text, there := "", m.Type.Name == "bulk"
			if there {
				text = string(m.Args[0])
			}
			if enough(text, there) {
				return nil
			}
			return gearmonkey.ErrNothingRegistered
		}
	})
}

// validCount reports whether a text is a count of at least 1.
func validCount(text string) bool {
	return text != "" && text != "0" && strings.Trim(text, "0123456789") == ""
}

// calling are faults of the roll call.
var calling = []fault{
	{Name: "roll-not-called", About: "The client does not check the worker count although the option rollcall is set.",
		KilledBy: checksWorkers, Edit: drop("GET_COUNT")},
	{Name: "roll-called-too-late", About: "The client checks the worker count only after it has requested the job ID.",
		KilledBy: checksWorkers, Edit: swap("GET_COUNT", "INCR_UID")},
	{Name: "no-count-is-enough", About: "The client creates a job although the server has no worker count.",
		KilledBy: "rollcall.never-a-worker rollcall.own-function rollcall.blocking-no-workers rollcall.once",
		Edit:     count(func(text string, there bool) bool { return !there || validCount(text) })},
	{Name: "zero-is-enough", About: "The client creates a job although the worker count is 0.",
		KilledBy: "rollcall.zero", Edit: count(func(text string, _ bool) bool { return text == "0" || validCount(text) })},
	{Name: "below-zero-is-enough", About: "The client creates a job although the worker count is negative.",
		KilledBy: "rollcall.negative", Edit: count(func(text string, _ bool) bool { return validCount(strings.TrimPrefix(text, "-")) })},
	{Name: "text-is-enough", About: "The client creates a job although the worker count has no digits.",
		KilledBy: "rollcall.text", Edit: count(func(text string, _ bool) bool {
			return validCount(text) || text != "" && strings.Trim(text, "0123456789") == text && text[0] != '-'
		})},
	{Name: "digits-are-enough", About: "The client creates a job although text follows the digits of the worker count.",
		KilledBy: "rollcall.digits-and-text", Edit: count(func(text string, _ bool) bool {
			return validCount(text[:len(text)-len(strings.TrimLeft(text, "0123456789"))])
		})},
	{Name: "one-is-enough", About: "The client creates no job if the worker count is above 1.",
		KilledBy: "rollcall.several", Edit: count(func(text string, _ bool) bool { return text == "1" })},
	{Name: "roll-call-remembered", About: "After one call with the option rollcall, the client checks the worker count in every call.",
		KilledBy: "rollcall.once", Edit: stateful(func(called *bool) func(*program) {
			return when("GET_COUNT", func(t *task) bool { *called = *called || t.RollCall; return *called })
		})},
	{Name: "roll-call-instead-of-wait", About: "The client ignores the option blocking if rollcall is set.",
		KilledBy: "rollcall.blocking", Edit: when("BRPOP_LOCK", func(t *task) bool { return t.Blocking && !t.RollCall })},
	{Name: "wait-instead-of-roll-call", About: "The client ignores the option rollcall if blocking is set.",
		KilledBy: "rollcall.blocking rollcall.blocking-no-workers", Edit: when("GET_COUNT", func(t *task) bool { return t.RollCall && !t.Blocking })},
}
