package fuzz

import (
	"context"
	"fmt"
	"net"
	"os"
	"testing"

	"jobwire/codec/beanstalk"
	"jobwire/fuzz/faults"
	"jobwire/internal/target"
)

// Where a server has to end of its fault, it is this test binary itself, called with "serve NAME ADDR".
func TestMain(m *testing.M) {
	if len(os.Args) != 4 || os.Args[1] != "serve" {
		os.Exit(m.Run())
	}
	ln, err := net.Listen("tcp", os.Args[3])
	if err == nil {
		err = faults.Named(os.Args[2]).Serve(context.Background(), ln)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// All who are connected when a server ends are suspected. Who did it is found, also where only the others
// are, and where it takes what its connection had said first.
func TestFindsWhoEndedTheServer(t *testing.T) {
	const fault = "buried-freed-twice"
	input := func(wire string) *Input { return FromScript(script(t, beanstalk.Protocol, wire)) }
	idle := input("Client -> Server: put 0 0 60 x\nClient -> Server: list-tubes-watched\n")
	culprit := input(`Client -> Server: watch a
Client -> Server: ignore default
Client -> Server: put 0 0 60 x
Server -> Client: INSERTED $id
Client -> Server: reserve-with-timeout 0
Client -> Server: bury $id 0
Client -> Server: delete $id
`)
	cut := &Fault{Oracle: HangAll, Step: 1}
	whole := &Fault{Oracle: Signal, Law: normalize("signal: aborted"), Text: "signal: aborted", Step: -1, Conn: -1}
	for _, tt := range []struct {
		name         string
		observations []*observation
	}{
		{"among the observations", []*observation{{input: idle, fault: cut}, {input: idle, fault: cut}, {input: culprit, fault: cut}, {input: idle, fault: cut}}},
		{"not suspected", []*observation{{input: idle, fault: cut}}},
		{"nobody suspected", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, told := examiner(t, beanstalk.Protocol, fault)
			f.cfg.Start = func(ctx context.Context) (target.Target, error) {
				return target.Command{Args: []string{os.Args[0], "serve", fault, "{addr}"}}.Start(ctx)
			}
			if c, _ := f.culprit(tt.observations, whole); len(tt.observations) > 1 && (c == nil || !c.equal(culprit)) {
				t.Errorf("of all observations held on one server %v is told to have ended it", c)
			}
			f.examine(tt.observations, whole, []*Input{idle, culprit, idle})
			found := told()
			if found.Fault.Oracle != Signal || len(found.Input.Steps) != 4 || !found.Plays {
				t.Errorf("%v, %d steps, plays %v:\n%s", found.Fault, len(found.Input.Steps), found.Plays, found.Text)
			}
		})
	}
}
