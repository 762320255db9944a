package mutants

import (
	"errors"

	"jobwire/codec"
	protocol "jobwire/codec/gearman"
	"jobwire/refpeer/gearman"
	"jobwire/refpeer/internal/line"
)

// ignored replaces a message by NOOP, so that the program ignores it.
func ignored(m *codec.Message) { *m = codec.Message{Type: protocol.Protocol.TypeNamed("NOOP")} }

// ignoresErrorTo makes a program ignore an ERROR that is the reply to a message of a sequence.
func ignoresErrorTo(sequence func(*program) gearman.Sequence) func(*program) {
	return func(p *program) {
		sent := false
		s := sequence(p)
		for i := range s {
			applies := s[i].If
			s[i].If = func(t *task) bool {
				sends := applies == nil || applies(t)
				sent = sent || sends
				return sends
			}
		}
		p.Edit = func(m *codec.Message) error {
			switch m.Type.Name {
			case "ERROR":
				if sent {
					ignored(m)
				}
			case "OPTION_RES", "ECHO_RES", "STATUS_RES":
				sent = false
			}
			return nil
		}
	}
}

// jobs makes a program pass messages about jobs to handle. open reports whether the job was created and has not ended.
func jobs(handle func(p *program, m *codec.Message, open bool) error) func(*program) {
	return func(p *program) {
		open := map[string]bool{}
		p.Edit = func(m *codec.Message) error {
			if len(m.Args) == 0 {
				return nil
			}
			about := string(m.Args[0])
			switch m.Type.Name {
			case "JOB_CREATED":
				open[about] = true
			case "WORK_DATA", "WORK_WARNING", "WORK_STATUS":
				return handle(p, m, open[about])
			case "WORK_COMPLETE", "WORK_FAIL", "WORK_EXCEPTION":
				delete(open, about)
			}
			return nil
		}
	}
}

// onlyOpen rejects messages about jobs that were not created or have ended.
func onlyOpen(_ *program, m *codec.Message, open bool) error {
	if !open {
		return errors.New(m.Type.Name + " about an unknown job")
	}
	return nil
}

// conditions are faults of a client that cause failures only under fault profiles about the states of jobs and requests.
var conditions = []fault{
	{Name: "error-to-echo-ignored", About: "The client ignores ERROR in response to ECHO_REQ.", Condition: "error-answers", Verdict: "hung",
		Edit: ignoresErrorTo(func(p *program) gearman.Sequence { return p.Echo })},
	{Name: "error-to-option-ignored", About: "The client ignores ERROR in response to OPTION_REQ.", Condition: "error-answers", Verdict: "hung",
		Edit: ignoresErrorTo(func(p *program) gearman.Sequence { return p.Option })},
	{Name: "error-to-status-ignored", About: "The client ignores ERROR in response to GET_STATUS.", Condition: "error-answers", Verdict: "hung",
		Edit: ignoresErrorTo(func(p *program) gearman.Sequence { return p.Status })},
	{Name: "partial-result-is-a-result", About: "The client reports success if the server closes the connection after WORK_DATA.", Condition: "closed-after", Verdict: "wrong result",
		Edit: jobs(func(p *program, m *codec.Message, _ bool) error {
			p.EOFEndsJob = m.Type.Name == "WORK_DATA"
			return nil
		})},
	{Name: "crashes-after-a-warning", About: "The client crashes if the server closes the connection after WORK_WARNING.", Condition: "closed-after", Verdict: "crashed",
		Edit: jobs(func(p *program, m *codec.Message, _ bool) error {
			p.ExitsOnEOF = m.Type.Name == "WORK_WARNING"
			return nil
		})},
	{Name: "progress-of-a-job-that-has-ended", About: "The client reports an error when it receives WORK_STATUS about a job that has ended.", Condition: "late-progress", Verdict: "failed cleanly",
		Edit: jobs(onlyOpen)},
	{Name: "progress-of-an-unknown-job", About: "The client reports an error when it receives WORK_STATUS about a job that it has not submitted.", Condition: "unknown-handles", Verdict: "failed cleanly",
		Edit: jobs(onlyOpen)},
	{Name: "header-in-three-reads", About: "The client gives up if a header arrives in more than two reads.", Condition: "pieces", Verdict: "failed cleanly", Fragile: true,
		Edit: reads(func(c *line.Conn) (*codec.Message, error) {
			for reads := 0; ; reads++ {
				if m, err := c.Decode(); m != nil || err != nil {
					return m, err
				}
				if reads > 2 && len(c.In) < header {
					return nil, line.ErrProtocol
				}
				if err := c.Fill(); err != nil {
					return nil, err
				}
			}
		})},
}

// conditionsOfWorkers are the same for a worker.
var conditionsOfWorkers = []fault{
	{Name: "second-job-dropped", About: "The worker ignores JOB_ASSIGN if it has not sent GRAB_JOB since the last JOB_ASSIGN.", Condition: "unrequested-jobs",
		Edit: func(p *program) {
			asked := false
			p.Ask[0].If = func(*task) bool { asked = true; return true }
			p.Edit = func(m *codec.Message) error {
				if m.Type.Does == codec.Assign {
					if !asked {
						ignored(m)
					}
					asked = false
				}
				return nil
			}
		}},
}
