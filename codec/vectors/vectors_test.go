package vectors_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"jobwire/codec"
	"jobwire/codec/gearman"
	"jobwire/codec/vectors"
)

// TestAdd adds a valid and an invalid message to a corpus without them, and then again, which must change nothing.
func TestAdd(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "gearman"), 0o777); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		vectors.Accepted: "@case GRAB_JOB\nWorker -> Job Server: raw 00 \"REQ\" 00 00 00 09 00 00 00 00\n",
		vectors.Rejected: "@case magic\nWorker -> Job Server: raw 00 \"ABC\"\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, "gearman", name+".wire"), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	sent := []vectors.Sent{
		{"1", codec.Peer, []byte("\x00REQ\x00\x00\x00\x10\x00\x00\x00\x02hi")},
		{"2", codec.Peer, []byte("\x00REQ\x00\x00\x00\x6f\x00\x00\x00\x00")},
		{"3", codec.Peer, []byte("\x00REQ\x00\x00\x00\x10\x00\x00\x00\x02yo")}, // the same shape as the first
	}
	added, err := vectors.Add(dir, gearman.Protocol, sent)
	if err != nil || len(added) != 2 {
		t.Fatalf("expected two vectors, got %+v, error %v", added, err)
	}
	if added[0].Name != "ECHO_REQ" || !strings.Contains(added[1].About, "gearman.packet.type-known") {
		t.Errorf("got %+v", added)
	}
	if again, err := vectors.Add(dir, gearman.Protocol, sent); err != nil || len(again) > 0 {
		t.Errorf("the second time: expected no vectors, got %+v, error %v", again, err)
	}
}

// TestParseGoFuzz tests that ParseGoFuzz returns the messages of an input of Go's fuzzer, an error for a damaged one,
// and nothing for another kind of file.
func TestParseGoFuzz(t *testing.T) {
	for src, want := range map[string]int{
		"go test fuzz v1\n[]byte(\"a\\x00\")\n":             1,
		"go test fuzz v1\n[]byte(\"a\")\n[]byte(\"b\")\n":   2,
		"go test fuzz v1\nint(1)\n":                         -1,
		"go test fuzz v1\n[]byte(\"a)\n":                    -1,
		"@protocol gearman\nClient -> Job Server: GRAB_JOB": 0,
	} {
		all, ok, err := vectors.ParseGoFuzz([]byte(src))
		if ok != (want != 0) || (err != nil) != (want < 0) || err == nil && len(all) != want {
			t.Errorf("%q: got %d messages, %v, error %v", src, len(all), ok, err)
		}
	}
}
