package mutants

import (
	"testing"
	"testing/synctest"
	"time"

	protocol "jobwire/codec/danga"
	"jobwire/conform"
	"jobwire/conform/mutanttest"
	"jobwire/internal/verdict"
	"jobwire/refserver/inject"
)

// tolerated are servers with behavior that the rules tolerate or leave to the server.
var tolerated = map[string]inject.Edit{
	// It wakes every sleeping worker for every job.
	"wakes-all": inject.On("job_create_req", nil, func(m *message) {
		m.Pass()
		for _, w := range m.Peers {
			if w.Asleep && !w.Does(m.Job.Queue) {
				w.Asleep = false
				w.InjectSilently("job_assign_req") // this ends its sleep
				w.Send("noop")
			}
		}
	}),
	// It gives a handle to every application.
	"handles-for-all": func(s *inject.Server) {
		n := uint32(0)
		s.Out("job_create_res", func(m *message) {
			if len(m.Args) == 0 {
				n++
				m.Become("job_create_res", "none:"+string(rune('A'+n/26))+string(rune('a'+n%26)))
			}
		})
	},
}

// TestToleratedServersFailNoCase checks that no case fails a server for tolerated behavior.
func TestToleratedServersFailNoCase(t *testing.T) {
	for name, edit := range tolerated {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := conform.Runner{Parallel: 8, Timeout: 5 * time.Second, OmitPlay: true,
					Start: System.Mutants([]mutantSpec{{Name: name, Edit: edit}})[0].Start}
				nonStrict := 0
				for _, res := range r.Run(t.Context(), mutanttest.Suite(t, protocol.Protocol, ""), nil) {
					switch res.Verdict {
					case verdict.Passed:
					case verdict.NonStrict:
						nonStrict++
					default:
						t.Errorf("%s: %s, %s", res.Case.ID, res.Verdict, res.Note)
					}
				}
				if nonStrict == 0 {
					t.Error("no case has noticed it")
				}
			})
		})
	}
}
