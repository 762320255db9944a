package audit_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"

	"jobwire/audit"
	"jobwire/catalog"
	"jobwire/internal/target"
	"jobwire/refserver"
	"jobwire/refserver/inject"
)

// brokenReplies are faults of servers, by protocol: in replies to requests with which programs test whether a server
// answers, and in replies on which a task depends.
var brokenReplies = map[string][]string{
	"gearman": {"drop ECHO_REQ", "answer ECHO_REQ ERROR code text", "alter ECHO_RES data=wrong", "close ECHO_REQ",
		"drop version", "answer GET_STATUS ERROR code text", "drop OPTION_REQ", "answer OPTION_REQ ERROR code text"},
	"beanstalk": {"drop list-tube-used", "answer list-tube-used UNKNOWN_COMMAND", "answer list-tube-used USING wrong",
		"close list-tube-used", "answer stats-job UNKNOWN_COMMAND", "answer peek NOT_FOUND"},
	"danga": {"drop job_status_req", "answer job_status_req job_status_res 7 7 7"},
	"gearmonkey": {`drop command when command == "PING"`, `answer command error ERR unknown when command == "PING"`,
		`answer command simple WRONG when command == "PING"`, `drop command when command == "ECHO"`},
}

// TestBrokenServers: a reply that the server does not send, refuses or sends wrongly is not a fault of a client or
// worker. What the reference program cannot do on the server either is not tested, and everything else is.
func TestBrokenServers(t *testing.T) {
	for _, e := range catalog.All() {
		if o := stressOn(t, e, ""); o.omitted > 0 || o.failed != "" || o.err != nil {
			t.Errorf("%s: a correct server: %+v", e.Protocol.Name, o)
		}
		if o := stressOn(t, e, "drop from-peer *"); !errors.Is(o.err, target.ErrUnreachable) {
			t.Errorf("%s: a server without replies: expected that it cannot be used, got %+v", e.Protocol.Name, o)
		}
		for i, script := range brokenReplies[e.Protocol.Name] {
			if testing.Short() && i%2 > 0 {
				continue
			}
			if o := stressOn(t, e, script); o.err != nil || o.failed != "" || len(o.untested) > 0 || o.omitted > o.tasks {
				t.Errorf("%s: %+v", script, o)
			}
		}
	}
}

// stressed is the result of correct drivers.
type stressed struct {
	omitted  int      // number of tasks that the drivers were not given
	tasks    int      // number of tasks that they were given
	untested []string // roles
	failed   string
	err      error
}

// stressOn performs the tasks of the reference programs of a protocol on a server with faults.
func stressOn(t *testing.T, e *catalog.Entry, script string) (got stressed) {
	t.Helper()
	serve := func(ctx context.Context, ln net.Listener) error {
		so := refserver.Options{Protocol: e.Protocol}
		m, err := (&inject.Protocol{Protocol: e.Protocol}).Wrap(e.New(), &so, script)
		if err != nil {
			return err
		}
		return refserver.New(m, so).Serve(ctx, ln)
	}
	synctest.Test(t, func(t *testing.T) {
		o := inMemory(e, "plain")
		o.Start = func(ctx context.Context) (target.Target, error) { return target.InMemory(ctx, e.Protocol.Name, serve) }
		o.Omit = func(_ string, f *audit.Failure) { got.omitted++ }
		var all []audit.Outcome
		all, got.err = audit.Stress(t.Context(), o)
		got.untested = audit.UntestedRoles(all)
		for i := range all {
			x := &all[i]
			got.tasks += x.Tasks
			if !x.Passed() {
				got.failed += strings.TrimSpace(described(x)) + "; "
			}
		}
	})
	return got
}
