package gearmonkey

import (
	"testing"

	"jobwire/codec/internal/codectest"
)

func TestAcceptVectors(t *testing.T) { codectest.Accept(t, Protocol) }
func TestRejectVectors(t *testing.T) { codectest.Reject(t, Protocol) }
