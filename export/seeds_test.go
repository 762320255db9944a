package export_test

import (
	"bytes"
	"encoding/binary"
	"reflect"
	"slices"
	"testing"

	"jobwire/export"
)

// TestDistinct tests that Distinct keeps one of several conversations with the same messages, drops empty ones, and
// makes their names safe and different file names.
func TestDistinct(t *testing.T) {
	of := func(name string, messages ...string) export.Conversation {
		c := export.Conversation{Name: name}
		for _, m := range messages {
			c.Messages = append(c.Messages, []byte(m))
		}
		return c
	}
	got := export.Distinct([]export.Conversation{
		of("PUT", "a"), of("put", "b"), of("empty"), of("other", "a"), of("joined", "c", "d"), of("divided", "cd"), of("../put it", "e"), of("put", "f")})
	want := []export.Conversation{of("PUT", "a"), of("put-2", "b"), of("joined", "c", "d"), of("---put-it", "e"), of("put-3", "f")}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestAFLNet tests that a seed for AFLNet has the length of each message, in little-endian order, before the message,
// and that a raw seed has only the messages.
func TestAFLNet(t *testing.T) {
	c := export.Conversation{Messages: [][]byte{[]byte("put 0\r\n"), bytes.Repeat([]byte{'x'}, 0x10203), {0}}}
	b := c.AFLNet()
	if !bytes.HasPrefix(b, []byte("\x07\x00\x00\x00put 0\r\n\x03\x02\x01\x00xx")) {
		t.Errorf("got %q..., want each length in little-endian order before its message", b[:20])
	}
	var got [][]byte
	for len(b) >= 4 {
		n := 4 + int(binary.LittleEndian.Uint32(b))
		got, b = append(got, b[4:n]), b[n:]
	}
	if len(b) > 0 || !slices.EqualFunc(got, c.Messages, bytes.Equal) {
		t.Errorf("read %d messages and %d more bytes, want the %d messages", len(got), len(b), len(c.Messages))
	}
	if want := slices.Concat(c.Messages...); !bytes.Equal(c.Raw(), want) {
		t.Error("the raw bytes are not the messages")
	}
}
