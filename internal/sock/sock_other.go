//go:build !unix

// Package sock reads sockets and writes to them at less cost than a net.Conn does.
package sock

import (
	"errors"
	"net"
)

// Socket is the socket of a connection. Here there are none.
type Socket struct{}

func New(net.Conn) *Socket { return nil }

func (*Socket) Read([]byte) (int, error)     { panic("no socket") }
func (*Socket) TryWrite([]byte) (int, error) { panic("no socket") }
func (*Socket) FD() uint64                   { panic("no socket") }

// WriteUrgent fails with errors.ErrUnsupported.
func WriteUrgent(net.Conn, []byte) error { return errors.ErrUnsupported }
