package mutants

import (
	"bytes"
	"errors"
	"net"
	"os"
	"time"

	"jobwire/codec"
	protocol "jobwire/codec/beanstalk"
	"jobwire/refserver/inject"
)

// inGo are faults that no fault script can describe.
var inGo = []mutantSpec{
	{Name: "big-body-run", About: "The server executes a body that is too large as commands.",
		KilledBy: "size.too-big-skipped size.too-big-twice",
		Edit: inject.Decode(func(s codec.Session, p []byte, f *codec.Frame) (int, error) {
			n, err := s.Decode(codec.Peer, p, f)
			if e, ok := err.(*codec.Error); ok && e.Rule == protocol.RulePutSize {
				if k := bytes.IndexByte(p, '\n') + 1; bytes.Contains(p[:k], []byte(" 69000")) ||
					bytes.Contains(p[:k], []byte(" 70000")) {
					n = k
				}
			}
			return n, err
		})},
	{Name: "last-words-lost", About: "The server discards commands that arrive immediately before a client half-closes the connection.",
		KilledBy: "half-closed.replies", Edit: inject.Wrap(losesLastData)},
}

// losesLastData discards data that the peer sends immediately before it closes its direction.
func losesLastData(c net.Conn) net.Conn {
	return inject.Reading(c, func(p []byte) (int, error) {
		n, err := c.Read(p)
		if err != nil || n == len(p) {
			return n, err
		}
		c.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
		more, err := c.Read(p[n:])
		c.SetReadDeadline(time.Time{})
		if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			return n + more, nil
		}
		return 0, err
	})
}
