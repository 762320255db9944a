package fuzz

import (
	"slices"
	"testing"
	"time"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/fuzz/planted"
)

// TestFindingsPlay has findings written whose faults show in places that are easily left out. Whoever
// plays their transcripts sees them.
func TestFindingsPlay(t *testing.T) {
	for _, tt := range []struct{ fault, wire string }{
		// The bystander's was the other connection.
		{"empty-echo-of-another", `Client -> Job Server: ECHO_REQ ""
`},
		// The reply to the sentinel tells.
		{"tube-of-64-not-used", `Client -> Server: use "x"*64
`},
		// The server tells one handle twice.
		{"empty-result-forgotten", `Client -> Job Server: SUBMIT_JOB_BG a "" ""
Job Server -> Client: JOB_CREATED $a
Client -> Job Server: unchecked CAN_DO a
Client -> Job Server: unchecked GRAB_JOB
Client -> Job Server: GET_STATUS $a
Job Server -> Client: STATUS_RES $b 1 1 0 0
Client -> Job Server: unchecked WORK_COMPLETE $a ""
Client -> Job Server: GET_STATUS $b
`},
	} {
		t.Run(tt.fault, func(t *testing.T) {
			fault := planted.Named(tt.fault)
			p := protocols[slices.IndexFunc(protocols, func(p *codec.Protocol) bool { return p.Name == fault.Protocol })]
			cfg := Config{Protocol: p, Start: serve(*fault), Reference: serve(planted.Faultless(p.Name)), Patience: 5 * time.Second}
			f := &Fuzzer{cfg: cfg, stopped: func() bool { return false }}
			f.lab = &lab{cfg: &f.cfg, ctx: t.Context(), patience: time.Second}
			defer f.lab.close()
			fd := &Finding{Name: tt.fault, Conv: FromScript(script(t, p, tt.wire))}
			if _, fd.Fault = f.lab.perform(fd.Conv); fd.Fault == nil {
				t.Fatal("nobody objects")
			}
			if f.describe(fd); !fd.Plays {
				t.Errorf("%v: this does not tell:\n%s", fd.Fault, fd.Text)
			}
			if _, err := transcript.Parse(p, tt.fault, fd.Text); err != nil {
				t.Error(err)
			}
		})
	}
}
