package audit

import (
	"fmt"
	"strings"
	"testing"

	"jobwire/codec"
	"jobwire/codec/gearman"
)

// TestForwardedValues: an illegal value is reported for the side that has sent it first, and not for a server that
// forwards it or a client that repeats it. Another illegal value of the other side is reported.
func TestForwardedValues(t *testing.T) {
	const request, reply = "\x00REQ", "\x00RES"
	message := func(magic string, code byte, args ...string) string {
		data := strings.Join(args, "\x00")
		return magic + "\x00\x00\x00" + string(code) + "\x00\x00\x00" + string(byte(len(data))) + data
	}
	const workStatus = 12
	for _, tt := range []struct {
		name string
		sent []string
		want string
	}{
		{"a number of a worker", []string{message(request, workStatus, "H:1", "", "2"),
			message(reply, workStatus, "H:1", "", "2")},
			"client gearman.number.decimal 1"},
		{"missing numbers", []string{message(request, workStatus, "H:1"), message(reply, workStatus, "H:1")},
			"client gearman.args.missing 1"},
		{"a number of the server", []string{message(reply, workStatus, "H:1", "x", "2"),
			message(request, workStatus, "H:1", "x", "2")},
			"server gearman.number.decimal 1"},
		{"repeated by the worker", []string{message(request, workStatus, "H:1", "", "2"),
			message(request, workStatus, "H:1", "", "2")},
			"client gearman.number.decimal 2"},
		{"another number", []string{message(request, workStatus, "H:1", "", "2"),
			message(reply, workStatus, "H:1", "x", "2")},
			"client gearman.number.decimal 1, server gearman.number.decimal 1"},
		{"another field", []string{message(request, workStatus, "H:1", "", "2"), message(reply, workStatus, "H:1", "1", "")},
			"client gearman.number.decimal 1, server gearman.number.decimal 1"},
	} {
		a := New(Options{Protocol: gearman.Protocol, Server: true})
		worker, client := a.open(), a.open()
		for _, m := range tt.sent {
			if m[:4] == request {
				a.observe(worker, codec.Peer, []byte(m))
			} else {
				a.observe(client, codec.Server, []byte(m))
			}
		}
		var got []string
		for _, b := range a.Report().BrokenRules {
			got = append(got, fmt.Sprintf("%s %s %d", [...]string{"client", "server"}[b.By], b.Rule.ID, b.Count))
		}
		if got := strings.Join(got, ", "); got != tt.want {
			t.Errorf("%s: expected %q, got %q", tt.name, tt.want, got)
		}
	}
}
