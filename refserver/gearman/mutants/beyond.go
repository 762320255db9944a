package mutants

import "jobwire/refserver"

// beyond are faults in what the documents lack.
var beyond = []Mutant{
	{Name: "reducer-lost", About: "A reduce job is assigned without its reducer.",
		Kills:  cases("beyond.reduce beyond.reduce-background"),
		Faults: []string{"alter JOB_ASSIGN_ALL reducer="}},
	{Name: "reduce-background-not-detached", About: "The client of a reduce job in the background hears of its result.",
		Kills:  cases("beyond.reduce-background"),
		Faults: []string{"retype SUBMIT_REDUCE_JOB_BACKGROUND SUBMIT_REDUCE_JOB"}},
	{Name: "reducer-before-the-workload", About: "JOB_ASSIGN of a reduce job has the reducer in front of the workload.",
		Kills: cases("beyond.reduce-for-ordinary-worker"),
		Hook: func(b *bench) {
			b.out("JOB_ASSIGN", func(_ *conn, f *frame) verdict {
				if j := b.jobs[arg(f, 0)]; j != nil && j.typ == "SUBMIT_REDUCE_JOB" {
					return replace(changed(f, 2, "reducer\x00"+arg(f, 2)))
				}
				return verdict{}
			})
		}},
	{Name: "all-without-unique", About: "GRAB_JOB_ALL gets ordinary jobs without their unique ID.",
		Kills: cases("beyond.grab-all-ordinary"),
		Hook: func(b *bench) {
			b.out("JOB_ASSIGN_UNIQ", func(_ *conn, f *frame) verdict {
				if b.request.Type.Name == "GRAB_JOB_ALL" {
					return replace(refserver.Retyped(f, row("JOB_ASSIGN")))
				}
				return verdict{}
			})
		}},
	{Name: "unique-is-running", About: "A job that is known by its unique ID is running.",
		Kills:  cases("beyond.status-unique-queued"),
		Faults: []string{"alter STATUS_RES_UNIQUE running=1 when known=1"}},
	{Name: "second-client-not-counted", About: "A job has one client at most.",
		Kills:  cases("beyond.status-unique-running"),
		Faults: []string{"alter STATUS_RES_UNIQUE client-count=1 when client-count=2"}},
	{Name: "every-unique-known", About: "A unique ID that no job has is known.",
		Kills:  cases("beyond.status-unique-unknown"),
		Faults: []string{"alter STATUS_RES_UNIQUE known=1 when known=0"}},
	{Name: "high-not-counted", About: "prioritystatus counts no jobs of high priority.",
		Kills:  cases("beyond.prioritystatus"),
		Faults: []string{"alter prioritystatus-reply high=0"}},
	{Name: "jobs-listed-by-another-handle", About: "show jobs lists jobs by something else than their handle.",
		Kills:  cases("beyond.show-jobs"),
		Faults: []string{"alter show-jobs-reply job-handle=H:x:1"}},
	{Name: "unique-ids-unsaid", About: "show unique jobs is not answered.",
		Kills:  cases("beyond.show-unique-jobs"),
		Faults: []string{"drop show-unique-jobs"}},
	{Name: "cancel-unanswered", About: "cancel job is not answered.",
		Kills:  cases("beyond.cancel-job beyond.cancel-job-unknown"),
		Faults: []string{"drop cancel-job"}},
	{Name: "cancel-always-succeeds", About: "cancel job is confirmed, whatever the handle.",
		Kills:  cases("beyond.cancel-job-unknown"),
		Faults: []string{"answer cancel-job OK"}},
	{Name: "pid-without-digits", About: "getpid is answered by a name.",
		Kills:  cases("beyond.getpid"),
		Faults: []string{"alter getpid-reply process-id=gearmand"}},
	{Name: "verbose-unanswered", About: "verbose is not answered.",
		Kills:  cases("beyond.verbose"),
		Faults: []string{"drop verbose"}},
	{Name: "create-unanswered", About: "create function is not answered.",
		Kills:  cases("beyond.create-function beyond.drop-function"),
		Faults: []string{"drop create-function"}},
	{Name: "drop-always-succeeds", About: "drop function is confirmed, whatever the name.",
		Kills:  cases("beyond.drop-function"),
		Faults: []string{"answer drop-function OK"}},
}
