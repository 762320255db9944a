package main

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"

	"jobwire/catalog"
	"jobwire/cmd/internal/cli"
	"jobwire/internal/transport"
)

// TestOtherProtocol runs commands on the reference servers of all other protocols: each has status 3, and one line
// names the protocol of the server.
func TestOtherProtocol(t *testing.T) {
	for i, server := range catalog.All() {
		for k, sys := range catalog.All() {
			if testing.Short() && k != (i+1)%len(catalog.All()) {
				continue
			}
			for _, command := range []string{
				"conform", "fuzz --count 20 --parallel 1", "bench run --count 10 -q", "audit stress",
			} {
				if server == sys {
					continue
				}
				t.Run(server.Protocol.Name+"/"+sys.Protocol.Name+"/"+strings.Fields(command)[0], func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						ln, err := transport.Listen(transport.Memory, nil)
						if err != nil {
							t.Fatal(err)
						}
						serveOn(t, server, ln, "")
						args := append(strings.Fields(command), sys.Protocol.Name, "--addr", transport.Name(ln))
						if args[0] == "fuzz" {
							args = append(args, "--findings", t.TempDir())
						}
						var out, complaints bytes.Buffer
						status := run(t.Context(), args, nil, &out, &complaints)
						want := "it answers as a server of " + server.Protocol.Title
						if status != cli.StatusUnreachable || !strings.Contains(complaints.String(), want) {
							t.Errorf("%q: status %d: %s%s", args, status, &out, &complaints)
						}
					})
				})
			}
		}
	}
}
