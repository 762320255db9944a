package laws

import (
	"fmt"
	"testing"

	"jobwire/codec"
	"jobwire/codec/beanstalk"
)

// TestYAMLIsWrittenAgain tests that the quotes, comments and spaces around the scalars of a YAML body are framing, not
// part of the values, so that the body is encoded again unchanged.
func TestYAMLIsWrittenAgain(t *testing.T) {
	for _, tt := range []struct{ request, body string }{
		{"stats", "---\nid: 42\ntube: \"a\"\n"},
		{"stats", "---\n# c\n  'id' :   42 # c\n  b: \"\\x41: \\\"\" # d\n  c:\n  os: #1 SMP\n...\n"},
		{"stats", "---\n\"\\u0069d\": 'it''s'"},
		{"list-tubes", "---\n- \"default\"\n-   'a' # b\r\n- c\n"},
	} {
		down := fmt.Sprintf("OK %03d\r\n%s\r\n", len(tt.body), tt.body)
		c := Case{Protocol: beanstalk.Protocol, Options: codec.Options{}, Steps: []Step{{From: codec.Peer, Raw: []byte(tt.request + "\r\n")}, {From: codec.Server, Raw: []byte(down)}}}
		if err := Reencode(&c); err != nil {
			t.Errorf("%q: %v", tt.body, err)
		}
		if err := Bytewise(&c); err != nil {
			t.Errorf("%q: %v", tt.body, err)
		}
	}
}
