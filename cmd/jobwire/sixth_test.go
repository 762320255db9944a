package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"jobwire/catalog"
)

// jobwireWithTiny is jobwire with one protocol more.
func jobwireWithTiny() {
	catalog.Add(tiny)
	main()
}

// TestSixthProtocol shows that one catalog entry is all that a protocol needs: testdata/sixth.txtar runs
// every command on it.
func TestSixthProtocol(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Files: []string{"testdata/sixth.txtar"},
		Cmds:  map[string]func(*testscript.TestScript, bool, []string){"status": statusOf("jobwire-tiny")},
	})
}

// TestSixthProtocolIsConsistent checks the declarations of the protocol.
func TestSixthProtocolIsConsistent(t *testing.T) {
	if err := tinyProtocol.Check(); err != nil {
		t.Fatal(err)
	}
}
