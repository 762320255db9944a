package main

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"jobwire/conform"
	"jobwire/internal/peers"
)

// TestFindingsAreTrue plays every transcript in docs/findings.md against the
// server that it is about: where its text calls that a matter of chance, five times at most.
func TestFindingsAreTrue(t *testing.T) {
	doc, err := os.ReadFile("../../docs/findings.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?ms)^### ([^\n]*)\n(?:[^#].*?)?^```wire ([a-z-]+)(?: breaks ([a-z.-]+))?\n(.*?)^```$").FindAllSubmatch(doc, -1)
	if n := bytes.Count(doc, []byte("```wire ")); n != len(blocks) || n < 15 {
		t.Fatalf("%d transcripts, %d of them below a heading", n, len(blocks))
	}
	for _, b := range blocks {
		title, peer, breaks, script := string(b[1]), string(b[2]), string(b[3]), b[4]
		t.Run(fmt.Sprintf("%s: %s", peer, title), func(t *testing.T) {
			t.Parallel()
			peers.Need(t, peer)
			protocol, profile := profileOf(t, peer)
			tries := 1
			if bytes.Contains(b[0], []byte("a matter of chance")) {
				tries = 5
			}
			for try := 1; ; try++ {
				var out, complaints strings.Builder
				status := run(t.Context(), []string{"play", "-", "--protocol", protocol, "--exec", profile.Exec}, bytes.NewReader(script), &out, &complaints)
				if breaks == "" && status == exitHeld || breaks != "" && status == exitFellShort && strings.Contains(out.String(), "^^ "+breaks) {
					break
				}
				if try == tries {
					t.Fatalf("played %d times: exit status %d (breaks %q)\n%s%s", tries, status, breaks, out.String(), complaints.String())
				}
			}
		})
	}
}

// profileOf returns the profile of a peer, and the protocol that it stands with.
func profileOf(t *testing.T, peer string) (protocol string, p *conform.Profile) {
	t.Helper()
	for _, s := range systems {
		if !slices.Contains(conform.Profiles(s.protocol), peer) {
			continue
		}
		suite, err := conform.Load(s.protocol)
		if err != nil {
			t.Fatal(err)
		}
		if p, err = conform.LoadProfile(peer, suite); err != nil {
			t.Fatal(err)
		}
		return s.protocol.Name, p
	}
	t.Fatalf("no protocol has a profile of %s", peer)
	return "", nil
}
