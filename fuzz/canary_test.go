package fuzz

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"jobwire/codec"
	"jobwire/fuzz/exec"
	"jobwire/fuzz/faults"
	"jobwire/fuzz/internal/fuzztest"
	"jobwire/fuzz/triage"
	"jobwire/internal/target"
)

// TestBarriers fuzzes servers of each protocol that do not answer one barrier, or answer it wrongly: the fuzzer uses
// another one, and does not report that the server hangs. A server that answers none of them is refused.
func TestBarriers(t *testing.T) {
	t.Parallel()
	for _, p := range codec.Protocols() {
		for _, how := range []string{"drop ", "answer "} {
			refused := make([]string, len(p.Barriers))
			for i, b := range p.Barriers {
				types, condition := b.Request[0], ""
				if types == "command" { // the word distinguishes the commands
					condition = " when command == \"" + b.Request[1] + "\""
				}
				if refused[i] = how + types + condition; how == "answer " {
					refused[i] = how + types + " " + wrongReply[p.Name] + condition
				}
			}
			t.Run(p.Name+"/"+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					fault := faults.Fault{Name: "barrier", Protocol: p.Name, Script: refused[0]}
					var found []string
					_, err := Run(t.Context(), Config{Protocol: p, Seed: 1, Sequential: true, Count: 500, Timeout: time.Second, Server: triage.Server{Start: fuzztest.Serve(fault)}, Reports: triage.Reports{Found: func(fd *triage.Finding) { found = append(found, fd.Fault.Oracle+": "+fd.Fault.Text) }}})
					if len(p.Barriers) > 1 && (err != nil || len(found) == 0) {
						t.Errorf("expected a finding about the request without its reply, got %v", err)
					}
					for _, text := range found {
						if strings.HasPrefix(text, exec.HangAll) || strings.HasPrefix(text, exec.Disturbed) {
							t.Errorf("%s: %s", fault.Script, text)
						}
					}
					fault.Script = strings.Join(refused, "\n")
					checked := errors.New("checked")
					cfg := Config{Protocol: p, Seed: 1, Sequential: true, Count: 100, Server: triage.Server{Start: fuzztest.Serve(fault)}}
					if _, err := Run(t.Context(), cfg); !errors.Is(err, target.ErrUnreachable) || !strings.Contains(err.Error(), "does not answer "+p.Barriers[0].Request[0]) {
						t.Errorf("%s: expected an error about the requests, got %v", fault.Script, err)
					}
					cfg.Check = func(context.Context, target.Target) error { return checked }
					if _, err := Run(t.Context(), cfg); err != checked {
						t.Errorf("expected the error of Check, got %v", err)
					}
				})
			})
		}
	}
}

// wrongReply is a reply of each protocol that answers none of its barriers.
var wrongReply = map[string]string{"gearman": "ERROR code text", "beanstalk": "UNKNOWN_COMMAND", "danga": "noop", "gearmonkey": "error \"ERR unknown command\""}
