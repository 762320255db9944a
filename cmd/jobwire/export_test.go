package main

import (
	"bytes"
	"strings"
	"testing"

	"jobwire/catalog"
	"jobwire/cmd/internal/connect"
	"jobwire/codec"
)

// TestExportedMessages checks the conversations that export seeds and export aflnet write: each message of a client or
// worker in a valid vector of the corpus is there, as one message.
func TestExportedMessages(t *testing.T) {
	for _, name := range catalog.Names() {
		t.Run(name, func(t *testing.T) {
			sys, err := connect.EntryNamed(name)
			if err != nil {
				t.Fatal(err)
			}
			all, err := conversations(sys.Protocol)
			if err != nil {
				t.Fatal(err)
			}
			sent := map[string]bool{}
			for _, c := range all {
				// The values that a server chooses are made up in conversations, and may break a rule.
				made := strings.Contains(c.Name, "-") && sys.Protocol.TypeNamed(c.Name) == nil
				stream := codec.Streams(sys.Protocol.NewSession(codec.Options{WaiveAll: made}))[codec.Peer]
				var f codec.Frame
				n := 0
				for piece := range stream.Feed(c.Raw(), &f) {
					switch {
					case piece.Found != codec.Whole:
						t.Errorf("%s: message %d is not valid: %v", c.Name, n, piece.Err)
					case n >= len(c.Messages) || !bytes.Equal(piece.Raw, c.Messages[n]):
						t.Errorf("%s: the messages are divided in another way than the decoder divides them: %q", c.Name, piece.Raw)
					}
					sent[f.Type.Name] = true
					n++
				}
				if n != len(c.Messages) || stream.Inside() {
					t.Errorf("%s: decoded %d messages, want %d", c.Name, n, len(c.Messages))
				}
			}
			for _, typ := range sys.Protocol.Types {
				if typ.Sends(codec.Peer) && !sent[typ.Name] {
					t.Errorf("no conversation contains %s", typ.Name)
				}
			}
			t.Logf("%d conversations, %d message types", len(all), len(sent))
		})
	}
}
