package gearmonkey

import (
	"testing"

	"jobwire/codec/internal/codectest"
)

// TestAcceptVectors tests that the codec decodes each legal example message of the corpus, treats each of its prefixes
// as incomplete, and encodes it again unchanged.
func TestAcceptVectors(t *testing.T) { codectest.Accept(t, Protocol) }

// TestRejectVectors tests that the codec rejects each illegal example message of the corpus with the rule, offset and
// field that the corpus names.
func TestRejectVectors(t *testing.T) { codectest.Reject(t, Protocol) }
