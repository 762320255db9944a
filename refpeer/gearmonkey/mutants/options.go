package mutants

import (
	"context"
	"errors"
	"strings"

	"jobwire/refpeer/gearmonkey"
)

// waiting are faults of a run that blocks.
var waiting = []Mutant{
	{Name: "does-not-wait", About: "A run that should wait does not.",
		Kills: cases(`run.great-id run.announced run.no-id run.no-id-scheduled run.no-id-blocking run.goes-on blocking.success
			blocking.error blocking.not-by-events blocking.own-lock blocking.lock-was-there blocking.times-out
			blocking.goes-on-after-time-out blocking.for-ever blocking.high blocking.one-by-one rollcall.zero
			rollcall.negative rollcall.text rollcall.digits-and-text rollcall.one rollcall.several rollcall.own-function
			rollcall.blocking look.busy look.all-fields look.binary look.long look.of-another`),
		Edit: drop("BRPOP_LOCK")},
	{Name: "looks-at-the-lock-once", About: "A run pops the lock without waiting for it.",
		Kills: cases(`run.great-id run.announced run.no-id run.no-id-scheduled run.no-id-blocking run.goes-on blocking.success
			blocking.error blocking.not-by-events blocking.own-lock blocking.lock-was-there blocking.times-out
			blocking.goes-on-after-time-out blocking.for-ever blocking.high blocking.one-by-one rollcall.zero
			rollcall.negative rollcall.text rollcall.digits-and-text rollcall.one rollcall.several rollcall.own-function
			rollcall.blocking look.busy look.all-fields look.binary look.long look.of-another`),
		Edit: say("BRPOP_LOCK", "command RPOP lock:{FN}:{ID}")},
	{Name: "high-jobs-not-waited-for", About: "A run of a high job does not wait.",
		Kills: cases("blocking.high"),
		Edit:  when("BRPOP_LOCK", func(t *task) bool { return t.Blocking && string(t.Priority) != "high" })},
	{Name: "waits-for-the-first-job", About: "Each run waits for the first job's lock.",
		Kills: cases("blocking.lock-was-there blocking.one-by-one rollcall.blocking"),
		Edit: remembering(func(id *string) func(*program) {
			return first("BRPOP_LOCK", func(t *task) error {
				if *id == "" {
					*id = string(t.ID)
				}
				t.ID = []byte(*id)
				return nil
			})
		})},
	{Name: "lock-cleared-first", About: "A client deletes the lock before it waits for it.",
		Kills: cases("blocking.lock-was-there"),
		Edit:  before("BRPOP_LOCK", "command DEL lock:{FN}:{ID}")},
	{Name: "waits-a-second-longer", About: "The time-out is sent a second longer.",
		Kills: cases("blocking.times-out blocking.goes-on-after-time-out rollcall.blocking"),
		Edit: first("BRPOP_LOCK", func(t *task) error {
			if n := len(t.Timeout) - 1; t.Timeout[n] > '0' && t.Timeout[n] < '9' {
				t.Timeout[n]++
			}
			return nil
		})},
	{Name: "time-out-is-an-end", About: "A client whose time is over calls the job finished.",
		Kills: cases("blocking.times-out blocking.goes-on-after-time-out"),
		Edit: judge("BRPOP_LOCK", func(was check) check {
			return func(t *task, m *message) error {
				if err := was(t, m); !errors.Is(err, gearmonkey.ErrTimedOut) {
					return err
				}
				return nil
			}
		})},
	{Name: "time-out-takes-the-job-back", About: "A client whose time is over takes the job off its queue.",
		Kills: cases("blocking.times-out"),
		Edit: remembering(func(late *bool) func(*program) {
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
					due := func(*task) bool { return *late }
					return []step{s,
						{Do: "command LREM queue:{FN}:{PRIO} 0 {ID}", If: due},
						{Do: "late", If: due, Local: func(context.Context, *task) error { *late = false; return gearmonkey.ErrTimedOut }}}
				})
			}
		})},
	{Name: "time-out-is-the-end-of-the-client", About: "A client whose time was over makes no more jobs.",
		Kills: cases("blocking.goes-on-after-time-out"),
		Edit: remembering(func(late *bool) func(*program) {
			return both(
				judge("BRPOP_LOCK", func(was check) check {
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
	{Name: "for-ever-is-a-second", About: "A time-out of 0 is sent as 1.",
		Kills: cases("blocking.for-ever"),
		Edit: first("BRPOP_LOCK", func(t *task) error {
			if string(t.Timeout) == "0" {
				t.Timeout = []byte("1")
			}
			return nil
		})},
}

// count judges what a roll call is answered: nil is enough workers.
func count(enough func(text string, there bool) bool) func(*program) {
	return judge("GET_COUNT", func(check) check {
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

// sound reports whether a text is a count that is enough.
func sound(text string) bool {
	return text != "" && text != "0" && strings.Trim(text, "0123456789") == ""
}

// calling are faults of the roll call.
var calling = []Mutant{
	{Name: "roll-not-called", About: "A roll call is not made.",
		Kills: cases(`rollcall.nobody-ever rollcall.zero rollcall.negative rollcall.text rollcall.digits-and-text rollcall.one
			rollcall.several rollcall.own-function rollcall.blocking rollcall.blocking-nobody rollcall.once`),
		Edit: drop("GET_COUNT")},
	{Name: "roll-called-too-late", About: "The roll is called when the job has its ID already.",
		Kills: cases(`rollcall.nobody-ever rollcall.zero rollcall.negative rollcall.text rollcall.digits-and-text rollcall.one
			rollcall.several rollcall.own-function rollcall.blocking rollcall.blocking-nobody rollcall.once`),
		Edit: swap("GET_COUNT", "INCR_UID")},
	{Name: "no-count-is-enough", About: "A count that is not there is taken for enough.",
		Kills: cases("rollcall.nobody-ever rollcall.own-function rollcall.blocking-nobody rollcall.once"),
		Edit:  count(func(text string, there bool) bool { return !there || sound(text) })},
	{Name: "zero-is-enough", About: "A count of 0 is taken for enough.",
		Kills: cases("rollcall.zero"),
		Edit:  count(func(text string, _ bool) bool { return text == "0" || sound(text) })},
	{Name: "below-zero-is-enough", About: "A count below 0 is taken for enough.",
		Kills: cases("rollcall.negative"),
		Edit:  count(func(text string, _ bool) bool { return sound(strings.TrimPrefix(text, "-")) })},
	{Name: "text-is-enough", About: "A count without a digit is taken for enough.",
		Kills: cases("rollcall.text"),
		Edit: count(func(text string, _ bool) bool {
			return sound(text) || text != "" && strings.Trim(text, "0123456789") == text && text[0] != '-'
		})},
	{Name: "digits-are-enough", About: "A count is read as far as it is a number.",
		Kills: cases("rollcall.digits-and-text"),
		Edit: count(func(text string, _ bool) bool {
			return sound(text[:len(text)-len(strings.TrimLeft(text, "0123456789"))])
		})},
	{Name: "one-is-enough", About: "A count of more than 1 is not taken for enough.",
		Kills: cases("rollcall.several"),
		Edit:  count(func(text string, _ bool) bool { return text == "1" })},
	{Name: "roll-call-remembered", About: "Behind a roll call each run calls the roll.",
		Kills: cases("rollcall.once"),
		Edit: remembering(func(called *bool) func(*program) {
			return when("GET_COUNT", func(t *task) bool { *called = *called || t.RollCall; return *called })
		})},
	{Name: "roll-call-instead-of-wait", About: "A run that calls the roll does not wait.",
		Kills: cases("rollcall.blocking"),
		Edit:  when("BRPOP_LOCK", func(t *task) bool { return t.Blocking && !t.RollCall })},
	{Name: "wait-instead-of-roll-call", About: "A run that waits does not call the roll.",
		Kills: cases("rollcall.blocking rollcall.blocking-nobody"),
		Edit:  when("GET_COUNT", func(t *task) bool { return t.RollCall && !t.Blocking })},
}
