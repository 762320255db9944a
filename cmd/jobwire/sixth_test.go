package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"jobwire/catalog"
)

// jobwireWithTiny runs jobwire with the additional protocol tiny.
func jobwireWithTiny() {
	catalog.Add(tiny)
	main()
}

// TestSixthProtocol runs every command with the protocol tiny, in testdata/sixth.txtar: a protocol needs only one catalog
// entry.
func TestSixthProtocol(t *testing.T) {
	t.Parallel()
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
