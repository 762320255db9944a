package conform

import (
	"context"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"jobwire/codec/gearman"
	"jobwire/internal/target"
)

// TestHungServer tests a server that no longer replies to any client after a client has sent OPTION_REQ. If the server
// can be restarted, only the case that sends OPTION_REQ is "hung". If the server has a fixed address, the run ends.
func TestHungServer(t *testing.T) {
	t.Parallel()
	src := "@section s\n@rules gearman.echo.same-data\n"
	for _, name := range []string{"a", "b", "c", "d"} {
		src += "@case " + name + "\n@about An echo.\nClient -> Job Server: ECHO_REQ x\nJob Server -> Client: ECHO_RES x\n"
		if name == "b" {
			src += "@case hangs\n@about The option for exceptions is confirmed.\nClient -> Job Server: OPTION_REQ exceptions\nJob Server -> Client: OPTION_RES exceptions\n"
		}
	}
	s, err := LoadFS(gearman.Protocol, fstest.MapFS{"a.wire": {Data: []byte(src)}})
	if err != nil {
		t.Fatal(err)
	}
	edit := edit("drop from-server * when notes.hung != nil\nnote OPTION_REQ hung=yes")
	verdicts := func(t *testing.T, r *Runner) (string, []Result) {
		var all []string
		results := r.Run(t.Context(), s, nil)
		for _, res := range results {
			all = append(all, string(res.Verdict))
		}
		return strings.Join(all, ", "), results
	}
	for _, parallel := range []int{1, 5} {
		synctest.Test(t, func(t *testing.T) {
			got, results := verdicts(t, &Runner{Start: faulty(edit), Timeout: time.Second, Parallel: parallel})
			if want := "passed, passed, hung, passed, passed"; got != want {
				t.Errorf("%d at a time: %s, want %s", parallel, got, want)
			}
			if !strings.Contains(results[2].Note, "answered no request on a new connection within 1s") {
				t.Errorf("note: %s", results[2].Note)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		srv, err := faulty(edit)(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer srv.Stop()
		address := func(context.Context) (target.Target, error) { return target.Address(srv.Addr()) }
		got, _ := verdicts(t, &Runner{Start: address, Timeout: time.Second})
		if want := "passed, passed, hung, not run, not run"; got != want {
			t.Errorf("by address: %s, want %s", got, want)
		}
	})
}
