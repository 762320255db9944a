//go:build !unix

// Package sock reads from and writes to sockets at lower cost than net.Conn.
package sock

import (
	"errors"
	"net"
)

// Socket is the socket of a connection. It is not supported on this system.
type Socket struct{}

func New(net.Conn) *Socket { return nil }

func (*Socket) Read([]byte) (int, error)     { panic("no socket") }
func (*Socket) TryWrite([]byte) (int, error) { panic("no socket") }
func (*Socket) FD() uint64                   { panic("no socket") }

// WriteUrgent returns errors.ErrUnsupported.
func WriteUrgent(net.Conn, []byte) error { return errors.ErrUnsupported }
